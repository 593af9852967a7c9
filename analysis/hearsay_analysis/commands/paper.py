"""Make the papers' figures and tables, ours beside theirs.

    analysis/hearsay paper list
    HEARSAY_DATA=data analysis/hearsay paper run eventgrad-table-1
    analysis/hearsay paper draw eventgrad-table-1
    analysis/hearsay paper document -o docs/results/papers.md

`run` makes the runs that are missing (as `sweep` does; hours for some): by mpirun, simulated (needs the preset
simulator), on scripts/testbed (needs root) or by a benchmark. `run --quick` makes a few iterations of one seed of each,
which shows that everything works and nothing else. `draw` prints a table and draws figures; `document` writes
a page with a line a claim, and beside it a page a paper. What was scaled down is said with every result.
"""
from pathlib import Path

PACKAGES = ("numpy", "pandas", "matplotlib", "yaml")


def arguments(parser):
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = {}
    for name, words in (
        ("list", "what there is, and how many of its runs"),
        ("run", "make the runs of NAME"),
        ("draw", "print and draw NAME"),
        ("document", "all results as Markdown pages"),
    ):
        add[name] = actions.add_parser(name, help=words, description=words)
    for name in ("run", "draw"):
        add[name].add_argument("name", metavar="NAME", help="as `list` prints it")
    add["run"].add_argument("--quick", action="store_true", help="60 iterations of seed 1, into runs/sweeps-quick")
    add["run"].add_argument("--program", type=Path, help="hearsay, the simulator or the benchmark, if not below build/")
    for name in ("list", "draw", "document"):
        add[name].add_argument(
            "--runs", type=Path, default=Path("runs/sweeps"), help="the sweeps' folders (default: runs/sweeps)"
        )
    add["draw"].add_argument("-o", "--output", type=Path, default=Path("."), metavar="FOLDER", help="where figures go")
    add["document"].add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the page of claims")


def run(options):
    """Does the action."""
    from hearsay_analysis.drawing import style
    from hearsay_analysis.paper import commands

    style.apply()
    if options.action == "list":
        commands.show_list(options.runs)
    elif options.action == "run":
        commands.run(options.name, options.quick, options.program)
    elif options.action == "draw":
        commands.draw(options.name, options.runs, options.output)
    else:
        commands.document(options.runs, options.output)
