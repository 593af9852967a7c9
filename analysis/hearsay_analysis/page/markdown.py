"""Tables as Markdown."""


def table(heads, rows):
    """A table with its last line's end. Cells are anything that prints."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)
