"""How old the copies were that ranks mixed with."""
import numpy as np
import pandas as pd

from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Absent, Figure, canvas
from hearsay_analysis.figures.shading import shade

_MOST_EDGES = 32


def histogram(table):
    """Fractions of the samples: a row an edge, a column an age in iterations, up to the oldest that occurred."""
    counts = table.filter(regex=r"^samples_").to_numpy(dtype=float)
    oldest = int(np.max(np.nonzero(counts.sum(axis=0))[0], initial=0))
    samples = np.maximum(table["samples"].to_numpy(dtype=float), 1)
    return counts[:, : oldest + 1] / samples[:, None]


def _drawn(table, fractions):
    plot, axes = canvas(1.1 + 0.19 * len(table))
    ages = fractions.shape[1]
    shade(axes, fractions / fractions.max(axis=1, keepdims=True), (-0.5, ages - 0.5, len(table) - 0.5, -0.5))
    axes.plot(
        table["mean_iterations"],
        range(len(table)),
        linestyle="none",
        marker="|",
        markersize=9,
        markeredgewidth=1.8,
        color=style.INK,
    )
    axes.set_yticks(range(len(table)), [f"{row.neighbour}→{row.rank}" for row in table.itertuples()], fontsize=7)
    axes.grid(visible=False)
    axes.set_xlabel(f"age of the copy, iterations{' (63: or more)' if ages == 64 else ''}")
    axes.set_ylabel("edge")
    return plot


def _figure(number, run):
    title = "Staleness"
    table = run.table("staleness.csv")
    if table is None or table.empty or not table["samples"].sum():
        return Absent(
            title, "the run has no staleness.csv with samples: it mixes no copies, or has not ended", run.name
        )
    if table["maximum_iterations"].max() == 0:
        return Absent(
            title, f"all {table['samples'].sum():,} copies were mixed at age 0 (lockstep, or nobody lagged)", run.name
        )
    caption = (
        "How old copies were when they were mixed: the stronger the colour, the oftener, edge by edge; marks: means."
    )
    if len(table) > _MOST_EDGES:
        caption += f" The {_MOST_EDGES} edges of {len(table)} with the oldest copies on the average."
        table = table.nlargest(_MOST_EDGES, "mean_iterations")
    fractions = histogram(table)
    data = pd.concat(
        [
            table[["rank", "neighbour", "samples", "mean_iterations", "maximum_iterations"]].reset_index(drop=True),
            pd.DataFrame(fractions, columns=[f"fraction_{age}" for age in range(fractions.shape[1])]),
        ],
        axis=1,
    )
    return Figure(f"staleness-{number + 1}", f"{title}: {run.name}", caption, data, _drawn(table, fractions))


def draw(runs, _options):
    return [_figure(number, run) for number, run in enumerate(runs)]
