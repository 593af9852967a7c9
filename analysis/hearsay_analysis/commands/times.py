"""Print how long the runs of sweeps took to reach a metric.

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
from hearsay_analysis.runs.quality import ACCURACY, quality_of, value_in

PACKAGES = ()


def arguments(parser):
    parser.add_argument("sweeps", nargs="+", type=Path, help="output folders of `sweep`")
    parser.add_argument("--ranks", type=int, default=4, help="runs of so many ranks (default: 4)")
    parser.add_argument("--target", type=float, help="accuracy, a fraction, or a value of the task's metric")


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


def _best(evaluations, metric):
    values = [value_in(e, metric) for e in evaluations]
    return metric.best([value for value in values if value is not None] or [metric.worst])


def _common_level(sweeps, metric):
    """What all finished runs reached, rounded to half a per cent, of plain numbers to a hundredth, on the easy side."""
    reached = [_best(e, metric) for runs in sweeps for s, e in runs.values() if s["status"] == "finished"]
    if not reached:
        return metric.worst
    steps = 200 if metric.fraction else 100
    return (
        math.floor(steps * min(reached)) / steps
        if metric.higher_is_better
        else math.ceil(steps * max(reached)) / steps
    )


def _short(value, metric):
    return f"{100 * value:.2f}" if metric.fraction else f"{value:.4g}"


def _cells(run, target, metric):
    summary, evaluations = run
    if summary["status"] != "finished":
        return [summary["status"], "", ""]
    # A phase is what the computing thread does; iterations without evaluations are the whole.
    trained_s = summary["time_per_iteration_s"] * summary["iterations"]
    reached = next(
        (e for e in evaluations if (value := value_in(e, metric)) is not None and metric.as_good(value, target)), None
    )
    time = (
        f"{reached['time_s']:.0f} s, epoch {reached['epoch']:.0f}"
        if reached
        else f"not in {summary['epochs']:.0f} epochs ({metric.text(_best(evaluations, metric))})"
    )
    return [time, f"{1e3 * summary['time_per_iteration_s']:.1f} ms", f"{100 * summary['wait_s'] / trained_s:.1f} %"]


def _row(method, sweeps, target, metric):
    there = [runs[method][0] for runs in sweeps if method in runs]
    of_sweep = [_cells(runs[method], target, metric) if method in runs else ["–"] * 3 for runs in sweeps]
    cells = [cell for three in of_sweep for cell in three]
    reached = [quality_of(s).mean_model for s in there]
    ends = " / ".join(_short(value, metric) for value in reached if value is not None)
    return [method, *cells, f"{1e-6 * there[0]['bytes_sent']:.0f}", ends]


def run(options):
    """Prints the table."""
    sweeps = [_load(folder, options.ranks) for folder in options.sweeps]
    summaries = [s for runs in sweeps for s, _ in runs.values() if s["status"] == "finished"]
    metric = quality_of(summaries[0]).metric if summaries else ACCURACY
    target = options.target or _common_level(sweeps, metric)
    heads = [head for folder in options.sweeps for head in (f"{folder.name}: time", "iteration", "waiting")]
    rows = [_row(method, sweeps, target, metric) for method in sweeps[0]]
    goal = f"{100 * target:.1f} %" if metric.fraction else f"{metric.label} {target:.4g}"
    print(f"P = {options.ranks}, time to {goal}\n")
    reached = metric.label + (", %" if metric.fraction else "")
    print(markdown.table(["method", *heads, "bytes, MB", reached], rows), end="")
