"""Which segments fire when: a heat map segments × iterations."""
import numpy as np
import pandas as pd

from hearsay_analysis import text
from hearsay_analysis.drawing.figure import Absent, Figure, canvas
from hearsay_analysis.figures.shading import shade

_COLUMNS = 80


def event_rates(histories):
    """(first iterations of the columns, rates): the fraction of iterations and ranks at which a segment fired, a row a
    segment, a column a stretch of equally many iterations."""
    length = min(len(history.iterations) for history in histories)
    events = np.mean([history.events[:length] for history in histories], axis=0)
    every = max(1, -(-length // _COLUMNS))
    starts = np.arange(0, length, every)
    rates = np.add.reduceat(events, starts, axis=0) / np.diff([*starts, length])[:, None]
    return histories[0].iterations[starts], rates.T


def shares(run):
    """A segment's part of the model's values, and of what it would have sent at every iteration the part that it sent,
    values and positions; None where there is no segments.csv yet, or no graph."""
    table = run.table("segments.csv")
    edges = run.manifest.get("topology", {}).get("directed_edges", 0)
    if table is None or table.empty or edges == 0 or run.counted_iterations == 0:
        return None
    sent = table["payload_bytes"] + table["index_bytes"]
    whole = 4 * table["length"] * edges * run.counted_iterations
    return list(zip(table["length"] / table["length"].sum(), sent / whole))


def _drawn(names, starts, end, rates, sizes):
    plot, axes = canvas(1.0 + max(1.2, min(5.5, 0.2 * len(names))))
    shade(axes, rates, (starts[0], end, len(names) - 0.5, -0.5))
    axes.grid(visible=False)
    step = max(1, len(names) // 26)
    axes.set_yticks(range(0, len(names), step), [text.shortened(name, 20) for name in names[::step]], fontsize=7)
    axes.set_xlabel("iteration")
    if sizes is not None:
        beside = axes.secondary_yaxis("right")
        labels = [f"{100 * part:.1f} %, {100 * sent:.0f} %" for part, sent in sizes[::step]]
        beside.set_yticks(range(0, len(names), step), labels, fontsize=7)
        beside.set_ylabel("of the model, sent of that", fontsize=7)
    return plot


def _figure(number, run):
    title = "Events"
    if not run.metrics.segments:
        return Absent(title, "not recorded; train with --set report.segments=true", run.name)
    histories = list(run.metrics.segments.values())
    if min(len(history.iterations) for history in histories) == 0:
        return Absent(title, "nothing recorded yet", run.name)
    if any(history.events is None for history in histories):
        return Absent(title, "every segment takes part in every iteration: there is no trigger", run.name)
    starts, rates = event_rates(histories)
    names = run.segment_names
    every = int(starts[1] - starts[0]) if len(starts) > 1 else 1
    end = min(int(history.iterations[len(history.iterations) - 1]) for history in histories) + 1
    caption = (
        f"Opacity: the fraction of iterations and ranks at which a segment was sent, over stretches of {every} "
        f"iteration{'s' if every > 1 else ''}. All {rates.shape[0]} segments, first layer on top."
    )
    sizes = shares(run)
    if sizes is not None:
        caption += (
            " On the right: the segment's part of the model's values, and how much of what it would have sent at "
            "every iteration it did send, values and positions."
        )
    data = pd.DataFrame(rates, index=pd.Index(names, name="segment"), columns=starts).reset_index()
    plot = _drawn(names, starts, end, rates, sizes)
    return Figure(f"events-{number + 1}", f"{title}: {run.name}", caption, data, plot)


def draw(runs, _options):
    return [_figure(number, run) for number, run in enumerate(runs)]
