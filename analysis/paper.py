#!/usr/bin/env python3
"""Make the papers' figures and tables from runs of our own, ours beside theirs.

    analysis/paper.py list
    HEARSAY_DATA=data analysis/paper.py run eventgrad-table-1
    analysis/paper.py draw eventgrad-table-1
    analysis/paper.py document -o docs/paper-results.md

`run` makes the runs that are missing (scripts/sweep; hours for some): by mpirun, simulated (needs the preset simulator), on
scripts/testbed (needs root) or by a benchmark. `run --quick` makes a few iterations of one seed of each, which shows that
everything works and nothing else. `draw` prints a table and draws figures; `document` writes all of it
as one Markdown page. What was scaled down is said with every result.

Exit codes: 0 done, 2 wrong usage, 3 runs are missing or damaged, or a Python package is missing.
"""
import argparse
from pathlib import Path

from hearsay_analysis.errors import run_script
from hearsay_analysis.interpreter import need


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = {}
    for name, words in (
        ("list", "what there is, and how many of its runs"),
        ("run", "make the runs of NAME"),
        ("draw", "print and draw NAME"),
        ("document", "all results as one Markdown page"),
    ):
        add[name] = commands.add_parser(name, help=words, description=words)
    for name in ("run", "draw"):
        add[name].add_argument("name", metavar="NAME", help="as `list` prints it")
    add["run"].add_argument("--quick", action="store_true", help="60 iterations of seed 1, into runs/sweeps-quick")
    add["run"].add_argument("--program", type=Path, help="hearsay, the simulator or the benchmark, if not below build/")
    for name in ("list", "draw", "document"):
        add[name].add_argument(
            "--runs", type=Path, default=Path("runs/sweeps"), help="the sweeps' folders (default: runs/sweeps)"
        )
    add["draw"].add_argument("-o", "--output", type=Path, default=Path("."), metavar="FOLDER", help="where figures go")
    add["document"].add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the page")
    return parser.parse_args()


def main():
    options = arguments()
    need("numpy", "pandas", "matplotlib", "yaml")
    from hearsay_analysis import style
    from hearsay_analysis.paper import commands

    style.apply()
    if options.command == "list":
        commands.show_list(options.runs)
    elif options.command == "run":
        commands.run(options.name, options.quick, options.program)
    elif options.command == "draw":
        commands.draw(options.name, options.runs, options.output)
    else:
        commands.document(options.runs, options.output)


if __name__ == "__main__":
    run_script("paper", main)
