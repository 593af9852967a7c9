"""The runs of a sweep folder, seeds gathered, and the Pareto front of the task's metric against bytes."""
import json
import statistics
from dataclasses import dataclass

from hearsay_analysis.runs.points import read_points
from hearsay_analysis.runs.quality import ACCURACY, Metric, quality_of


@dataclass(frozen=True)
class Point:
    """One method, ranks and axis values, over its seeds. The figures are of finished runs only; diverged and unfinished
    are numbers of runs."""

    method: str
    ranks: int
    axis: tuple  # of (key, value)
    values: tuple  # of the averaged model, by `metric`
    bytes_sent: tuple
    others: dict  # name → tuple: messages_fraction, bytes_fraction, rank_worst
    diverged: int
    unfinished: int
    metric: Metric = ACCURACY

    @property
    def seeds(self):
        return len(self.values)

    @property
    def value(self):
        """Mean over seeds of what the averaged model reached; None where no run has finished."""
        return statistics.mean(self.values) if self.values else None

    @property
    def deviation(self):
        """Sample standard deviation over seeds; None for fewer than two."""
        return statistics.stdev(self.values) if self.seeds > 1 else None

    @property
    def bytes_mean(self):
        return statistics.mean(self.bytes_sent) if self.bytes_sent else None

    @property
    def bytes_deviation(self):
        return statistics.stdev(self.bytes_sent) if self.seeds > 1 else None

    def mean(self, name):
        values = [value for value in self.others[name] if value is not None]
        return statistics.mean(values) if values else None


def _gathered(key, summaries):
    method, ranks, axis = key
    ended = [(s, quality_of(s)) for s in summaries if s and s["status"] == "finished"]
    good = [(s, quality) for s, quality in ended if quality.mean_model is not None]
    others = {name: tuple(s.get(name) for s, _ in good) for name in ("messages_fraction", "bytes_fraction")}
    others["rank_worst"] = tuple(quality.rank_worst for _, quality in good)
    return Point(
        method,
        ranks,
        axis,
        tuple(quality.mean_model for _, quality in good),
        tuple(s["bytes_sent"] for s, _ in good),
        others,
        sum(1 for s in summaries if s and s["status"] == "diverged"),
        sum(1 for s in summaries if not s or s["status"] not in ("finished", "diverged")),
        good[0][1].metric if good else ACCURACY,
    )


def read_sweep(folder):
    """{(ranks, axis): [Point]}, in the order of ranks and axis. Throws DataError."""
    methods = {}
    for run in read_points(folder):
        axis = tuple(sorted((name, json.dumps(value)) for name, value in run.axis.items()))
        methods.setdefault((run.method, run.ranks, axis), []).append(run.summary)
    groups = {}
    for key in sorted(methods, key=lambda k: (k[1], k[2], k[0])):
        groups.setdefault(key[1:], []).append(_gathered(key, methods[key]))
    return groups


def pareto_front(points):
    """Those points that no other beats: is as good or better with as many bytes or fewer, and better in one of the
    two.

    Means over seeds; points of which a run diverged are out. In the order of bytes."""
    able = [p for p in points if p.seeds and not p.diverged]

    def beats(a, b):
        no_worse = a.metric.as_good(a.value, b.value) and a.bytes_mean <= b.bytes_mean
        return no_worse and (a.value != b.value or a.bytes_mean < b.bytes_mean)

    return sorted((p for p in able if not any(beats(other, p) for other in able)), key=lambda p: p.bytes_mean)
