"""Run folders of a sweep with summaries to order, and the rows of a Markdown table."""
import json
import re

from run_folders import make_run


def add_run(sweep, method, ranks=4, seed=1, axis=None, accuracy=0.9, **summary):
    """A finished run of a method; axis: dotted key → value; summary: what its summary.json says instead."""
    slug = re.sub(r"[^a-z0-9.]+", "-", method.lower()).strip("-")
    values = "/".join(str(value) for value in (axis or {}).values())
    folder = sweep / f"p{ranks}" / values / slug / f"seed{seed}"
    make_run(folder, ranks=ranks, iterations=10, seed=seed, accuracy=accuracy, segments=False)
    point = {"method": method, "ranks": ranks, "seed": seed, "axis": axis or {}}
    (folder / "point.json").write_text(json.dumps(point))
    file = folder / "summary.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **summary}))
    return folder


def table_rows(said):
    """[[cell]] of the Markdown tables in a text, heads and rules left out."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines() if line.startswith("|")]
    ruled = {number for number, row in enumerate(rows) if set(row[-1]) == {"-"}}
    return [row for number, row in enumerate(rows) if number not in ruled and number + 1 not in ruled]
