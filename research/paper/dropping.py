"""Gradient Dropping on MNIST (aji2017sparse, Figs. 2, 4, 6 and 8)."""
from paper.eventgrad_curves import loss_figure
from paper.experiment import (
    Claim,
    Experiment,
    Result,
    judged,
    markdown_table,
    mean,
    runs_of,
    trained,
    with_spread,
)

_EPOCHS = 20  # of the paper's runs on MNIST
# Fig. 6 and its text: the baseline's final accuracy and that with 99 % dropped.
_PAPER = {"baseline": 99.28, "99 % dropped": 99.42}
_OVER_TCP = (
    "These runs share one machine's memory. Asynchronously over TCP the same exchange ends where its lockstep does "
    "([network.md](../network.md))."
)
_OURS = {"baseline": ["allreduce"], "99 % dropped": ["gradient_dropping", "gradient_dropping, asynchronous"]}


def _draw(folder):
    rows, accuracy, series = [], {}, []
    for label, methods in _OURS.items():
        for method in methods:
            runs = runs_of(folder, method, 4)
            series.append(runs)
            accuracy[method] = mean(runs, "accuracy_mean_model")
            rows.append(
                [
                    label,
                    method,
                    _PAPER[label],
                    with_spread(runs, "accuracy_mean_model"),
                    with_spread(runs, "bytes_fraction", 1),
                    len(runs),
                ]
            )
    heads = ["", "exchange here", "accuracy, %, paper", "accuracy, %, here", "bytes, % of a dense ring", "seeds"]
    paper = (_PAPER["99 % dropped"] - _PAPER["baseline"]) / 100
    evidence = trained(series, _EPOCHS)
    less = {method: accuracy[method] - accuracy["allreduce"] for method in _OURS["99 % dropped"]}
    claims = [
        judged(f"Accuracy less the baseline's, `{method}`", [difference], [paper], evidence)
        for method, difference in less.items()
    ]
    return Result(f"{markdown_table(heads, rows)}\n{' '.join(map(str, claims))} {_OVER_TCP}\n", [], claims)


def _early(runs):
    """Accuracy after the first epoch, mean over runs; in per cent."""
    firsts = [run.metrics.evaluations["accuracy_mean_model"].iloc[0] for run in runs]
    return f"{100 * sum(firsts) / len(firsts):.2f}"


def _compared(folder, methods):
    """{label: [Run]}, the table of final and early accuracies, and final accuracy by label."""
    series = {label: runs_of(folder, method, 4) for label, method in methods.items()}
    rows = [
        [
            label,
            _early(runs),
            with_spread(runs, "accuracy_mean_model"),
            f"{mean(runs, 'loss_mean_model'):.3f}",
            with_spread(runs, "bytes_fraction", 1),
            len(runs),
        ]
        for label, runs in series.items()
    ]
    heads = ["", "accuracy after an epoch, %", "at the end, %", "loss at the end", "bytes, % of a dense ring", "seeds"]
    return series, markdown_table(heads, rows), {k: mean(runs, "accuracy_mean_model") for k, runs in series.items()}


def _far(accuracy, reference, tolerance=0.01):
    """How far the worst is below the reference, in points, and whether that is within the tolerance."""
    gap = accuracy[reference] - min(accuracy.values())
    return f"{100 * gap:.2f}", gap <= tolerance


def _draw_ratios(folder):
    labels = ("baseline", "90 % dropped", "99 % dropped", "99.9 % dropped")
    series, table, accuracy = _compared(folder, {label: label for label in labels})
    gap, close = _far(accuracy, "baseline")
    first = {label: float(_early(runs)) for label, runs in series.items()}
    evidence = trained(series.values(), _EPOCHS)
    learns = Claim("All ratios learn MNIST as well as the baseline", close, evidence)
    sooner = first["99 % dropped"] > first["baseline"]
    early = Claim("Dropping improves accuracy in early batches", sooner, evidence)
    text = (
        f"{learns} The worst is {gap} points below it. {early} "
        "The paper's figures are curves without numbers.\n"
    )
    return Result(f"{table}\n{text}", [_losses("Loss by drop ratio", series)], [learns, early])


def _draw_thresholds(folder):
    methods = {
        "global, normalised": "99 % dropped",
        "local, normalised": "99 %, local",
        "global": "99 %, no normalisation",
        "local": "99 %, local, no normalisation",
    }
    series, table, accuracy = _compared(folder, methods)
    gap, close = _far(accuracy, max(accuracy, key=accuracy.get))
    what = "Neither the kind of threshold nor layer normalisation matters on MNIST"
    claim = Claim(what, close, trained(series.values(), _EPOCHS))
    text = (
        f"{claim} From best to worst {gap} "
        "points. Pulls go by shards of the block, whatever the threshold of the pushes, as in the paper.\n"
    )
    return Result(f"{table}\n{text}", [_losses("Loss by kind of threshold", series)], [claim])


def _draw_quantised(folder):
    methods = {
        "not quantised": "99 % dropped",
        "1 bit, global mean": "99 %, 1 bit, mean",
        "1 bit, threshold": "99 %, 1 bit, threshold",
        "1 bit, row mean": "99 %, 1 bit, row mean",
        "2 bits": "99 %, 2 bits",
    }
    series, table, accuracy = _compared(folder, methods)
    gap, close = _far(accuracy, "not quantised")
    claim = Claim("All tested types of quantisation work on MNIST", close, trained(series.values(), _EPOCHS))
    text = (
        f"{claim} The worst is {gap} points below what is not "
        "quantised. `2 bits` is what the paper's conclusion proposes and does not test.\n"
    )
    return Result(f"{table}\n{text}", [_losses("Loss by quantisation", series)], [claim])


def _losses(title, series):
    return loss_figure("loss", f"{title}, P = 4", "Means over half an epoch, one seed.", series)


FIGURE_6 = Experiment(
    "dropping-figure-6",
    "Gradient Dropping, Fig. 6: final accuracy on MNIST",
    "aji2017sparse",
    "global",
    ("/p4/allreduce/", "/p4/gradient-dropping"),
    "`mnist_cnn`, SGD, 10 epochs instead of three hidden layers of 4069 units, AdaGrad, 20 epochs.",
    _draw,
)


def _of_sweep(number, what, only, draw):
    return Experiment(
        f"dropping-figure-{number}",
        f"Gradient Dropping, Fig. {number}: {what}",
        "aji2017sparse",
        "dropping",
        only,
        "three hidden layers of 256 units instead of 4069 and 5 epochs instead of 20; AdaGrad, batches of 40, four "
        "ranks and asynchronous as in the paper, but for an evaluation after every epoch, for which all wait.",
        draw,
    )


FIGURE_2 = _of_sweep(2, "drop ratios on MNIST", ("/baseline/", "-dropped/"), _draw_ratios)
FIGURE_4 = _of_sweep(
    4, "local and global thresholds", ("/99-dropped/", "/99-local/", "-no-normalisation/"), _draw_thresholds
)
FIGURE_8 = _of_sweep(8, "quantised, MNIST", ("/99-dropped/", "/99-1-bit-", "/99-2-bits/"), _draw_quantised)
