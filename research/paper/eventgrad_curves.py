"""EventGraD's Figs. 4, 5 (norms and thresholds) and 6 (loss), ghosh2021eventgrad."""
import argparse

import pandas as pd

from hearsay_analysis.drawing import axes as scales
from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Figure, canvas
from hearsay_analysis.figures import norms
from paper.experiment import Claim, Experiment, Result, runs_of, trained


def _draw_norms(folder):
    [run, *_] = runs_of(folder, "adaptive 1, stale", 4)
    figures = norms.draw([run], argparse.Namespace(rank=0, segments=[]))
    events = run.metrics.segments[0].events.mean(axis=0)
    rates = [f"{name} {100 * rate:.1f} %" for name, rate in zip(run.segment_names, events)]
    return Result(
        f"Rank 0 sends, of all iterations: {', '.join(rates)}. The paper draws four parameters of ResNet-18 and gives "
        "no numbers. The shape can be compared: thresholds follow the slope of the norm and oscillate.\n",
        figures,
    )


def loss_over_epochs(runs):
    """Mean and sample standard deviation over runs of the loss that ranks saw, mean over stretches of half an epoch."""
    tables = []
    for number, run in enumerate(runs):
        table = run.metrics.iterations
        tables.append(
            pd.DataFrame(
                {"run": number, "epoch": (2 * table["epoch"]).round().clip(lower=1) / 2, "loss": table["loss"]}
            )
        )
    per_run = pd.concat(tables).groupby(["epoch", "run"])["loss"].mean().reset_index()
    return per_run.groupby("epoch")["loss"].agg(["mean", "std"]).reset_index()


def loss_figure(name, title, caption, series):
    """series: {label: [Run]}; bars where a label has several runs."""
    plot, axes = canvas(3.2)
    ends, tables = [], []
    for number, (label, runs) in enumerate(series.items()):
        table = loss_over_epochs(runs)
        axes.errorbar(
            table["epoch"],
            table["mean"],
            yerr=table["std"] if len(runs) > 1 else None,
            capsize=2,
            elinewidth=0.8,
            color=style.colour(number),
            linestyle=style.dashes(number),
        )
        ends.append((table["mean"].iloc[-1], label, style.colour(number)))
        tables.append(table.assign(series=label, runs=len(runs)))
    scales.log_axis(axes.yaxis)
    axes.set_xlabel("epochs")
    axes.set_ylabel("training loss")
    scales.label_ends(axes, ends)
    return Figure(name, title, caption, pd.concat(tables), plot)


def _draw_loss(folder):
    methods = {
        "D-PSGD": "constant 0",
        "events, horizon 0.9": "adaptive_compounding, horizon 0.9",
        "events, horizon 1": "adaptive_compounding, horizon 1.0",
    }
    series = {label: runs_of(folder, method, 4) for label, method in methods.items()}
    last = {label: loss_over_epochs(runs)["mean"].iloc[-1] for label, runs in series.items()}
    ratio = [f"{label} {loss / last['D-PSGD']:.2f}" for label, loss in last.items() if label != "D-PSGD"]
    seeds = sorted({len(runs) for runs in series.values()})
    figure = loss_figure(
        "loss",
        "Loss over epochs",
        f"Means over half an epoch; bars: standard deviation over {' or '.join(map(str, seeds))} seeds.",
        series,
    )
    alike = all(loss <= 1.1 * last["D-PSGD"] for loss in last.values())
    claim = Claim("Loss decays alike with and without events, within a tenth", alike, trained(series.values(), 20))
    return Result(
        f"{claim} The paper's figure is curves without numbers. Here the loss of the last half epoch, as a multiple of "
        f"D-PSGD's: {', '.join(ratio)}.\n",
        [figure],
        [claim],
    )


FIGURES_4_5 = Experiment(
    "eventgrad-figures-4-5",
    "EventGraD, Figs. 4 and 5 (and 1): norms, thresholds, events",
    "ghosh2021eventgrad",
    "eventgrad-figures",
    ("",),
    "MNIST and `mnist_cnn` instead of CIFAR-10 and " "ResNet-18.",
    _draw_norms,
)
FIGURE_6 = Experiment(
    "eventgrad-figure-6",
    "EventGraD, Fig. 6: loss over epochs",
    "ghosh2021eventgrad",
    "mnist-reproduction",
    ("/constant-0/", "-horizon-0.9/", "-horizon-1.0/"),
    "MNIST, `mnist_cnn` and 10 epochs instead of " "CIFAR-10, ResNet-18 and 20; the released code's thresholds.",
    _draw_loss,
)
