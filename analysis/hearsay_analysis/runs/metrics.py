"""metrics.rankNNNN.jsonl of all ranks, as tables and arrays. Fields and units: docs/guide/report-format.md."""
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import rank_files, read_lines

COUNTERS = [
    "events",
    "messages",
    "deferred",
    "packets",
    "puts",
    "bytes_sent",
    "payload_bytes",
    "index_bytes",
    "header_bytes",
    "control_bytes",
]
BYTE_KINDS = ["payload_bytes", "index_bytes", "header_bytes", "control_bytes"]


@dataclass(frozen=True)
class SegmentHistory:
    """What one rank's trigger saw, a row an iteration, a column a segment. norms and thresholds are None where the
    exchange has no trigger; a threshold of +∞ is NaN."""

    iterations: np.ndarray
    events: np.ndarray
    norms: np.ndarray | None
    thresholds: np.ndarray | None


@dataclass(frozen=True)
class Metrics:
    """What all ranks have recorded.

    iterations: a row for every iteration that all ranks have; counters summed over ranks, `loss` their mean, `time_s`
    the slowest rank's. evaluations: rank 0's. last: totals of the counters, each rank at its own last record; None
    where there is none. oldest: the age of the oldest copy that any rank has mixed, in iterations. segments: rank →
    SegmentHistory."""

    iterations: pd.DataFrame
    evaluations: pd.DataFrame
    last: dict
    oldest: int
    segments: dict


def _table(records, kind):
    return pd.DataFrame([r for r in records if r.get("record") == kind])


def _history(records):
    rows = [r for r in records if r.get("record") == "segments"]
    if not rows:
        return None

    def stacked(key):
        return np.array([r[key] for r in rows], dtype=float) if key in rows[0] else None

    return SegmentHistory(
        np.array([r["iteration"] for r in rows]), stacked("events"), stacked("norms"), stacked("thresholds")
    )


def _combined(tables):
    """Sums of counters and mean loss at the iterations that every rank has; slow ranks of a run in progress lag."""
    tables = [table for table in tables if not table.empty]
    if not tables:
        return pd.DataFrame(columns=["iteration", "epoch", "time_s", "loss", *COUNTERS])
    everything = pd.concat(tables)
    groups = everything.groupby("iteration")
    counters = [name for name in COUNTERS if name in everything]
    combined = groups[counters].sum()
    combined["loss"] = groups["loss"].apply(lambda losses: pd.to_numeric(losses).mean(skipna=False))
    combined["epoch"] = groups["epoch"].mean()
    combined["time_s"] = groups["time_s"].max()
    return combined[groups.size() == len(tables)].reset_index()


def _last(tables):
    tables = [table for table in tables if not table.empty]
    return {name: int(sum(table[name].iloc[-1] for table in tables)) if tables else None for name in COUNTERS}


def _oldest(tables):
    name = "staleness_max_iterations"
    return max((int(table[name].iloc[-1]) for table in tables if not table.empty and name in table), default=0)


def read_metrics(folder, ranks):
    """Reads the metrics of all ranks; a rank that has not written yet is left out of the sums. Throws DataError."""
    tables, histories, evaluations = [], {}, pd.DataFrame()
    for rank, path in rank_files(folder, "metrics.rank*.jsonl", ranks):
        records = read_lines(path)
        try:
            tables.append(_table(records, "iteration"))
            history = _history(records)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: records have not the fields of docs/guide/report-format.md ({error!r})") from None
        if history is not None:
            histories[rank] = history
        if evaluations.empty:  # rank 0 writes them, or whoever has taken over its duties
            evaluations = _table(records, "evaluation")
    return Metrics(_combined(tables), evaluations, _last(tables), _oldest(tables), histories)
