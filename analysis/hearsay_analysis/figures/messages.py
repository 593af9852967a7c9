"""The percentage of D-PSGD's messages that a run sends, as it goes on."""
import pandas as pd

from hearsay_analysis.drawing import axes as scales
from hearsay_analysis import text
from hearsay_analysis.drawing.figure import Absent, Figure, canvas
from hearsay_analysis.figures.learning import draw_series

_POINTS = 60


def fraction_over_time(run):
    """A row a stretch of the run: messages sent in it as a fraction of segments × directed edges × iterations."""
    table = run.metrics.iterations
    every = max(1, len(table) // _POINTS)
    cut = table.iloc[every - 1 :: every]
    iterations = (cut["iteration"] + 1).diff().fillna(cut["iteration"] + 1)
    messages = cut["messages"].diff().fillna(cut["messages"])
    return pd.DataFrame(
        {
            "run": run.name,
            "iteration": cut["iteration"],
            "epoch": cut["epoch"],
            "messages_fraction": messages / (iterations * run.messages_per_iteration),
        }
    )


def draw(runs, _options):
    title = "Messages sent, of D-PSGD's"
    neighbourly = [run for run in runs if run.messages_per_iteration and not run.metrics.iterations.empty]
    if not neighbourly:
        return [Absent(title, "no run sends messages between neighbours, or none has recorded any yet")]
    # Every run keeps its place in the list, and so its colour.
    series = [
        (
            run.name,
            fraction_over_time(run) if run in neighbourly else pd.DataFrame(columns=["epoch", "messages_fraction"]),
        )
        for run in runs
    ]
    plot, axes = canvas()
    ends = draw_series(axes, series, "epoch", "messages_fraction", False)
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(lambda x, _: text.percent(x, 0))
    axes.set_xlabel("epochs")
    axes.set_ylabel("messages sent")
    scales.label_ends(axes, ends)
    caption = (
        "A message is one tensor sent to one neighbour once; D-PSGD sends every tensor to every neighbour at every "
        "iteration. Each point is the mean since the point before. What is recorded is what MPI had been handed, so "
        "a point can borrow a few messages from the next."
    )
    return [Figure("messages", title, caption, pd.concat([rows for _, rows in series]), plot)]
