"""Print the results of a sweep as Markdown tables.

    analysis/hearsay table runs/sweeps/mnist
    analysis/hearsay table runs/sweeps/gtopk-residual --best optimizer.learning_rate
    analysis/hearsay table runs/sweeps/skew runs/sweeps/skew-others --csv > skew.csv; analysis/hearsay table skew.csv

One table a combination of ranks and axes, one row a method. Every number is read from the run folders (summary.json).
Figures are mean ± sample standard deviation over seeds. With --best every method has the value of that axis, in
brackets, with which the mean of the task's metric is best; a run that diverged counts as the worst. --csv prints
a row a run instead, of
which the tables can be made again where the folders are gone.
"""
import statistics
import sys
from pathlib import Path

from hearsay_analysis import text
from hearsay_analysis.errors import UsageError
from hearsay_analysis.page import markdown
from hearsay_analysis.runs.points import read_ended
from hearsay_analysis.runs.quality import ACCURACY, quality_of
from hearsay_analysis.runs.rows import read_rows, write_rows

PACKAGES = ()
_COLUMNS = [  # head, key of summary.json, factor, decimals
    ("messages, %", "messages_fraction", 100, 1),
    ("bytes, %", "bytes_fraction", 100, 1),
    ("consensus distance", "consensus_distance", 1, 2),
]


def arguments(parser):
    parser.add_argument("source", type=Path, nargs="+", help="a sweep's output folder, or what --csv has written")
    parser.add_argument("--csv", action="store_true", help="a row a run, comma-separated")
    parser.add_argument("--best", metavar="AXIS", help="one row a method: with the best value of this axis")


def _grouped(runs):
    """{(ranks, "axis value", …): {method: [summary]}}"""
    groups = {}
    for run in runs:
        key = (run.ranks, *(f"{name} {value}" for name, value in run.axis.items()))
        groups.setdefault(key, {}).setdefault(run.method, []).append(run.summary)
    return groups


def _metric(summaries):
    """What finished runs are judged by."""
    return next((quality_of(s).metric for s in summaries if s["status"] == "finished"), ACCURACY)


def _reached(summaries):
    """The mean over runs, larger is better; one that diverged counts as the worst."""
    metric = _metric(summaries)
    sign = 1 if metric.higher_is_better else -1
    return sign * statistics.mean(
        quality_of(s).mean_model if s["status"] == "finished" else metric.worst for s in summaries
    )


def _best_of(groups, axis):
    """The groups without `axis`, every method with its best value of it. Throws UsageError where there is no such
    axis."""
    axes = sorted({part.rsplit(" ", 1)[0] for key in groups for part in key[1:]})
    if axis not in axes:
        raise UsageError(f"no axis {axis!r} in this sweep; there are: {', '.join(axes) or 'none'}")
    choices = {}
    for key, methods in groups.items():
        value = next((part.removeprefix(f"{axis} ") for part in key[1:] if part.startswith(f"{axis} ")), None)
        rest = tuple(part for part in key if not str(part).startswith(f"{axis} "))
        for method, summaries in methods.items():
            choices.setdefault(rest, {}).setdefault(method, []).append((_reached(summaries), value, summaries))
    best = {}
    for key, methods in choices.items():
        for method, candidates in methods.items():
            _, value, summaries = max(candidates, key=lambda candidate: candidate[0])
            best.setdefault(key, {})[method if value is None else f"{method} ({value})"] = summaries
    return best


def _row(method, summaries, shares):
    good = [s for s in summaries if s["status"] == "finished"]
    if not good:
        return [method, summaries[0]["status"], *[""] * (len(_COLUMNS) + 1 + len(shares)), len(summaries)]
    factor, decimals = (100, 2) if _metric(good).fraction else (1, 3)
    reached = [quality_of(s) for s in good]
    cells = [
        text.spread([factor * value for value in values if value is not None], decimals)
        for values in ([q.mean_model for q in reached], [q.rank_worst for q in reached])
    ]
    cells += [
        text.spread([factor * s[key] for s in good if s.get(key) is not None], decimals)
        for _, key, factor, decimals in _COLUMNS
    ]
    own = [text.spread([100 * s["shares"][name] for s in good if name in s.get("shares", {})], 1) for name in shares]
    lost = f" ({len(summaries) - len(good)} diverged)" if len(good) < len(summaries) else ""
    return [method, *cells, *own, f"{len(good)}{lost}"]


def _table(methods):
    """shares: fractions that algorithms report of themselves, e.g. gTop-k's lost mass."""
    shares = sorted({name for summaries in methods.values() for s in summaries for name in s.get("shares", {})})
    own = [f"{name.removesuffix('_fraction').replace('_', ' ')}, %" for name in shares]
    metric = _metric([s for summaries in methods.values() for s in summaries])
    unit = ", %" if metric.fraction else ""
    quality = [f"{metric.label} of the mean model{unit}", f"worst rank{unit}"]
    heads = ["method", *quality, *(head for head, *_ in _COLUMNS), *own, "seeds"]
    return markdown.table(heads, [_row(method, summaries, shares) for method, summaries in methods.items()])


def run(options):
    """Prints the tables."""
    runs = [run for source in options.source for run in (read_rows(source) if source.is_file() else read_ended(source))]
    if options.csv:
        write_rows(runs, sys.stdout)
        return
    groups = _grouped(runs)
    if options.best:
        groups = _best_of(groups, options.best)
    for key in sorted(groups):
        print(f"\n**P = {key[0]}{''.join(', ' + part for part in key[1:])}**\n\n{_table(groups[key])}", end="")
