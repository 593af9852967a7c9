"""One trace of all ranks, on rank 0's clock."""
import json
import os

from hearsay_analysis.errors import DataError
from hearsay_analysis.trace import clocks as clock
from hearsay_analysis.trace.files import packets as packets_of

TOLERANCE_US = 1e-3  # rounding of times that are written with three decimals


def merged_events(traces, offsets):
    """All events with ts on one clock, metadata first, then by time. No time is below 0."""
    events = [{**e, "ts": e["ts"] - offsets[trace.rank]} if "ts" in e else e for trace in traces for e in trace.events]
    start = min((e["ts"] for e in events if "ts" in e), default=0.0)
    if start < 0:
        events = [{**e, "ts": e["ts"] - start} if "ts" in e else e for e in events]
    return sorted(events, key=lambda e: e.get("ts", -1.0))


def merge(traces):
    """(the merged Chrome trace, sentences on what was found)."""
    ranks = len(traces)
    packets, unread = packets_of(traces)
    clocks = clock.of_one_host(traces) or clock.align(packets, ranks)
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {
            "schema_version": 1,
            "ranks": ranks,
            "clock": "rank 0's",
            "clock_offsets_us": [float(o) for o in clocks.offsets],
        },
        "traceEvents": merged_events(traces, clocks.offsets),
    }
    return trace, _findings(traces, packets, unread, clocks)


def _findings(traces, packets, unread, clocks):
    spans = sum(1 for trace in traces for e in trace.events if e.get("ph") == "X")
    lines = [f"{len(traces)} ranks, {spans:,} spans, {len(packets):,} packets read, {unread:,} never read"]
    known = [rank for rank in range(1, len(traces)) if rank not in clocks.unknown]
    if known:
        lines.append("clocks ahead of rank 0's: " + ", ".join(f"rank {r} {clocks.offsets[r]:+.1f} µs" for r in known))
        lines.append(
            f"a pair's estimate is wrong by at most {clocks.uncertainty:.1f} µs (half a round trip); pairs disagree "
            f"with the whole by at most {clocks.disagreement:.1f} µs"
            if clock.of_one_host(traces) is None
            else "all ranks ran on one host and read one clock"
        )
    if clocks.unknown:
        lines.append(f"not aligned, for want of packets both ways: ranks {', '.join(map(str, clocks.unknown))}")
    back = [by for by in clock.backwards(packets, clocks.offsets) if by > TOLERANCE_US]
    worst = f", by up to {max(back):.1f} µs: the clocks drift, or delays differ by direction" if back else ""
    lines.append(f"{len(back):,} of {len(packets):,} packets arrive before they were sent{worst}")
    return lines


def write_trace(path, trace):
    """The file appears whole or not at all. Throws DataError."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.write_text(json.dumps(trace, separators=(",", ":"), ensure_ascii=False), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
