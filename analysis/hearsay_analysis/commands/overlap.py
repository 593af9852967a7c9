"""Draw what threads and packets did in a few iterations.

    analysis/hearsay overlap runs/mine --iterations 100-102 -o overlap.svg

What both threads of every rank did, and the packets between ranks. The run must have been trained with --set
report.trace=true. Clocks are aligned as by `trace`. What is printed is the part of the communication that was hidden
behind computation in the time drawn.
"""
import re
from pathlib import Path

from hearsay_analysis.errors import UsageError

PACKAGES = ("numpy", "pandas", "matplotlib")


def arguments(parser):
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--iterations", default="100-101", metavar="A-B", help="first and last (default: 100-101)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("overlap.svg"),
        help="the picture: .svg, .pdf or .png (default: overlap.svg)",
    )


def run(options):
    """Writes the picture and prints what was hidden."""
    from hearsay_analysis import text
    from hearsay_analysis.drawing import output, style
    from hearsay_analysis.trace import files, merge, timeline

    iterations = re.fullmatch(r"(\d+)-(\d+)", options.iterations)
    if not iterations or int(iterations[1]) > int(iterations[2]):
        raise UsageError(f"--iterations must be two whole numbers like 100-101, not {options.iterations!r}")
    output.require_picture(options.output)
    style.apply()
    trace, _ = merge.merge(files.read_traces(options.run))
    first, last = int(iterations[1]), int(iterations[2])
    output.write_picture(options.output, timeline.draw(trace, first, last))
    hidden = timeline.hidden_fraction(trace, *timeline.window(trace, first, last))
    print(
        f"{options.output}: iterations {first} to {last}; {text.percent(hidden, 1)} of the communication threads' "
        "time lies behind work of their rank"
    )
