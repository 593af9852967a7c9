"""gTop-k's convergence (shi2019gtopk) and who should keep what a merge cuts off."""
from paper.eventgrad_curves import loss_figure
from paper.experiment import (
    TOLERANCE,
    Claim,
    Experiment,
    NotRun,
    Result,
    accuracy_or_state,
    markdown_table,
    mean,
    points,
    runs_of,
    trained,
    with_spread,
)

_RULES = ["top-k", "published", "merger", "owner"]
_FEEDBACK = ["SGD", "momentum", "correction", "correction, masked"]


def _draw_convergence(folder):
    methods = {
        "dense": "allreduce",
        "Top-k": "topk",
        "naive gTop-k": "gtopk_naive",
        "gTop-k, published": "gtopk, published",
        "gTop-k, merger": "gtopk, merger",
    }
    series = {label: runs_of(folder, method, 4) for label, method in methods.items()}
    dense = mean(series["dense"], "accuracy_mean_model")
    rows = [
        [
            label,
            with_spread(runs, "accuracy_mean_model"),
            points(mean(runs, "accuracy_mean_model") - dense),
            with_spread(runs, "bytes_fraction", 1),
            len(runs),
        ]
        for label, runs in series.items()
    ]
    table = markdown_table(["", "accuracy, %, here", "less dense", "bytes, % of a dense ring", "seeds"], rows)
    sparse = [series[label] for label in ("naive gTop-k", "gTop-k, published")]
    near = all(mean(runs, "accuracy_mean_model") >= dense - TOLERANCE for runs in sparse)
    what = "Naive gTop-k and gTop-k converge as the dense sum, within a point"
    claim = Claim(what, near, trained([series["dense"], *sparse], 140))
    text = f"{claim} The paper's figures are curves without numbers.\n"
    figure = loss_figure("convergence", "Loss of the global path, P = 4", "Means over half an epoch.", series)
    return Result(f"{table}\n{text}", [figure], [claim])


def _draw_residual(folder):
    rows = []
    for feedback in _FEEDBACK:
        for rate in (0.3, 0.1, 0.05):
            cells = [
                accuracy_or_state(folder, f"{rule}, {feedback}", 4, density=0.01, learning_rate=rate) for rule in _RULES
            ]
            rows.append([feedback, rate, *cells])
    if all(cell == "not run" for row in rows for cell in row[2:]):
        raise NotRun("no run of 4 ranks and density 0.01", folder)
    heads = ["feedback", "learning rate", *(f"{rule}, %" for rule in _RULES)]
    text = (
        "Accuracy of the model after 300 iterations at 1 %. `published` is the paper's rule, which loses what merges "
        "cut off; `merger` and `owner` keep it. The paper has no such comparison.\n"
    )
    return Result(f"{markdown_table(heads, rows)}\n{text}", [])


FIGURES_1_5 = Experiment(
    "gtopk-figures-1-5",
    "gTop-k, Figs. 1 and 5: convergence",
    "shi2019gtopk",
    "global",
    ("/p4/",),
    "MNIST, `mnist_cnn`, 10 epochs and 1 % instead of CIFAR-10, ResNet-20 and VGG-16, 140 " "epochs and 0.1 %.",
    _draw_convergence,
)
RESIDUAL = Experiment(
    "gtopk-residual",
    "gTop-k: who keeps what a merge cuts off",
    "shi2019gtopk",
    "gtopk-residual",
    ("/p4/0.01/",),
    "MNIST, `mnist_cnn`, 300 iterations of 4 × 16 examples.",
    _draw_residual,
)
