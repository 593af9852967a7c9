"""Lines of numbers against numbers: the shape of most of the papers' figures of times."""
import pandas as pd
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from hearsay_analysis.drawing import axes as scales
from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Figure, canvas


def plain_log_axis(axis, values):
    """A logarithmic axis with a tick at every value."""
    scales.log_axis(axis)
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FixedFormatter([f"{value:g}" for value in values]))
    axis.set_minor_locator(NullLocator())


def draw_lines(axes, series):
    """series: {label: [(x, y)]}. Returns what scales.label_ends takes."""
    ends = []
    for number, (label, points) in enumerate(series.items()):
        x, y = zip(*points)
        axes.plot(x, y, color=style.colour(number), marker=style.marker(number), markersize=4)
        ends.append((y[-1], label, style.colour(number)))
    return ends


def as_table(series, x_name, y_name):
    rows = [(label, x, y) for label, points in series.items() for x, y in points]
    return pd.DataFrame(rows, columns=["series", x_name, y_name])


def line_figure(name, title, caption, x, y, series):
    """x, y: (column of the CSV file, words on the axis); both axes are logarithmic. series as in draw_lines."""
    plot, axes = canvas(3.0)
    ends = draw_lines(axes, series)
    plain_log_axis(axes.xaxis, sorted({point[0] for points in series.values() for point in points}))
    scales.log_axis(axes.yaxis)
    axes.set_xlabel(x[1])
    axes.set_ylabel(y[1])
    scales.label_ends(axes, ends)
    return Figure(name, title, caption, as_table(series, x[0], y[0]), plot)
