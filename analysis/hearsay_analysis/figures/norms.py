"""Norms and thresholds of chosen segments with event marks, as Figs. 1, 4 and 5 of EventGraD (ghosh2021eventgrad)."""
import numpy as np
import pandas as pd

from hearsay_analysis.drawing import style
from hearsay_analysis.errors import UsageError
from hearsay_analysis.drawing.figure import Absent, Figure, canvas

_CLOSE_UP_ITERATIONS = 60
_MOST_MARKS = 300


def chosen_segments(run, history, wanted):
    """Numbers of the segments to draw: the wanted ones; else the one with the fewest events, the one with the most and
    the largest. Throws UsageError for a name that no segment has."""
    names = run.segment_names
    if wanted:
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise UsageError(f"{run.folder} has no segment {unknown[0]!r}; it has: {', '.join(names)}")
        return [names.index(name) for name in wanted]
    by_events = [int(number) for number in np.argsort(history.events.sum(axis=0), kind="stable")]
    lengths = [segment["length"] for segment in run.manifest["segments"]]
    by_interest = dict.fromkeys([int(np.argmax(lengths)), by_events[0], *reversed(by_events)])
    return list(by_interest)[:3]


def held_norms(norms, events):
    """The norm at the last event, iteration by iteration: neighbours' copies have it unless only part of the segment
    was sent; NaN before the first event."""
    at_events = pd.Series(np.where(events > 0, norms, np.nan))
    return at_events.ffill().to_numpy()


def _long_table(run, history, numbers):
    columns = {"iteration": history.iterations}
    for number in numbers:
        name = run.segment_names[number]
        columns[f"norm {name}"] = history.norms[:, number]
        columns[f"threshold {name}"] = history.thresholds[:, number]
        columns[f"event {name}"] = history.events[:, number].astype(int)
    return pd.DataFrame(columns)


def _stack(run, numbers, quantity, colour, draw_panel):
    plot, panels = canvas(0.6 + 1.25 * len(numbers), len(numbers), sharex=True, squeeze=False)
    for panel, number in zip(panels[:, 0], numbers):
        draw_panel(panel, number, colour)
        panel.set_title(run.segment_names[number], loc="left", pad=3)
        panel.set_ylabel(quantity)
    panels[-1, 0].set_xlabel("iteration")
    return plot


def _norm_panel(history):
    def draw_panel(axes, number, colour):
        axes.plot(history.iterations, history.norms[:, number], color=colour)
        fired = history.iterations[history.events[:, number] > 0]
        shown = fired[:: max(1, -(-len(fired) // _MOST_MARKS))]
        x = np.repeat(shown.astype(float), 3)  # one line with gaps: a mark is (x, 0.01), (x, 0.07), a gap
        x[2::3] = np.nan
        y = np.tile([0.01, 0.07, np.nan], len(shown))
        axes.plot(x, y, transform=axes.get_xaxis_transform(), linewidth=0.7, color=style.INK)
        axes.margins(y=0.15)

    return draw_panel


def _threshold_panel(history):
    def draw_panel(axes, number, colour):
        axes.plot(history.iterations, history.thresholds[:, number], color=colour, linewidth=1)
        axes.set_ylim(bottom=0)

    return draw_panel


def _close_up_panel(history, start):
    stretch = slice(start, start + _CLOSE_UP_ITERATIONS)

    def draw_panel(axes, number, colour):
        norms, events = history.norms[:, number], history.events[:, number]
        fired = np.flatnonzero(events[stretch]) + start
        axes.step(
            history.iterations[stretch],
            held_norms(norms, events)[stretch],
            where="post",
            color=style.MUTED,
            linewidth=1,
        )
        axes.plot(history.iterations[stretch], norms[stretch], color=colour, linewidth=1.3)
        axes.plot(history.iterations[fired], norms[fired], linestyle="none", marker="*", markersize=7, color=style.INK)

    return draw_panel


def _close_up_start(history):
    """The middle of the run: warm-up is over, and there are events yet."""
    return max(0, len(history.iterations) // 2 - _CLOSE_UP_ITERATIONS // 2)


def _figures(index, run, options):
    title = "Norms and thresholds"
    history = run.metrics.segments.get(options.rank)
    if history is None and run.metrics.segments:
        raise UsageError(
            f"--rank {options.rank}: {run.folder} has recorded segments of ranks " f"0 to {max(run.metrics.segments)}"
        )
    if history is None:
        return [Absent(title, "not recorded; train with --set report.segments=true", run.name)]
    if history.norms is None:
        return [Absent(title, f"{run.manifest['exchange']} has no trigger, so there are none", run.name)]
    numbers = chosen_segments(run, history, options.segments)
    data, colour = _long_table(run, history, numbers), style.colour(index)

    def figure(name, words, caption, quantity, panel):
        return Figure(
            f"{name}-{index + 1}", f"{words}: {run.name}", caption, data, _stack(run, numbers, quantity, colour, panel)
        )

    rank = f"Rank {options.rank}. "
    return [
        figure(
            "norms",
            "Norms and events",
            rank + f"Marks below are events; at most {_MOST_MARKS} of them are drawn "
            "a segment, every one is in the CSV file.",
            "‖x‖",
            _norm_panel(history),
        ),
        figure(
            "thresholds",
            "Thresholds",
            rank + "What the change of the norm was compared with.",
            "threshold",
            _threshold_panel(history),
        ),
        figure(
            "close-up",
            "Norms between events",
            rank + f"{_CLOSE_UP_ITERATIONS} iterations in the middle of the run: "
            "the norm, its events (stars) and, grey, the norm at the last event.",
            "‖x‖",
            _close_up_panel(history, _close_up_start(history)),
        ),
    ]


def draw(runs, options):
    return [figure for index, run in enumerate(runs) for figure in _figures(index, run, options)]
