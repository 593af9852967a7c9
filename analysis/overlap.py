#!/usr/bin/env python3
"""Draw the time line of a few iterations: what both threads of every rank did, and the packets between ranks.

    analysis/overlap.py runs/mine --iterations 100-102 -o overlap.svg

The run must have been trained with --set report.trace=true. Clocks are aligned as by analysis/merge_trace.py. What is
printed is the part of the communication that was hidden behind computation in the time drawn.

Exit codes: 0 done, 2 wrong usage, 3 a trace is missing or damaged, or a Python package is missing.
"""
import argparse
import re
from pathlib import Path

from hearsay_analysis.errors import UsageError, run_script
from hearsay_analysis.interpreter import need


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--iterations", default="100-101", metavar="A-B", help="first and last (default: 100-101)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("overlap.svg"),
        help="the picture: .svg, .pdf or .png (default: overlap.svg)",
    )
    return parser.parse_args()


def main():
    options = arguments()
    iterations = re.fullmatch(r"(\d+)-(\d+)", options.iterations)
    if not iterations or int(iterations[1]) > int(iterations[2]):
        raise UsageError(f"--iterations must be two whole numbers like 100-101, not {options.iterations!r}")
    if options.output.suffix not in (".svg", ".pdf", ".png"):
        raise UsageError(f"-o {options.output}: the name must end in .svg, .pdf or .png")
    need("numpy", "pandas", "matplotlib")
    from hearsay_analysis import output, style, text
    from hearsay_analysis.trace import files, merge, timeline

    style.apply()
    trace, _ = merge.merge(files.read_traces(options.run))
    first, last = int(iterations[1]), int(iterations[2])
    output.write_picture(options.output, timeline.draw(trace, first, last))
    hidden = timeline.hidden_fraction(trace, *timeline.window(trace, first, last))
    print(
        f"{options.output}: iterations {first} to {last}; {text.percent(hidden, 1)} of the communication threads' "
        "time lies behind work of their rank"
    )


if __name__ == "__main__":
    run_script("overlap", main)
