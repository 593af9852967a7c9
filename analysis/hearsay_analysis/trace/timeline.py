"""A picture of some iterations: what both threads of every rank did when, and the packets between them."""
from matplotlib.patches import FancyArrowPatch, Patch

from hearsay_analysis.drawing import style
from hearsay_analysis.errors import UsageError
from hearsay_analysis.drawing.figure import canvas

COMPUTATION, COMMUNICATION = 0, 1
_COLOURS = {
    "compute": 0,
    "trigger": 3,
    "select": 4,
    "encode": 5,
    "mix": 2,
    "optimizer": 6,
    "evaluate": 6,
    "communicate": 1,
    "communicate_encode": 5,
    "put": 1,
    "wait": None,
}
_PHASES = list(_COLOURS)
_HEIGHT = 0.36


def _spans(trace):
    return [e for e in trace["traceEvents"] if e.get("ph") == "X"]


def window(trace, first, last):
    """(start, end) of rank 0's iterations `first` to `last` in µs of the merged clock: asynchronously the same
    iteration of another rank may be at quite another time. Throws UsageError where there are none."""
    own = [e for e in _spans(trace) if e["pid"] == 0 and e["tid"] == COMPUTATION]
    there = [e for e in own if first <= e["args"]["iteration"] <= last]
    if not there:
        known = [e["args"]["iteration"] for e in own]
        have = f"iterations {min(known)} to {max(known)}" if known else "no spans of rank 0"
        raise UsageError(f"--iterations {first}-{last}: the trace has {have}")
    return min(e["ts"] for e in there), max(e["ts"] + e["dur"] for e in there)


def union(intervals):
    """Disjoint intervals that cover the same points, in order."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def shared(a, b):
    """How long two lists of disjoint intervals overlap."""
    return sum(max(0.0, min(e1, e2) - max(s1, s2)) for s1, e1 in a for s2, e2 in b if s2 < e1 and s1 < e2)


def hidden_fraction(trace, start, end):
    """The part of the communication threads' busy time in [start, end] during which their rank's other thread worked,
    that is, did anything but wait. None where nothing was communicated."""

    def cut(events):
        return union(
            (max(e["ts"], start), min(e["ts"] + e["dur"], end))
            for e in events
            if e["ts"] < end and e["ts"] + e["dur"] > start
        )

    hidden = busy = 0.0
    for rank in {e["pid"] for e in _spans(trace)}:
        own = [e for e in _spans(trace) if e["pid"] == rank]
        talking = cut(e for e in own if e["tid"] == COMMUNICATION)
        working = cut(e for e in own if e["tid"] == COMPUTATION and e["name"] != "wait")
        busy += sum(e - s for s, e in talking)
        hidden += shared(talking, working)
    return hidden / busy if busy else None


def _row(rank, thread):
    return rank + (-0.2 if thread == COMPUTATION else 0.2)


def _draw_spans(axes, spans, start, separated):
    """separated: µs; a span that is longer has an edge, so that two of the same phase are told apart."""
    seen = {}
    for e in sorted(spans, key=lambda e: -e["dur"]):  # what is nested comes out on top
        number = _COLOURS.get(e["name"], 6)
        shade = style.GRID if number is None else style.colour(number)
        seen[e["name"]] = shade
        axes.barh(
            _row(e["pid"], e["tid"]),
            e["dur"] / 1e3,
            left=(e["ts"] - start) / 1e3,
            height=_HEIGHT,
            color=shade,
            linewidth=0.3 if e["dur"] > separated else 0,
            edgecolor=style.PAPER,
        )
    return [
        Patch(color=seen[name], label=name) for name in [*_PHASES, *sorted(set(seen) - set(_PHASES))] if name in seen
    ]


def _draw_packets(axes, trace, start, end):
    starts = {e["id"]: e for e in trace["traceEvents"] if e.get("ph") == "s"}
    for e in trace["traceEvents"]:
        put = starts.get(e.get("id")) if e.get("ph") == "f" else None
        if put and put["ts"] >= start and e["ts"] <= end:
            axes.add_patch(
                FancyArrowPatch(
                    ((put["ts"] - start) / 1e3, _row(put["pid"], COMMUNICATION)),
                    ((e["ts"] - start) / 1e3, _row(e["pid"], COMPUTATION)),
                    arrowstyle="-|>",
                    mutation_scale=6,
                    linewidth=0.6,
                    color=style.INK,
                    alpha=0.6,
                    shrinkA=0,
                    shrinkB=0,
                )
            )


def draw(trace, first, last):
    """A matplotlib figure of iterations `first` to `last`. Throws UsageError."""
    start, end = window(trace, first, last)
    spans = [e for e in _spans(trace) if e["ts"] < end and e["ts"] + e["dur"] > start]
    ranks = sorted({e["pid"] for e in spans})
    plot, axes = canvas(1.2 + 0.62 * len(ranks))
    plot.set_figwidth(1.6 * style.WIDTH_IN)
    handles = _draw_spans(axes, spans, start, 0.01 * (end - start))
    _draw_packets(axes, trace, start, end)
    axes.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    axes.set_xlim(0, (end - start) / 1e3)
    axes.set_ylim(ranks[-1] + 0.45, ranks[0] - 0.45)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(
        f"ms, iterations {first} to {last} of rank 0; above: computation, below: communication; arrows: packets"
    )
    axes.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncol=len(handles),
        frameon=False,
        fontsize=8,
        handlelength=1,
        columnspacing=1,
    )
    return plot
