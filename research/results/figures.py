#!/usr/bin/env python3
"""Compare the figures that pages quote with the tables that they come from, or write them.

    research/results/figures.py [PAGE ...]            says which figures differ from their tables
    research/results/figures.py --write [PAGE ...]    writes what the tables have

Without PAGE: the README and all pages of research/results. Exit code 1: a figure differs, or has no marker. A figure
stands after a marker, a comment that no reader of the page sees. It keeps the number of its decimals:

    <!-- from skew-own-rates.csv; shards -->          the table of what follows, and words that its rows must have
    <!--= fp4, always: accuracy_mean_model -->97.79   the mean over seeds of a method's column
    <!--= fp4, always: loss minus all-reduce: loss -->0.4         or `over`, for a ratio
    <!--= mnist.md#P = 4 | D-PSGD: bytes, % -->100.2              a row of another table, below a heading

A word is a cell of the row (for rows of runs: method, ranks as `P = 8`, a value of an axis); several are separated by
`;`. Columns of runs are those of the file; accuracies and fractions count in per cent; a metric has its name (`loss`,
of the averaged model) or `loss.worst`. After a column may stand `sd`, `min`, `max` or `count`.
A ratio before " %" is in per cent. A number with " %" in the text of a page, without a marker, is a complaint.

    <!--table bytes_fraction 1 || accuracy_mean_model 2 sd || = other.csv | {}: loss 3 -->

says where the columns of the table below are from, but for the first, which names the row: a column with its decimals
(`sd`: ± over seeds), or `=` and what a figure's marker says, with `{}` for the row's name.
"""
import csv
import functools
import json
import os
import re
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NUMBER = r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?"
MARKED = re.compile(rf"<!--\s*(=|table|from)\s*(.*?)\s*-->({NUMBER})?( %)?")
STATISTICS = {"sd": statistics.stdev, "min": min, "max": max, "count": len}


class Wrong(Exception):
    """What a marker asks for is not in the table."""


def leaves(value):
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    return [f"{value:g}" if isinstance(value, float) else str(value)]


def number_in(cell):
    found = re.search(NUMBER, cell)
    if not found:
        raise Wrong(f"'{cell}' is no number")
    return float(found[0].replace("−", "-").replace(",", ""))


