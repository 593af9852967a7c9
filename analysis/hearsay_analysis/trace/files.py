"""trace.rankNNNN.json of a run, as `report.trace: true` makes the ranks write them."""
from dataclasses import dataclass
from pathlib import Path

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import rank_files, read_object

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class RankTrace:
    """Events in the Chrome trace format; ts and dur in µs of this rank's clock, pid is the rank. origin: what the
    host's clock read at 0; host and origin are None in traces that do not tell."""

    rank: int
    events: list
    host: str | None = None
    origin: float | None = None


@dataclass(frozen=True)
class Packet:
    """From the put on the sender's clock to the consumption on the receiver's, in µs."""

    identity: str
    sender: int
    receiver: int
    sent: float
    consumed: float


def _check(path, rank, ranks, other):
    if other.get("schema_version") != SCHEMA_VERSION:
        raise DataError(
            f"{path} has schema_version {other.get('schema_version')!r}, this program reads {SCHEMA_VERSION}"
        )
    if other.get("rank") != rank or other.get("ranks") != ranks:
        raise DataError(
            f"{path} is of rank {other.get('rank')} of {other.get('ranks')}, not of rank {rank} of {ranks}: files "
            "of two runs are mixed; train again with --overwrite"
        )


def read_traces(run_folder):
    """[RankTrace], by rank. Throws DataError unless all ranks' files are there and whole."""
    folder = Path(run_folder)
    if not folder.is_dir():
        raise DataError(f"no run folder {folder}")
    first = folder / "trace.rank0000.json"
    if not first.exists():
        raise DataError(
            f"{folder} holds no trace.rank0000.json: the run recorded no trace, or has not ended; train with "
            "--set report.trace=true"
        )
    ranks = read_object(first).get("otherData", {}).get("ranks", 0)
    there = rank_files(folder, "trace.rank*.json", ranks)
    absent = next((k for k, (rank, _) in enumerate([*there, (None, None)]) if rank != k), 0)
    if len(there) < ranks:
        written = f"{len(there)} of {ranks} ranks have written one"
        raise DataError(f"{folder} holds no trace.rank{absent:04d}.json: {written}")
    traces = []
    for rank, path in there:
        content = read_object(path)
        _check(path, rank, ranks, content.get("otherData", {}))
        if not isinstance(content.get("traceEvents"), list):
            raise DataError(f"{path} has no list traceEvents: not a Chrome trace")
        other = content["otherData"]
        traces.append(RankTrace(rank, content["traceEvents"], other.get("host"), other.get("origin_us")))
    if not traces:
        raise DataError(f"{first} does not say of how many ranks (otherData.ranks)")
    return traces


def packets(traces):
    """([Packet], how many puts have no consumption: the run ended before they were read)."""
    starts = {e["id"]: e for trace in traces for e in trace.events if e.get("ph") == "s"}
    ends = {e["id"]: e for trace in traces for e in trace.events if e.get("ph") == "f"}
    matched = [
        Packet(key, starts[key]["pid"], end["pid"], starts[key]["ts"], end["ts"])
        for key, end in ends.items()
        if key in starts
    ]
    return matched, len(starts) - len(matched)
