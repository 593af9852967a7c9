#!/usr/bin/env python3
"""Draws how far every rank of each run has come against time: who waits for a straggler, and who does not.

    analysis/plot_progress.py runs/straggler runs/straggler-lockstep -o straggler.svg

Reads metrics.rankNNNN.jsonl; needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import pathlib
import sys


def progress(file):
    """Seconds and iterations done, record by record."""
    records = [json.loads(line) for line in file.read_text().splitlines()]
    records = [r for r in records if r["record"] == "iteration"]
    return [0.0] + [r["time_s"] for r in records], [0] + [r["iteration"] + 1 for r in records]


def draw(runs, output):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, all_axes = pyplot.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False,
                                       figsize=(4.5 * len(runs), 3.2))
    for axes, run in zip(all_axes[0], runs):
        for file in sorted(run.glob("metrics.rank*.jsonl")):
            axes.plot(*progress(file), linewidth=0.8)
        axes.set_title(run.name)
        axes.set_xlabel("time, s")
    all_axes[0][0].set_ylabel("iterations done, a line a rank")
    figure.tight_layout()
    figure.savefig(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path, help="run folders")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="picture, by its ending .svg, .png, …")
    arguments = parser.parse_args()
    for run in arguments.runs:
        if not any(run.glob("metrics.rank*.jsonl")):
            sys.exit(f"{run}: no metrics.rankNNNN.jsonl there; give folders that a run has written")
    draw(arguments.runs, arguments.output)


if __name__ == "__main__":
    main()