@functools.cache
def rows_of(table):
    """[(words, {column: value or text})] of a CSV file, or of the tables below a heading of a page."""
    name, _, heading = table.partition("#")
    path = HERE / "tables" / name
    if not path.is_file():
        raise Wrong(f"there is no tables/{name}")
    if name.endswith(".csv"):
        with open(path, newline="", encoding="utf-8") as stream:
            return [row_of_run(row) for row in csv.DictReader(stream)]
    text = path.read_text(encoding="utf-8")
    if heading:
        parts = re.split(rf"^#+ {re.escape(heading)}\n", text, flags=re.M)
        if len(parts) != 2:
            raise Wrong(f"{name} has no heading '{heading}', or several")
        text = re.split(r"^#", parts[1], flags=re.M)[0]
    rows, heads = [], []
    for line in text.splitlines():
        cells = [cell.strip().replace("**", "") for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            heads = []
        elif not heads:
            heads = cells
        elif not re.fullmatch(r"[-: |]+", line):
            rows.append(([cell.replace("`", "") for cell in cells], dict(zip(heads, cells))))
    return rows


def row_of_run(row):
    words = [value for value in row.values() if value]
    columns = {key: value for key, value in row.items() if value}
    if "axis" in row:
        words = [row["method"], f"P = {row['ranks']}", f"seed {row['seed']}", *leaves(json.loads(row["axis"]))]
        for metric in json.loads(row.get("metrics") or "[]"):
            columns[metric["name"]], columns[metric["name"] + ".worst"] = metric["mean_model"], metric["rank_worst"]
        if row["status"] != "finished":
            columns = {}
        columns = {key: 100 * float(value) if key.startswith("accuracy_") or key.endswith("_fraction") else value
                   for key, value in columns.items()}
    return words, columns


def values(operand, context, row_name):
    """The column's values in the rows that an operand names: [file |] [words :] column [statistic]."""
    table, given, rest = context["table"], list(context["words"]), operand
    if " | " in rest:
        table, rest = rest.split(" | ", 1)
        given = []
    words, _, column = rest.partition(": ") if ": " in rest else ("", "", rest)
    given += [word.strip().replace("{}", row_name) for word in words.split(";")] if words else [row_name]
    column = column.strip()
    found = [columns for own, columns in rows_of(table.strip()) if all(word in own for word in given)]
    if not found:
        raise Wrong(f"tables/{table} has no row with {' and '.join(given)}")
    if not any(column in columns for columns in found):
        raise Wrong(f"tables/{table}: {' and '.join(given)}: nothing in column '{column}'")
    return [columns.get(column) for columns in found]


def number_of(value):
    return number_in(value) if isinstance(value, str) else float(value)


def evaluated(expression, context, row_name="", of_ratio=100.0):
    """(value, standard deviation or None, runs without it, runs)"""
    for word in (" minus ", " over "):
        if word in expression:
            left, right = (evaluated(part, context, row_name)[0] for part in expression.split(word, 1))
            return (left - right if word == " minus " else of_ratio * left / right), None, 0, 1
    column, _, last = expression.rpartition(" ")
    statistic = STATISTICS.get(last)
    column = column if statistic else expression
    there = values(column, context, row_name)
    finished = [value for value in there if value is not None]
    numbers = [number_of(value) for value in finished]
    if len(numbers) > 1:
        spread = statistics.stdev(numbers)
    else:
        texts = re.findall(rf"± ({NUMBER})", str(finished[0]))
        spread = float(texts[0]) if texts else None
    if statistic is statistics.stdev:
        return spread, None, 0, 1
    return (statistic or statistics.mean)(numbers), spread, len(there) - len(finished), len(there)


def written(value, decimals, plus=False):
    text = f"{value:,.{decimals}f}".replace("-", "−")
    if not float(text.replace(",", "").replace("−", "-")):
        text = text.replace("−", "")
    return f"+{text}" if plus and not text.startswith("−") else text


def cell(spec, context, row_name):
    """A cell of a marked table: `column decimals [sd]`, or `= expression decimals`."""
    found = re.fullmatch(r"(=?)\s*(.*?) (\d)( sd)?", spec.strip())
    if not found:
        raise Wrong(f"'{spec}' is no column with its decimals")
    try:
        expression = found[2] if found[1] else f"{row_name}: {found[2]}"
        value, spread, lost, runs = evaluated(expression, context, row_name)
    except Wrong:
        if any(row_name in own for own, _ in rows_of(context["table"])):
            return "–"
        raise
    text = written(value, int(found[3]))
    if found[4] and spread is not None:
        text += f" ± {written(spread, int(found[3]))}"
    return text + (f" ({lost} of {runs} diverge{'s' if lost == 1 else ''})" if lost and found[4] else "")


class Page:
    """Reads a page line by line; `text` is what it should be, `seen` counts its figures."""

    def __init__(self, path):
        self.path, self.context, self.seen = path, {"table": "", "words": []}, 0
        self.columns, self.heads, self.code = None, 0, False
        self.lines = [self.line(number, line) for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)]
        self.text = "\n".join(self.lines)

    def line(self, number, line):
        if line.startswith("```"):
            self.code = not self.code
        if self.code:
            return line
        try:
            if self.columns and line.startswith("|"):
                self.heads += 1
                return self.row(line) if self.heads > 2 else line
            self.columns = None
            if re.match(r" *<!--\s*=", line):
                raise Wrong("a line that begins with a comment ends the paragraph: begin it with a word")
            self.refuse_unmarked(line)
            return MARKED.sub(self.figure, line)
        except Wrong as wrong:
            raise Wrong(f"{os.path.relpath(self.path, ROOT)}:{number}: {wrong}") from None

    def refuse_unmarked(self, line):
        text = re.sub(r"`[^`]*`|!?\[[^]]*\]", "", MARKED.sub("", line))
        found = re.search(rf"{NUMBER} %", text)
        if found and not line.startswith(("#", "|")) and self.path.name != "papers.md":
            raise Wrong(f"{found[0]} has no marker that says where it is from")

    def row(self, line):
        first = line.split("|")[1]
        name = re.sub(r"[*`]", "", first).strip()
        cells = [cell(spec, self.context, name) for spec in self.columns]
        self.seen += len(cells)
        return f"|{first}| " + " | ".join(cells) + " |"

    def figure(self, found):
        kind, said, number, per_cent = found.groups()
        if kind == "from":
            table, *words = (part.strip() for part in said.split(";"))
            self.context = {"table": table, "words": words}
        elif kind == "table":
            self.columns, self.heads = said.split(" || "), 0
        elif number is None:
            raise Wrong(f"no number after <!--= {said} -->")
        else:
            self.seen += 1
            value = evaluated(said, self.context, of_ratio=100.0 if per_cent else 1.0)[0]
            decimals = len(number.partition(".")[2])
            text = written(value, decimals, plus=number.startswith("+"))
            text = text if "," in number or abs(value) < 10000 else text.replace(",", "")
            return found[0].replace(f"-->{number}", f"-->{text}")
        return found[0]


def pages():
    return [ROOT / "README.md", *sorted(HERE.glob("*.md"))]


def main(words):
    if words in (["-h"], ["--help"]):
        print("usage:", __doc__)
        return 0
    write = "--write" in words
    given = [Path(word).resolve() for word in words if word != "--write"]
    wrong = seen = 0
    for path in given or pages():
        try:
            page = Page(path)
        except Wrong as problem:
            print(problem)
            wrong += 1
            continue
        seen += page.seen
        before = path.read_text("utf-8").split("\n")
        if write:
            path.write_text(page.text, encoding="utf-8")
        for number, (old, new) in enumerate(zip(before, page.lines), 1):
            if old != new and not write:
                print(f"{os.path.relpath(path, ROOT)}:{number}: the tables have: {new}")
                wrong += 1
    print(f"{seen} figures" + ("" if wrong else ": all as their tables have them"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
