"""CIFAR-10 with ResNet-20 as far as two cores go: li2022layerwise, Fig. 2; shi2019gtopk, Fig. 5; ghosh2021eventgrad,
Table 1."""
from paper.eventgrad_curves import loss_figure, loss_over_epochs
from paper.experiment import (
    NOT_STATED,
    Claim,
    Experiment,
    Result,
    judged,
    markdown_table,
    mean,
    points,
    runs_of,
    trained,
    with_spread,
)

_RANKS = 4
_HEADS = ["", "accuracy, %, here", "less dense", "last training loss", "bytes, % of dense", "seeds"]


def _table(series, reference):
    """Rows in the order of `series`, {label: [Run]}; accuracies as differences to the label `reference`."""
    base = mean(series[reference], "accuracy_mean_model")
    rows = [
        [
            label,
            with_spread(runs, "accuracy_mean_model"),
            points(mean(runs, "accuracy_mean_model") - base),
            f"{loss_over_epochs(runs)['mean'].iloc[-1]:.3f}",
            with_spread(runs, "bytes_fraction", 1),
            len(runs),
        ]
        for label, runs in series.items()
    ]
    return markdown_table(_HEADS, rows)


def _below(series, reference):
    """How far the worst is below the reference, in accuracy."""
    base = mean(series[reference], "accuracy_mean_model")
    return base - min(mean(runs, "accuracy_mean_model") for runs in series.values())


_UNSETTLED = (
    "Nothing has converged after two epochs. Differences of a few points between single runs mean little. This shows "
    "that nothing breaks; it does not show that the curves are the same."
)


def _draw_lkgs(folder):
    methods = {"dense": "dense", "LKGS, 1 %": "LKGS, 0.01", "LKGS, 5 %": "LKGS, 0.05", "LKGS, 10 %": "LKGS, 0.1"}
    series = {label: runs_of(folder, method, _RANKS) for label, method in methods.items()}
    gap = _below(series, "dense")
    what = "At 1, 5 and 10 % at most 2 points below the dense sum"
    claim = Claim(what, gap <= 0.02, trained(series.values(), NOT_STATED))
    text = (
        "The paper: the curves at all three densities are almost the same as that of the dense sum. "
        f"{claim} The worst ends "
        f"{100 * gap:.2f} points below dense. {_UNSETTLED}\n"
    )
    figure = loss_figure("loss", "Loss of LKGS by density, P = 4", "ResNet-20; means over half an epoch.", series)
    return Result(f"{_table(series, 'dense')}\n{text}", [figure], [claim])


def _draw_gtopk(folder):
    series = {label: runs_of(folder, label, _RANKS) for label in ("dense", "gTop-k, 0.01")}
    gap = _below(series, "dense")
    claim = Claim("At most 2 points below the dense sum", gap <= 0.02, trained(series.values(), 140))
    text = (
        "The paper: ResNet-20 converges almost as with the dense sum. "
        f"{claim} gTop-k ends {100 * gap:.2f} points below "
        f"dense. {_UNSETTLED} The paper warms the density up over four epochs, which is more than these runs have.\n"
    )
    figure = loss_figure("loss", "Loss of gTop-k, P = 4", "ResNet-20; means over half an epoch.", series)
    return Result(f"{_table(series, 'dense')}\n{text}", [figure], [claim])


def _draw_eventgrad(folder):
    methods = {"D-PSGD": "D-PSGD", "stale (the paper)": "adaptive 1, stale", "arrival": "adaptive 1, arrival"}
    series = {label: runs_of(folder, method, _RANKS) for label, method in methods.items()}
    base = mean(series["D-PSGD"], "accuracy_mean_model")
    rows = [
        [
            label,
            with_spread(runs, "accuracy_mean_model"),
            points(mean(runs, "accuracy_mean_model") - base),
            with_spread(runs, "messages_fraction", 1),
            len(runs),
        ]
        for label, runs in series.items()
    ]
    evidence = trained(series.values(), 20)
    claims = [
        judged(f"Accuracy less D-PSGD's, rule `{label}`", [mean(runs, "accuracy_mean_model") - base], [0.005], evidence)
        for label, runs in series.items()
        if label != "D-PSGD"
    ]
    text = (
        "The paper, P = 4, ResNet-18, 20 epochs: D-PSGD 86.5 %, events 87.0 % with 43.24 % of the messages. "
        f"{' '.join(map(str, claims))} {_UNSETTLED}\n"
    )
    figure = loss_figure("loss", "Loss with and without events, P = 4", "ResNet-20; means over half an epoch.", series)
    heads = ["", "accuracy, %, here", "less D-PSGD", "messages, %, here", "seeds"]
    return Result(f"{markdown_table(heads, rows)}\n{text}", [figure], claims)


_SMALL = (
    "ResNet-20 (0.27 million parameters), two of the five training files, two epochs, batches of 32 a rank, tested "
    "on 2,000 images, instead of {}. {} They were not run: the machine has two cores."
)


def _experiment(name, source, citation, only, instead, settings, draw):
    return Experiment(name, source, citation, "cifar10", only, _SMALL.format(instead, settings), draw)


EVENTGRAD = _experiment(
    "eventgrad-cifar10",
    "EventGraD, Table 1 and Fig. 6, on CIFAR-10",
    "ghosh2021eventgrad",
    ("/d-psgd/", "/adaptive-1-"),
    "ResNet-18 and 20 epochs of all files with a learning rate of 0.01 (here 0.05)",
    "`configs/cifar10/eventgrad-resnet18.yaml` has these settings.",
    _draw_eventgrad,
)
GTOPK = _experiment(
    "gtopk-cifar10",
    "gTop-k, Fig. 5, on CIFAR-10",
    "shi2019gtopk",
    ("/dense/", "/gtop-k-0.01/"),
    "140 epochs of all files at 0.1 %",
    "`configs/cifar10/gtopk-resnet20.yaml` has these settings.",
    _draw_gtopk,
)
LKGS = _experiment(
    "lkgs-figure-2",
    "LKGS, Fig. 2: convergence on CIFAR-10",
    "li2022layerwise",
    ("/dense/", "/lkgs-"),
    "ResNet-50 and VGG-16, batches of 64, learning rates of 0.001 and 0.01 (here 0.1 with momentum correction)",
    "No file of `configs/cifar10/` has these models, batches and rates.",
    _draw_lkgs,
)
