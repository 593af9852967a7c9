"""The task's metric against bytes of all points of a sweep; which algorithm to use."""
import math

import pandas as pd

from hearsay_analysis.drawing import axes as scales
from hearsay_analysis import text
from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Absent, Figure, canvas

_MOST_ERRORS = 4


def numbered(points):
    """[(number, Point)] from 1, in the order of bytes: the numbers of the figure and of its table."""
    drawn = sorted((p for p in points if p.seeds), key=lambda p: p.bytes_mean)
    return list(enumerate(drawn, 1))


def lowest_drawn(points):
    """Accuracy at the lower edge: four times the best point's error. What lies below would squeeze all others. Metrics
    of other kinds are all drawn: -∞."""
    if not scales.by_error(points[0].metric):
        return -math.inf
    return max(0.0, 1 - _MOST_ERRORS * (1 - max(p.value for p in points)))


def _bars(axes, point, colour):
    if point.seeds > 1:
        axes.errorbar(
            point.bytes_mean,
            point.value,
            xerr=point.bytes_deviation,
            yerr=point.deviation,
            color=colour,
            capsize=2.5,
            elinewidth=1,
            linestyle="none",
        )


_PLACES = [(0, 9), (0, -9), (9, 4), (-9, 4), (9, -6), (-9, -6), (0, 17), (0, -17), (14, 12), (-14, 12)]


def _number_labels(axes, points, lowest):
    """Each point's number above it, or beside its bars, or where there is room."""
    axes.figure.draw_without_rendering()
    taken = []
    for number, point in points:
        height = point.value if point.value >= lowest else axes.get_ylim()[0]
        x, y = axes.transData.transform((point.bytes_mean, height))
        for dx, dy in _PLACES if point.seeds == 1 else _PLACES[2:]:
            if all(abs(x + dx - a) > 11 or abs(y + dy - b) > 9 for a, b in taken):
                break
        taken.append((x + dx, y + dy))
        axes.annotate(
            str(number),
            (point.bytes_mean, height),
            xytext=(dx, dy),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            color=style.INK,
        )


def _draw_point(axes, point, on_front, lowest):
    shade = style.colour(0) if on_front else style.MUTED
    if point.value < lowest:
        axes.plot(
            point.bytes_mean,
            0,
            marker="v",
            markersize=5,
            color=shade,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
        )
        return
    _bars(axes, point, shade)
    axes.plot(
        point.bytes_mean,
        point.value,
        marker="o" if on_front else "x",
        markersize=6 if on_front else 5,
        color=shade,
        markerfacecolor=shade if point.seeds > 1 else style.PAPER,
    )


def _drawn(points, front):
    plot, axes = canvas(3.8)
    axes.set_xscale("log")
    drawn = numbered(points)
    lowest = lowest_drawn([p for _, p in drawn])
    for _, point in drawn:
        _draw_point(axes, point, point in front, lowest)
    axes.plot([p.bytes_mean for p in front], [p.value for p in front], color=style.colour(0), linewidth=1, zorder=1)
    scales.metric_axis(axes, drawn[0][1].metric, [p.value for _, p in drawn if p.value >= lowest])
    axes.margins(x=0.08)
    scales.bytes_axis(axes)
    _number_labels(axes, drawn, lowest)
    axes.set_xlabel("bytes sent by all ranks, mean over seeds")
    axes.set_ylabel(f"{drawn[0][1].metric.label} of the averaged model")
    return plot


def data(points, front):
    return pd.DataFrame(
        [
            {
                "number": number,
                "method": p.method,
                "ranks": p.ranks,
                **dict(p.axis),
                "seeds": p.seeds,
                "diverged": p.diverged,
                "bytes_sent_mean": p.bytes_mean,
                "bytes_sent_deviation": p.bytes_deviation,
                f"{p.metric.name}_mean": p.value,
                f"{p.metric.name}_deviation": p.deviation,
                "pareto_front": p in front,
            }
            for number, p in numbered(points)
        ]
    )


def figure(name, title, points, front):
    """The figure of one combination of ranks and axis values."""
    if not numbered(points):
        return Absent(title, "none of its runs has finished")
    single = sum(1 for p in points if p.seeds == 1)
    caption = "Circles and line: the Pareto front; crosses: the rest; the numbers are the table's rows. "
    caption += "Bars: sample standard deviation over seeds. " if single < len(numbered(points)) else ""
    if single:
        caption += (
            f"{single} of {text.counted(len(numbered(points)), 'method')} drawn without bars: one seed only (open "
            "circles); differences between single seeds may be chance."
        )
    lowest = lowest_drawn([p for _, p in numbered(points)])
    below = [str(number) for number, p in numbered(points) if p.value < lowest]
    if below:
        caption += f" Triangles at the lower edge: {text.listed(below)}, below {text.percent(lowest, 0)}."
    return Figure(name, title, caption, data(points, front), _drawn(points, front))
