"""What a run is judged by: the metric of its task, and what the run reached. Runs of older versions have accuracy."""
from dataclasses import dataclass

from hearsay_analysis import text


@dataclass(frozen=True)
class Metric:
    """fraction: in [0, 1] and shown in per cent; else a plain number."""

    name: str
    higher_is_better: bool
    fraction: bool

    @property
    def label(self):
        return "BLEU" if self.name == "bleu" else self.name.replace("_", " ")

    @property
    def worst(self):
        """What counts for a run that reached nothing."""
        return 0.0 if self.higher_is_better else float("inf")

    def best(self, values):
        return max(values) if self.higher_is_better else min(values)

    def as_good(self, a, b):
        """a is as good as b, or better."""
        return a >= b if self.higher_is_better else a <= b

    def text(self, value, deviation=None):
        """ "97.56 %", "97.56 ± 0.17 %", "1.884", "1.884 ± 0.012"."""
        if self.fraction:
            return text.percent(value) if deviation is None else f"{100 * value:.2f} ± {100 * deviation:.2f} %"
        return text.significant(value, 4) + (f" ± {text.significant(deviation, 2)}" if deviation is not None else "")


ACCURACY = Metric("accuracy", True, True)


@dataclass(frozen=True)
class Quality:
    """How good the averaged model and the worst rank are; None: not measured."""

    metric: Metric
    mean_model: float | None = None
    rank_worst: float | None = None


def _metric(entry):
    return Metric(entry["name"], entry["better"] == "higher", entry["fraction"])


def quality_of(summary):
    """By a summary."""
    if summary.get("metrics"):
        first = summary["metrics"][0]
        return Quality(_metric(first), first["mean_model"], first["rank_worst"])
    return Quality(ACCURACY, summary.get("accuracy_mean_model"), summary.get("accuracy_rank_min"))


def metric_of(record):
    """By an evaluation record: a dict or a row of a table."""
    entries = record.get("metrics")
    return _metric(entries[0]) if isinstance(entries, list) and entries else ACCURACY


def value_in(record, metric):
    """What an evaluation record says of the averaged model by this metric; None where it does not."""
    entries = record.get("metrics")
    for entry in entries if isinstance(entries, list) else []:
        if entry["name"] == metric.name:
            return entry["mean_model"]
    return record.get(f"{metric.name}_mean_model")
