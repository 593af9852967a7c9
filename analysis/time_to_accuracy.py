#!/usr/bin/env python3
"""Print how long the runs of network sweeps took to an accuracy, as Markdown: a row a method, three columns a sweep.

    analysis/time_to_accuracy.py runs/network/1gbit runs/network/100mbit [--ranks 4] [--target 0.975]

Time is training time of rank 0 up to the first evaluation of the averaged model at or above the target, evaluations
included; "not in E epochs (best)" where there is none. Waiting is the share of its time that a computing thread waits for
messages. Without --target it is the highest level, in half per cent steps, that every run has reached.
"""
import argparse
import json
import math
import sys
from pathlib import Path


def load(folder, ranks):
    """{method: (summary, evaluations)} of one sweep."""
    runs = {}
    for file in sorted(folder.glob("**/point.json")):
        try:
            point = json.loads(file.read_text())
            summary = json.loads((file.parent / "summary.json").read_text())
            lines = (file.parent / "metrics.rank0000.jsonl").read_text().splitlines()
        except (OSError, ValueError):
            print(f"{file.parent}: no whole run, left out", file=sys.stderr)
            continue
        if point["ranks"] == ranks:
            records = [json.loads(line) for line in lines]
            runs[point["method"]] = (summary, [r for r in records if r["record"] == "evaluation"])
    return runs


def best(evaluations):
    return max((e["accuracy_mean_model"] for e in evaluations), default=0.0)


def common_level(sweeps):
    lowest = min(best(e) for runs in sweeps for s, e in runs.values() if s["status"] == "finished")
    return math.floor(200 * lowest) / 200


def cells(run, target):
    summary, evaluations = run
    if summary["status"] != "finished":
        return [summary["status"], "", ""]
    # A phase is what the computing thread does; iterations without evaluations are the whole.
    trained_s = summary["time_per_iteration_s"] * summary["iterations"]
    reached = next((e for e in evaluations if e["accuracy_mean_model"] >= target), None)
    time = f"{reached['time_s']:.0f} s, epoch {reached['epoch']:.0f}" if reached else (
        f"not in {summary['epochs']:.0f} epochs ({100 * best(evaluations):.2f} %)")
    return [time, f"{1e3 * summary['time_per_iteration_s']:.1f} ms", f"{100 * summary['wait_s'] / trained_s:.1f} %"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", nargs="+", type=Path, help="output folders of scripts/sweep")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--target", type=float, help="accuracy, a fraction")
    options = parser.parse_args()
    sweeps = [load(folder, options.ranks) for folder in options.sweeps]
    if not all(sweeps):
        print(f"time_to_accuracy: no finished runs of {options.ranks} ranks below one of the folders; "
              "run scripts/sweep first", file=sys.stderr)
        sys.exit(3)
    target = options.target or common_level(sweeps)
    names = [folder.name for folder in options.sweeps]
    print(f"P = {options.ranks}, time to {100 * target:.1f} %\n")
    print("| method |" + "".join(f" {n}: time | iteration | waiting |" for n in names) + " bytes, MB | accuracy, % |")
    print("|---|" + "---|" * (3 * len(names) + 2))
    for method, (summary, _) in sweeps[0].items():
        row = [cell for runs in sweeps for cell in (cells(runs[method], target) if method in runs else ["–"] * 3)]
        accuracies = [100 * runs[method][0]["accuracy_mean_model"] for runs in sweeps
                      if method in runs and runs[method][0]["accuracy_mean_model"] is not None]
        final = " / ".join(f"{a:.2f}" for a in accuracies)
        print(f"| {method} | {' | '.join(row)} | {1e-6 * summary['bytes_sent']:.0f} | {final} |")


if __name__ == "__main__":
    main()
