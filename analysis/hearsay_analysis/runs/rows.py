"""The runs of a sweep as rows of a CSV file: what tables and figures need of them, when their folders are gone."""
import csv
import io
import json
from pathlib import Path

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import read_text
from hearsay_analysis.runs.points import SweptRun

_OF_SUMMARY = (
    "accuracy_mean_model",
    "accuracy_rank_min",
    "messages_fraction",
    "bytes_fraction",
    "bytes_sent",
    "consensus_distance",
)
_TIME = "time_per_iteration_s"
_WITHOUT_METRICS = ("method", "ranks", "seed", "axis", "status", *_OF_SUMMARY, "shares")
_WITHOUT_TIME = (*_WITHOUT_METRICS, "metrics")
_HEADS = (*_WITHOUT_TIME, _TIME)


def write_rows(runs, stream):
    """One row a run. Numbers as summary.json has them; `axis`, `shares` and `metrics` are JSON."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_HEADS)
    for run in sorted(runs, key=lambda run: (run.ranks, json.dumps(run.axis), run.method, run.seed)):
        *numbers, time = ("" if run.summary.get(key) is None else run.summary[key] for key in (*_OF_SUMMARY, _TIME))
        shares = json.dumps(run.summary["shares"]) if run.summary.get("shares") else ""
        metrics = json.dumps(run.summary["metrics"]) if run.summary.get("metrics") else ""
        axis = json.dumps(run.axis)
        first = [run.method, run.ranks, run.seed, axis, run.summary["status"]]
        writer.writerow([*first, *numbers, shares, metrics, time])


def _run(file, row):
    summary = {key: json.loads(row[key]) if row.get(key) else None for key in (*_OF_SUMMARY, _TIME)}
    summary |= {"status": row["status"], "shares": json.loads(row["shares"] or "{}")}
    summary["metrics"] = json.loads(row.get("metrics") or "[]")
    return SweptRun(file, row["method"], int(row["ranks"]), int(row["seed"]), json.loads(row["axis"]), summary)


def read_rows(file):
    """[SweptRun] of a file that write_rows wrote; their folder is the file. Throws DataError."""
    file = Path(file)
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(file), newline=""), strict=True))
        if not rows or tuple(rows[0]) not in (_HEADS, _WITHOUT_TIME, _WITHOUT_METRICS):
            raise DataError(f"{file} has not the columns that `table --csv` writes: {', '.join(_HEADS)}")
        return [_run(file, row) for row in rows]
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read as rows of runs: {error}") from error
