"""The runs below a sweep's output folder: what each of them is, and its summary as far as it has one."""
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import read_object, read_text

POINT_FILE = "point.json"


@dataclass(frozen=True)
class SweptRun:
    """axis: dotted key → value. summary is None while the run has no whole one: it goes on, or it was killed."""

    folder: Path
    method: str
    ranks: int
    seed: int
    axis: dict
    summary: dict | None

    @property
    def finished(self):
        return bool(self.summary) and self.summary["status"] == "finished"


def _summary(folder):
    try:
        summary = json.loads(read_text(folder / "summary.json"))
    except (DataError, ValueError):
        return None
    return summary if isinstance(summary, dict) and "status" in summary else None


def _read(file):
    point = read_object(file)
    if not {"method", "ranks", "seed", "axis"} <= point.keys():
        raise DataError(f"{file} has not the keys that `sweep` writes: method, ranks, seed, axis")
    return SweptRun(
        file.parent, point["method"], point["ranks"], point["seed"], point["axis"], _summary(file.parent)
    )


def runs_below(folder):
    """[SweptRun], by folder; none where the folder is missing. Throws DataError for a point.json of another kind."""
    return [_read(file) for file in sorted(Path(folder).glob(f"**/{POINT_FILE}"))]


def read_points(folder):
    """[SweptRun] of a sweep folder, at least one. Throws DataError."""
    if not Path(folder).is_dir():
        raise DataError(f"no sweep folder {folder}; `analysis/hearsay sweep` makes one")
    runs = runs_below(folder)
    if not runs:
        raise DataError(f"no {POINT_FILE} below {folder}: no sweep folder, or none of its runs has begun yet")
    return runs


def read_ended(folder):
    """Those of read_points that have a summary, at least one; the others are named on stderr. Throws DataError."""
    runs = read_points(folder)
    ended = [run for run in runs if run.summary]
    for run in runs:
        if not run.summary:
            print(f"{run.folder}: no whole summary, left out", file=sys.stderr)
    if not ended:
        raise DataError(f"no finished runs below {folder}; `analysis/hearsay sweep` makes them")
    return ended
