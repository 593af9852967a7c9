"""Merge the traces of a run's ranks into one, for Perfetto.

    analysis/hearsay trace runs/mine            # → runs/mine/trace.json

chrome://tracing reads it, too. The run must have been trained with --set report.trace=true. Every rank's clock starts
when its training starts. Ranks of one host are put on its clock; else, how far the clocks are apart is estimated from
the packets that went both ways between neighbours. What is printed says how well that worked, and how many packets seem
to arrive before they were sent.
"""
from pathlib import Path

PACKAGES = ("numpy",)


def arguments(parser):
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("-o", "--output", type=Path, help="the merged trace (default: RUN/trace.json)")


def run(options):
    """Writes the merged trace and prints how well the clocks fit."""
    from hearsay_analysis.trace import files, merge

    trace, findings = merge.merge(files.read_traces(options.run))
    output = options.output or options.run / "trace.json"
    merge.write_trace(output, trace)
    print("\n".join(findings))
    print(f"{output}: open it in ui.perfetto.dev")
