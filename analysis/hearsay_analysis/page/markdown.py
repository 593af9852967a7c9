"""Tables as Markdown."""
from hearsay_analysis.text import shown


def table(heads, rows):
    """A table with its last line's end. Cells are anything that prints."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(shown(cell) for cell in line)} |\n" for line in lines)
