"""What a figure of the page is: a drawing and the numbers that it shows."""
import functools
from dataclasses import dataclass

import matplotlib.figure
import pandas as pd

from hearsay_analysis.drawing import style


@dataclass(frozen=True)
class Figure:
    """name: of its files, without extension. title and caption: plain text. data: what is drawn, goes to NAME.csv."""

    name: str
    title: str
    caption: str
    data: pd.DataFrame
    plot: matplotlib.figure.Figure

    @functools.cached_property
    def svg(self):
        """A stand-alone SVG document. Drawing is what costs, so it is done once."""
        return style.svg(self.plot, self.name)


@dataclass(frozen=True)
class Absent:
    """A figure that cannot be drawn, and why; of one run where it is drawn run by run."""

    title: str
    reason: str
    run: str = ""


def canvas(height_in=3.0, rows=1, columns=1, **options):
    """A figure of the page's width and its axes."""
    plot = matplotlib.figure.Figure(figsize=(style.WIDTH_IN, height_in), layout="constrained")
    return plot, plot.subplots(rows, columns, **options)
