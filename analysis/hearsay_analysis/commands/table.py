"""Print the results of a sweep as Markdown tables.

    analysis/hearsay table runs/sweeps/mnist
    analysis/hearsay table runs/sweeps/gtopk-residual --best optimizer.learning_rate
    analysis/hearsay table runs/sweeps/outer-rates --best optimizer.learning_rate --within 0.01
    analysis/hearsay table runs/sweeps/skew runs/sweeps/skew-others --csv > skew.csv; analysis/hearsay table skew.csv

One table a combination of ranks and axes, one row a method. Every number is read from the run folders (summary.json).
Figures are mean ± sample standard deviation over seeds. With --best every method has the value of that axis, in
brackets, with which the mean of the task's metric is best; a run that diverged counts as the worst. With --within it is
the smallest value that comes so close to the best mean, for the largest that learns is often at an edge. Runs that
learn nothing (simulated, with gradients that are drawn) are shown by the time of an iteration. --csv prints a row a run
instead, of which the tables can be made again where the folders are gone.
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
_TRAFFIC = [  # head, figure of a summary, decimals (None: two digits that count)
    ("messages, %", lambda s: _scaled(s, "messages_fraction", 100), None),
    ("bytes, %", lambda s: _scaled(s, "bytes_fraction", 100), None),
]
_DISTANCE = [("consensus distance", lambda s: s.get("consensus_distance"), 2)]
_TIME = [("an iteration, s", lambda s: s.get("time_per_iteration_s"), 3)]


def arguments(parser):
    parser.add_argument("source", type=Path, nargs="+", help="a sweep's output folder, or what --csv has written")
    parser.add_argument("--csv", action="store_true", help="a row a run, comma-separated")
    parser.add_argument("--best", metavar="AXIS", help="one row a method: with the best value of this axis")
    parser.add_argument(
        "--within",
        type=float,
        metavar="D",
        help="with --best: the smallest value whose mean is at most D behind, in the metric's units (accuracy: 0 to 1)",
    )


def _scaled(summary, key, factor):
    return None if summary.get(key) is None else factor * summary[key]


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


def _choice(candidates, within):
    """The best of (reached, value, summaries), or the one of the smallest value that is `within` of it."""
    best = max(candidates, key=lambda candidate: candidate[0])
    if within is None:
        return best
    close = [candidate for candidate in candidates if candidate[0] >= best[0] - within]
    try:
        return min(close, key=lambda candidate: float(candidate[1]))
    except (TypeError, ValueError) as error:
        raise UsageError(f"--within: {best[1]!r} is no number; take an axis that has a smallest one") from error


def _best_of(groups, axis, within):
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
            _, value, summaries = _choice(candidates, within)
            best.setdefault(key, {})[method if value is None else f"{method} ({value})"] = summaries
    return best


def _qualities(metric):
    """The columns of what runs of this metric have reached."""
    factor, decimals, unit = (100, 2, ", %") if metric.fraction else (1, 3, "")

    def of(name):
        def figure(summary):
            value = getattr(quality_of(summary), name)
            return None if value is None else factor * value

        return figure

    return [
        (f"{metric.label} of the mean model{unit}", of("mean_model"), decimals),
        (f"worst rank{unit}", of("rank_worst"), decimals),
    ]


def _share(name):
    """The column of a fraction that an algorithm reports of itself, e.g. gTop-k's lost mass."""
    head = f"{name.removesuffix('_fraction').replace('_', ' ')}, %"
    return head, lambda s: _scaled(s.get("shares", {}), name, 100), 1


def _columns(summaries):
    """The columns of one table."""
    learns = any(quality_of(s).mean_model is not None for s in summaries)
    shares = [_share(name) for name in sorted({name for s in summaries for name in s.get("shares", {})})]
    if not learns and any(s.get("time_per_iteration_s") for s in summaries):
        return [*_TIME, *_TRAFFIC, *shares]
    return [*_qualities(_metric(summaries)), *_TRAFFIC, *_DISTANCE, *shares]


def _row(method, summaries, columns):
    good = [s for s in summaries if s["status"] == "finished"]
    if not good:
        return [method, summaries[0]["status"], *[""] * (len(columns) - 1), len(summaries)]
    cells = [
        text.spread([value for value in map(figure, good) if value is not None], decimals)
        for _, figure, decimals in columns
    ]
    lost = f" ({len(summaries) - len(good)} diverged)" if len(good) < len(summaries) else ""
    return [method, *cells, f"{len(good)}{lost}"]


def _table(methods):
    columns = _columns([s for summaries in methods.values() for s in summaries])
    heads = ["method", *(head for head, *_ in columns), "seeds"]
    return markdown.table(heads, [_row(method, summaries, columns) for method, summaries in methods.items()])


def run(options):
    """Prints the tables."""
    if options.within is not None and (not options.best or options.within < 0):
        raise UsageError(f"--within {options.within:g}: 0 or more, and only with --best")
    runs = [run for source in options.source for run in (read_rows(source) if source.is_file() else read_ended(source))]
    if options.csv:
        write_rows(runs, sys.stdout)
        return
    groups = _grouped(runs)
    if options.best:
        groups = _best_of(groups, options.best, options.within)
    for key in sorted(groups):
        print(f"\n**P = {key[0]}{''.join(', ' + part for part in key[1:])}**\n\n{_table(groups[key])}", end="")
