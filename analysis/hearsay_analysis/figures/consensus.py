"""How far the replicas have drifted apart."""
import pandas as pd

from hearsay_analysis.drawing import axes as scales
from hearsay_analysis.drawing.figure import Absent, Figure, canvas
from hearsay_analysis.figures.learning import draw_series, evaluated


def draw(runs, _options):
    title = "Consensus distance"
    series = [(run.name, evaluated(run)) for run in runs]
    data = pd.concat([rows for _, rows in series])[["run", "iteration", "epoch", "time_s", "consensus_distance"]]
    if data["consensus_distance"].dropna().empty:
        return [Absent(title, "no run has been evaluated yet")]
    plot, axes = canvas()
    ends = draw_series(axes, series, "epoch", "consensus_distance", True)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("epochs")
    axes.set_ylabel("√ mean over ranks of ‖x_i − x̄‖²")
    scales.label_ends(axes, ends)
    caption = "Of the whole replica, at every evaluation. 0: all ranks hold the same model."
    return [Figure("consensus", title, caption, data, plot)]
