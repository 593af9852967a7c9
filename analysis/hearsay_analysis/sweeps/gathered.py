"""The runs of a sweep folder, seeds gathered, and the Pareto front of accuracy against bytes."""
import json
import statistics
from dataclasses import dataclass

from hearsay_analysis.runs.points import read_points


@dataclass(frozen=True)
class Point:
    """One method, ranks and axis values, over its seeds. The figures are of finished runs only; diverged and unfinished
    are numbers of runs."""

    method: str
    ranks: int
    axis: tuple  # of (key, value)
    accuracies: tuple
    bytes_sent: tuple
    fractions: dict  # name → tuple: messages_fraction, bytes_fraction, accuracy_rank_min
    diverged: int
    unfinished: int

    @property
    def seeds(self):
        return len(self.accuracies)

    @property
    def accuracy(self):
        """Mean over seeds of the averaged model's accuracy; None where no run has finished."""
        return statistics.mean(self.accuracies) if self.accuracies else None

    @property
    def accuracy_deviation(self):
        """Sample standard deviation over seeds; None for fewer than two."""
        return statistics.stdev(self.accuracies) if self.seeds > 1 else None

    @property
    def bytes_mean(self):
        return statistics.mean(self.bytes_sent) if self.bytes_sent else None

    @property
    def bytes_deviation(self):
        return statistics.stdev(self.bytes_sent) if self.seeds > 1 else None

    def mean(self, name):
        values = [value for value in self.fractions[name] if value is not None]
        return statistics.mean(values) if values else None


def _gathered(key, summaries):
    method, ranks, axis = key
    good = [s for s in summaries if s and s["status"] == "finished" and s["accuracy_mean_model"] is not None]
    names = ("messages_fraction", "bytes_fraction", "accuracy_rank_min")
    return Point(
        method,
        ranks,
        axis,
        tuple(s["accuracy_mean_model"] for s in good),
        tuple(s["bytes_sent"] for s in good),
        {name: tuple(s.get(name) for s in good) for name in names},
        sum(1 for s in summaries if s and s["status"] == "diverged"),
        sum(1 for s in summaries if not s or s["status"] not in ("finished", "diverged")),
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
    """Those points that no other beats: is as accurate or more with as many bytes or fewer, and better in one of the
    two.

    Means over seeds; points of which a run diverged are out. In the order of bytes."""
    able = [p for p in points if p.seeds and not p.diverged]

    def beats(a, b):
        no_worse = a.accuracy >= b.accuracy and a.bytes_mean <= b.bytes_mean
        return no_worse and (a.accuracy > b.accuracy or a.bytes_mean < b.bytes_mean)

    return sorted((p for p in able if not any(beats(other, p) for other in able)), key=lambda p: p.bytes_mean)
