#!/usr/bin/env python3
"""Merge the traces of a run's ranks into one file for Perfetto or chrome://tracing, on one clock.

    analysis/merge_trace.py runs/mine            # → runs/mine/trace.json

The run must have been trained with --set report.trace=true. Every rank's clock starts when its training starts. Ranks of
one host are put on its clock; else, how far the clocks are apart is estimated from the packets that went both ways between
neighbours. What is printed says how well that worked, and how many packets seem to arrive before they were sent.

Exit codes: 0 done, 2 wrong usage, 3 a trace is missing or damaged, or a Python package is missing.
"""
import argparse
from pathlib import Path

from hearsay_analysis.errors import run_script
from hearsay_analysis.interpreter import need


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("-o", "--output", type=Path, help="the merged trace (default: RUN/trace.json)")
    return parser.parse_args()


def main():
    options = arguments()
    need("numpy")
    from hearsay_analysis.trace import files, merge

    trace, findings = merge.merge(files.read_traces(options.run))
    output = options.output or options.run / "trace.json"
    merge.write_trace(output, trace)
    print("\n".join(findings))
    print(f"{output}: open it in ui.perfetto.dev")


if __name__ == "__main__":
    run_script("merge_trace", main)
