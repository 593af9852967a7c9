#!/usr/bin/env python3
"""Draw how far runs have come over time, with and without a slow host: a CSV and a PNG.

    analysis/slow_curves.py runs/slow/even runs/slow/link runs/slow/rank --output runs/slow/curves

A panel per sweep folder; in it a line per method and rank group: rank 0, a healthy host, and rank 1, the host that was slowed.
Prints iterations per second of both as a Markdown table.
"""
import argparse
import csv
import json
import sys
from pathlib import Path

HEALTHY, SLOWED = 0, 1


def load(folder):
    """Rows (sweep, method, rank, iteration, time_s, loss) of all runs below a sweep's output folder."""
    rows = []
    for file in sorted(folder.glob("**/point.json")):
        method = json.loads(file.read_text())["method"]
        for rank in (HEALTHY, SLOWED):
            for line in (file.parent / f"metrics.rank{rank:04d}.jsonl").read_text().splitlines():
                record = json.loads(line)
                if record["record"] == "iteration":
                    rows.append((folder.name, method, rank, record["iteration"] + 1, record["time_s"], record["loss"]))
    return rows


def pace(rows, sweep, method, rank):
    """Iterations a second over the whole run."""
    mine = [r for r in rows if r[:3] == (sweep, method, rank)]
    return mine[-1][3] / mine[-1][4]


def draw(rows, sweeps, methods, file):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, len(sweeps), figsize=(4.5 * len(sweeps), 3.6), sharey=True, squeeze=False)
    for axis, sweep in zip(axes[0], sweeps):
        for colour, method in enumerate(methods):
            for rank, style in ((HEALTHY, "-"), (SLOWED, ":")):
                mine = [r for r in rows if r[:3] == (sweep, method, rank)]
                label = f"{method}, {'healthy host' if rank == HEALTHY else 'slowed host'}"
                axis.plot([r[4] for r in mine], [r[3] for r in mine], style, color=f"C{colour}", label=label)
        axis.set_title(sweep)
        axis.set_xlabel("time, s")
    axes[0][0].set_ylabel("iterations done")
    axes[0][-1].legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(file, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", nargs="+", type=Path, help="output folders of scripts/sweep; the first is undisturbed")
    parser.add_argument("--output", type=Path, required=True, help="file name without ending")
    options = parser.parse_args()
    rows = [row for folder in options.sweeps for row in load(folder)]
    sweeps = [folder.name for folder in options.sweeps]
    if set(sweeps) != {row[0] for row in rows}:
        print("slow_curves: no finished runs below one of the folders; run scripts/sweep first", file=sys.stderr)
        sys.exit(3)
    methods = sorted({row[1] for row in rows})
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{options.output}.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["sweep", "method", "rank", "iteration", "time_s", "loss"])
        writer.writerows(rows)
    try:
        draw(rows, sweeps, methods, f"{options.output}.png")
    except ImportError:
        print("slow_curves: no picture, matplotlib is missing (apt-get install python3-matplotlib)", file=sys.stderr)
    print("| method |" + "".join(f" {s}: healthy host | slowed host |" for s in sweeps))
    print("|---|" + "---|" * (2 * len(sweeps)))
    for method in methods:
        cells = [f"{pace(rows, s, method, rank):.0f}" for s in sweeps for rank in (HEALTHY, SLOWED)]
        print(f"| {method} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
