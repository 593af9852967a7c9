"""Gradient Dropping's final accuracies on MNIST (aji2017sparse)."""
from hearsay_analysis.paper.experiment import Experiment, Result, judged, markdown_table, mean, runs_of, with_spread

# Fig. 6 and its text: the baseline's final accuracy and that with 99 % dropped.
_PAPER = {"baseline": 99.28, "99 % dropped": 99.42}
_OURS = {"baseline": ["allreduce"], "99 % dropped": ["gradient_dropping", "gradient_dropping, asynchronous"]}


def _draw(folder):
    rows, accuracy = [], {}
    for label, methods in _OURS.items():
        for method in methods:
            runs = runs_of(folder, method, 4)
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
    verdicts = [
        judged(f"Accuracy less the baseline's, `{method}`", [accuracy[method] - accuracy["allreduce"]], [paper])
        for method in _OURS["99 % dropped"]
    ]
    text = f"{' '.join(verdicts)}\n"
    return Result(f"{markdown_table(heads, rows)}\n{text}", [])


FIGURE_6 = Experiment(
    "dropping-figure-6",
    "Gradient Dropping, Fig. 6: final accuracy on MNIST",
    "aji2017sparse",
    "global",
    ("/p4/allreduce/", "/p4/gradient-dropping"),
    "`mnist_cnn`, SGD, 5 epochs instead of three hidden " "layers of 4069 units, AdaGrad, 20 epochs.",
    _draw,
)
