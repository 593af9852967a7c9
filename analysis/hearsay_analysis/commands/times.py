"""Print how long the runs of sweeps took to an accuracy.

    analysis/hearsay times runs/network/1gbit runs/network/100mbit [--ranks 4] [--target 0.975]

A row a method, three columns a sweep. Time is training time of rank 0 up to the first evaluation of the averaged model
at or above the target, evaluations included; "not in E epochs (best)" where there is none. Waiting is the share of its
time that a computing thread waits for messages. Without --target it is the highest level, in half per cent steps, that
every run has reached. The table is Markdown.
"""
import math
from pathlib import Path

from hearsay_analysis.errors import DataError
from hearsay_analysis.page import markdown
from hearsay_analysis.runs.json_files import read_lines
from hearsay_analysis.runs.points import read_ended

PACKAGES = ()


def arguments(parser):
    parser.add_argument("sweeps", nargs="+", type=Path, help="output folders of `sweep`")
    parser.add_argument("--ranks", type=int, default=4, help="runs of so many ranks (default: 4)")
    parser.add_argument("--target", type=float, help="accuracy, a fraction")


def _load(folder, ranks):
    """{method: (summary, evaluations)} of one sweep. Throws DataError where there is none."""
    runs = {}
    for run in read_ended(folder):
        if run.ranks == ranks:
            records = read_lines(run.folder / "metrics.rank0000.jsonl")
            runs[run.method] = (run.summary, [r for r in records if r["record"] == "evaluation"])
    if not runs:
        raise DataError(f"no finished runs of {ranks} ranks below {folder}; `analysis/hearsay sweep` makes them")
    return runs


def _best(evaluations):
    return max((e["accuracy_mean_model"] for e in evaluations), default=0.0)


def _common_level(sweeps):
    lowest = min(
        (_best(e) for runs in sweeps for s, e in runs.values() if s["status"] == "finished"), default=0.0
    )
    return math.floor(200 * lowest) / 200


def _cells(run, target):
    summary, evaluations = run
    if summary["status"] != "finished":
        return [summary["status"], "", ""]
    # A phase is what the computing thread does; iterations without evaluations are the whole.
    trained_s = summary["time_per_iteration_s"] * summary["iterations"]
    reached = next((e for e in evaluations if e["accuracy_mean_model"] >= target), None)
    time = (
        f"{reached['time_s']:.0f} s, epoch {reached['epoch']:.0f}"
        if reached
        else f"not in {summary['epochs']:.0f} epochs ({100 * _best(evaluations):.2f} %)"
    )
    return [time, f"{1e3 * summary['time_per_iteration_s']:.1f} ms", f"{100 * summary['wait_s'] / trained_s:.1f} %"]


def _row(method, sweeps, target):
    there = [runs[method][0] for runs in sweeps if method in runs]
    cells = [cell for runs in sweeps for cell in (_cells(runs[method], target) if method in runs else ["–"] * 3)]
    accuracies = [100 * s["accuracy_mean_model"] for s in there if s["accuracy_mean_model"] is not None]
    return [method, *cells, f"{1e-6 * there[0]['bytes_sent']:.0f}", " / ".join(f"{a:.2f}" for a in accuracies)]


def run(options):
    """Prints the table."""
    sweeps = [_load(folder, options.ranks) for folder in options.sweeps]
    target = options.target or _common_level(sweeps)
    heads = [head for folder in options.sweeps for head in (f"{folder.name}: time", "iteration", "waiting")]
    rows = [_row(method, sweeps, target) for method in sweeps[0]]
    print(f"P = {options.ranks}, time to {100 * target:.1f} %\n")
    print(markdown.table(["method", *heads, "bytes, MB", "accuracy, %"], rows), end="")
