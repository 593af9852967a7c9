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


def _drawn(names, starts, end, rates):
    plot, axes = canvas(1.0 + max(1.2, min(5.5, 0.2 * len(names))))
    shade(axes, rates, (starts[0], end, len(names) - 0.5, -0.5))
    axes.grid(visible=False)
    step = max(1, len(names) // 26)
    axes.set_yticks(range(0, len(names), step), [text.shortened(name, 20) for name in names[::step]], fontsize=7)
    axes.set_xlabel("iteration")
    return plot


def _figure(number, run):
    title = "Events"
    if not run.metrics.segments:
        return Absent(title, "not recorded; train with --set report.segments=true", run.name)
    histories = list(run.metrics.segments.values())
    if min(len(history.iterations) for history in histories) == 0:
        return Absent(title, "nothing recorded yet", run.name)
    starts, rates = event_rates(histories)
    names = run.segment_names
    every = int(starts[1] - starts[0]) if len(starts) > 1 else 1
    end = min(int(history.iterations[len(history.iterations) - 1]) for history in histories) + 1
    caption = (
        f"Opacity: the fraction of iterations and ranks at which a segment was sent, over stretches of {every} "
        f"iteration{'s' if every > 1 else ''}. All {rates.shape[0]} segments, first layer on top."
    )
    data = pd.DataFrame(rates, index=pd.Index(names, name="segment"), columns=starts).reset_index()
    return Figure(f"events-{number + 1}", f"{title}: {run.name}", caption, data, _drawn(names, starts, end, rates))


def draw(runs, _options):
    return [_figure(number, run) for number, run in enumerate(runs)]
