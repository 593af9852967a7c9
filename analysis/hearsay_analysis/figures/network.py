"""The graph with the bytes that its edges carried."""
import math

import pandas as pd
from matplotlib.patches import ArrowStyle, FancyArrowPatch

from hearsay_analysis import text
from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Absent, Figure, canvas

_WIDEST_PT = 6.0
_MOST_RANKS = 64


def edge_width_pt(bytes_sent, most):
    """In proportion to bytes, but always to be seen."""
    return max(0.3, _WIDEST_PT * bytes_sent / most)


def _points(ranks):
    return [(math.sin(2 * math.pi * r / ranks), math.cos(2 * math.pi * r / ranks)) for r in range(ranks)]


def _drawn(edges, ranks, number):
    plot, axes = canvas(3.6)
    axes.set_aspect("equal")
    axes.axis("off")
    points = _points(ranks)
    node_pt = max(9.0, min(22.0, 420.0 / ranks))
    for edge in edges[edges["bytes_sent"] > 0].itertuples():
        width = edge.width_pt
        axes.add_patch(
            FancyArrowPatch(
                points[edge.sender],
                points[edge.receiver],
                connectionstyle="arc3,rad=0.12",
                arrowstyle=ArrowStyle.Simple(head_length=width + 4, head_width=width + 5, tail_width=width),
                mutation_scale=1,
                shrinkA=node_pt / 2,
                shrinkB=node_pt / 2,
                linewidth=0,
                alpha=0.85,
                color=style.colour(number),
            )
        )
    axes.scatter(*zip(*points), s=node_pt**2, facecolor=style.PAPER, edgecolor=style.MUTED, zorder=3)
    for rank, (x, y) in enumerate(points):
        axes.text(x, y, str(rank), ha="center", va="center", fontsize=8 if ranks <= 24 else 5, zorder=4)
    axes.set_xlim(-1.25, 1.25)
    axes.set_ylim(-1.25, 1.25)
    return plot


def draw(runs, _options):
    title, figures = "Bytes on every edge", []
    tables = [run.table("communication.csv") for run in runs]
    drawn = [table for run, table in zip(runs, tables) if table is not None and run.ranks <= _MOST_RANKS]
    most = max((table["bytes_sent"].max() for table in drawn if not table.empty), default=0) or 1
    for number, (run, edges) in enumerate(zip(runs, tables)):
        if edges is None or edges.empty:
            figures.append(
                Absent(title, "communication.csv is written at the end of a run, and this one has none", run.name)
            )
        elif run.ranks > _MOST_RANKS:
            figures.append(
                Absent(title, f"{run.ranks} ranks are too many to draw; communication.csv has the numbers", run.name)
            )
        else:
            carried = edges.loc[edges["bytes_sent"] > 0, "bytes_sent"]
            caption = (
                f"{len(carried)} directed edges between {run.ranks} ranks carried anything; from "
                f"{text.byte_count(carried.min())} to {text.byte_count(carried.max())} an edge, "
                f"{text.byte_count(carried.sum())} together. Width is in proportion to bytes"
                f"{', by one scale for all runs' if len(drawn) > 1 else ''}."
            )
            data = pd.DataFrame(edges[["sender", "receiver", "messages", "bytes_sent"]])
            data["width_pt"] = [edge_width_pt(sent, most) if sent else 0.0 for sent in data["bytes_sent"]]
            plot = _drawn(data, run.ranks, number)
            figures.append(Figure(f"graph-{number + 1}", f"{title}: {run.name}", caption, data, plot))
    return figures
