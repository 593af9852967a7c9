"""Loss and the task's metric against epochs, bytes sent and time: what a run learns, and what it pays for it."""
import itertools

import numpy as np
import pandas as pd

from hearsay_analysis.drawing import axes as scales
from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Absent, Figure, canvas
from hearsay_analysis.runs.quality import value_in

_AGAINST = {
    "epochs": ("epoch", "epochs"),
    "bytes": ("bytes_sent", "bytes sent by all ranks"),
    "time": ("time_s", "time, s"),
}
_POINTS = 100


def stretches(table):
    """The records of a run, at most _POINTS rows: `loss` is the mean over all iterations since the row before, every
    other column is of the row's last record. A record's loss is the mean since the record before it."""
    if table.empty:
        return table
    every = -(-len(table) // _POINTS)
    ends = np.arange(len(table) - 1, -1, -every)[::-1]  # counted from the last record, so that its row is whole
    starts = np.array([0, *(ends[:-1] + 1)])
    iterations = np.diff([0, *(table["iteration"] + 1)])
    sums = np.add.reduceat(pd.to_numeric(table["loss"]).to_numpy(dtype=float) * iterations, starts)
    return table.iloc[ends].assign(loss=sums / np.add.reduceat(iterations, starts))


def _training(run):
    table = stretches(run.metrics.iterations)[["iteration", "epoch", "bytes_sent", "time_s", "loss"]]
    table.insert(0, "run", run.name)
    return table


def _bytes_at(run, iterations_done):
    """Bytes sent until then; between two records they are taken to have grown evenly."""
    table = run.metrics.iterations
    return np.interp(iterations_done, [0, *(table["iteration"] + 1)], [0, *table["bytes_sent"]])


def evaluated(run, metric=None):
    """A row an evaluation of the averaged model, with a column `metric.name`; by default of the run's own metric."""
    table = run.metrics.evaluations
    metric = metric or run.quality.metric
    if table.empty:
        columns = ["run", "iteration", "epoch", "bytes_sent", "time_s", "loss", "consensus_distance", metric.name]
        return pd.DataFrame(columns=list(dict.fromkeys(columns)))
    return pd.DataFrame(
        {
            "run": run.name,
            "iteration": table["iteration"],
            "epoch": table["epoch"],
            "bytes_sent": _bytes_at(run, table["iteration"]),
            "time_s": table["time_s"],
            "loss": pd.to_numeric(table["loss_mean_model"]),
            "consensus_distance": pd.to_numeric(table["consensus_distance"]),
            metric.name: pd.to_numeric(pd.Series([value_in(row, metric) for _, row in table.iterrows()])).to_numpy(),
        }
    )


def draw_series(plot_axes, series, x, y, marked):
    """Draws the runs of a long table; returns the ends of the lines for label_ends."""
    ends = []
    for number, (name, rows) in enumerate(series):
        rows = rows.dropna(subset=[x, y])
        plot_axes.plot(
            rows[x],
            rows[y],
            color=style.colour(number),
            linestyle=style.dashes(number),
            marker=style.marker(number) if marked else None,
            markersize=4,
        )
        if not rows.empty:
            ends.append((rows[y].iloc[-1], name, style.colour(number)))
    return ends


def _drawn(series, x, y, metric):
    plot, axes = canvas()
    ends = draw_series(axes, series, x, y, marked=metric is not None)
    if x == "bytes_sent":
        scales.bytes_axis(axes)
    else:
        axes.set_xlim(left=0)
    if metric:
        scales.metric_axis(axes, metric, pd.concat([rows[y] for _, rows in series]).dropna())
    else:
        scales.log_axis(axes.yaxis)
    axes.set_xlabel(next(label for column, label in _AGAINST.values() if column == x))
    axes.set_ylabel(f"{metric.label} of the averaged model" if metric else "training loss")
    scales.label_ends(axes, ends)
    return plot


def _figures(series, metric, caption):
    """Figures of a metric on the test set; None: of the training loss."""
    title = "Training loss" if metric is None else metric.label[0].upper() + metric.label[1:]
    name = "loss" if metric is None else metric.name if metric.name != "loss" else "test-loss"
    y = metric.name if metric else "loss"
    data = pd.concat([rows for _, rows in series])
    if data.empty or data[y].dropna().empty:
        return [Absent(f"{title} against epochs, bytes and time", "no run has recorded any yet")]
    return [
        Figure(
            f"{name}-{against}",
            f"{title} against {'bytes sent' if against == 'bytes' else against}",
            caption,
            data,
            _drawn(series, column, y, metric),
        )
        for against, (column, _) in _AGAINST.items()
    ]


def draw(runs, _options):
    metric = runs[0].quality.metric
    of_test = "Of the model averaged over ranks, on the test set."
    if scales.by_error(metric):
        of_test += " The axis is spaced by the error's logarithm."
    loss = "Of the batches that ranks trained on: a point is the mean over ranks and iterations since the last point."
    evaluations = [(run.name, evaluated(run, metric)) for run in runs]
    training = [(run.name, _training(run)) for run in runs]
    pairs = itertools.zip_longest(_figures(evaluations, metric, of_test), _figures(training, None, loss))
    return [figure for pair in pairs for figure in pair if figure]
