"""Scales, ticks and labels that several figures use."""
import math
import re

import numpy as np
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullLocator

from hearsay_analysis import text

_LINE_HEIGHT_PT = 10.5


def bytes_axis(axes):
    """x is bytes, logarithmic: sparse runs send a hundredth of what dense ones send."""
    if axes.dataLim.xmax <= 0:  # one rank sends nothing
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: re.sub(r"\.0+ ", " ", text.byte_count(n))))
    low, high = axes.get_xlim()
    decades = math.log10(high / low)
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1.0,) if decades > 2.2 else (1.0, 3.0) if decades > 0.9 else (1, 2, 3, 5, 7))
    )
    axes.xaxis.set_minor_locator(NullLocator())


def log_axis(axis):
    """A logarithmic axis with plain numbers, at least two of them."""
    {"x": axis.axes.set_xscale, "y": axis.axes.set_yscale}[axis.axis_name]("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())


def by_error(metric):
    """Whether the axis of a metric is spaced by the logarithm of the error."""
    return metric.fraction and metric.higher_is_better


def metric_axis(axes, metric, values):
    """y is a metric: of accuracies as below, else even."""
    if by_error(metric):
        accuracy_axis(axes, values)


def accuracy_axis(axes, accuracies):
    """y is accuracy, spaced by the logarithm of the error: 98 and 99 % are as far apart as 80 and 90 %."""
    errors = [max(1 - a, 1e-4) for a in accuracies]
    axes.set_yscale("function", functions=(lambda a: -_log10(1 - a), lambda y: 1 - 10**-y))
    worst, best = min(1.0, 1.3 * max(errors)), min(errors) / 1.3
    axes.set_ylim(1 - worst, 1 - best)
    candidates = [
        0.1,
        0.2,
        0.3,
        0.5,
        0.6,
        0.7,
        0.8,
        0.85,
        0.9,
        0.93,
        0.95,
        0.96,
        0.97,
        0.975,
        0.98,
        0.985,
        0.99,
        0.993,
        0.995,
        0.997,
        0.998,
        0.999,
    ]
    ticks = _apart([t for t in candidates if worst >= 1 - t >= best], math.log10(worst / best) / 9)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([f"{100 * t:.4g} %" for t in ticks]))


def _log10(values):
    return np.log10(np.maximum(values, 1e-4))


def _apart(ticks, distance):
    """Those of the ticks that are at least `distance` apart in the logarithm of the error."""
    kept = []
    for tick in ticks:
        if not kept or math.log10((1 - kept[-1]) / (1 - tick)) >= distance:
            kept.append(tick)
    return kept


def spread(positions, distance):
    """Moves positions apart until neighbours are at least `distance` from each other; their order stays, and the group
    stays about where it was."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups = [[positions[i], 1] for i in order]  # [centre, size]: members of a group stand exactly `distance` apart
    merged = []
    for centre, size in groups:
        merged.append([centre, size])
        while len(merged) > 1 and merged[-1][0] - merged[-2][0] < distance * (merged[-1][1] + merged[-2][1]) / 2:
            c2, n2 = merged.pop()
            c1, n1 = merged.pop()
            merged.append([(c1 * n1 + c2 * n2) / (n1 + n2), n1 + n2])
    placed = [centre + (k - (size - 1) / 2) * distance for centre, size in merged for k in range(size)]
    result = [0.0] * len(positions)
    for height, i in zip(placed, order):
        result[i] = height
    return result


def label_ends(axes, ends):
    """Writes each series' name beside its last point: ends [(y, name, colour)]. Call it last: it measures."""
    ends = [(y, name, colour) for y, name, colour in ends if text.is_number(y)]
    if not ends:
        return
    axes.figure.draw_without_rendering()
    height_pt = axes.get_position().height * axes.figure.get_figheight() * 72
    to_fraction = axes.transData + axes.transAxes.inverted()
    heights = [min(max(to_fraction.transform((axes.get_xlim()[1], y))[1], 0), 1) for y, *_ in ends]
    for height, (_, name, colour) in zip(spread(heights, _LINE_HEIGHT_PT / height_pt), ends):
        axes.annotate(
            text.shortened(name, 20),
            (1.0, height),
            xycoords="axes fraction",
            xytext=(5, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8,
            annotation_clip=False,
        )
