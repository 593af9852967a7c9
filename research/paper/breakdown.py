"""Where the time of an iteration goes, measured on four hosts: shi2019gtopk, Fig. 11; li2022layerwise, Fig. 3."""
import statistics

import pandas as pd

from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Figure, canvas
from paper.experiment import ONE_RUN, Claim, Experiment, Result, Testbed, markdown_table, runs_of

_PARTS = (("computing", 0), ("sparsifying", 4), ("exposed communication", 1), ("rest", 6))
_MODELS = ("ResNet-20", "dense layers")
_DENSITIES = ("1 %", "5 %", "10 %")
_HOSTS, _RATE, _BYTES_PER_S = 4, "100mbit", 12.5e6


def _parts_ms(run):
    """Milliseconds of an iteration, mean over ranks, in the order of _PARTS. The rest is the optimizer and waiting for
    the slowest rank."""
    of = {name: 1e3 * run.summary[name] / run.iterations for name in ("compute_s", "select_s", "encode_s", "wait_s")}
    parts = [of["compute_s"], of["select_s"] + of["encode_s"], of["wait_s"]]
    return [*parts, max(0.0, 1e3 * run.summary["time_per_iteration_s"] - sum(parts))]


def _read(folder, model, ways):
    return {way: _parts_ms(runs_of(folder, f"{model}, {way}", _HOSTS)[0]) for way in ways}


def _bars(name, title, times):
    """times: {model: {way: parts}}; a row of axes a model, milliseconds on axes of their own."""
    height_in = 0.9 + 0.24 * sum(len(ways) + 1.5 for ways in times.values())
    sizes = {"height_ratios": [len(ways) for ways in times.values()]}
    plot, grid = canvas(height_in, rows=len(times), squeeze=False, gridspec_kw=sizes)
    rows = []
    for axes, (model, ways) in zip(grid.flat, times.items()):
        left = [0.0] * len(ways)
        for place, (part, number) in enumerate(_PARTS):
            widths = [parts[place] for parts in ways.values()]
            axes.barh(range(len(ways)), widths, left=left, height=0.65, color=style.colour(number), label=part)
            left = [start + width for start, width in zip(left, widths)]
        axes.set_yticks(range(len(ways)), list(ways))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_title(model, loc="left")
        rows += [(model, way, *parts) for way, parts in ways.items()]
    grid[-1, 0].set_xlabel("ms an iteration, mean over ranks")
    above = {"loc": "upper center", "ncol": len(_PARTS), "fontsize": 8, "handlelength": 1, "frameon": False}
    plot.legend(*grid[0, 0].get_legend_handles_labels(), **above)
    plot.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.25 / height_in))
    data = pd.DataFrame(rows, columns=["model", "exchange", *(f"{part}_ms" for part, _ in _PARTS)])
    return Figure(name, title, "Four hosts, 100 Mbit/s, four ranks on two cores.", data, plot)


def _table(times):
    heads = ["model", "exchange", *(f"{part}, ms" for part, _ in _PARTS), "sum, ms"]
    rows = [
        [model, way, *(f"{ms:.1f}" for ms in parts), f"{sum(parts):.1f}"]
        for model, ways in times.items()
        for way, parts in ways.items()
    ]
    return markdown_table(heads, rows)


def _first_ms(folder, model):
    """What LKGS's first iteration, in which a rank receives all values of the others, adds to the mean of a run;
    calculated from the rate of the link, 8 bytes a value."""
    run = runs_of(folder, f"{model}, LKGS 1 %", _HOSTS)[0]
    return 1e3 * (_HOSTS - 1) * 8 * run.summary["parameters"] / _BYTES_PER_S / run.iterations


def _draw_lkgs(folder):
    ways = ("dense", *(f"{name} {density}" for density in _DENSITIES for name in ("top-k", "LKGS")))
    times = {model: _read(folder, model, ways) for model in _MODELS}
    claims, verdicts = [], []
    for model, paper in zip(_MODELS, ("0.33 for ResNet-50", "0.31 for VGG-16")):
        pairs = [(times[model][f"top-k {d}"], times[model][f"LKGS {d}"]) for d in _DENSITIES]
        first = _first_ms(folder, model)
        waits = statistics.mean(lkgs[2] / topk[2] for topk, lkgs in pairs)
        later = statistics.mean(max(0.0, lkgs[2] - first) / topk[2] for topk, lkgs in pairs)
        more = statistics.mean(lkgs[1] / topk[1] for topk, lkgs in pairs)
        total = statistics.mean(sum(lkgs) / sum(topk) for topk, lkgs in pairs)
        what = f"{model}: less than half of the exposed communication of top-k"
        claims.append(Claim(what, waits < 0.5, ONE_RUN))
        verdicts.append(
            f"{claims[-1]} LKGS's is {waits:.2f} "
            f"of top-k's on average (paper: {paper}), or {later:.2f} without its first iteration, which sends all "
            f"values ({first:.0f} ms of the mean, calculated). Sparsifying takes {more:.2f} times as long, an "
            f"iteration {total:.2f} "
            "times (paper: 0.97)."
        )
    text = (
        f"{' '.join(verdicts)} Four ranks share two cores here. A communication thread takes time from the "
        "backward pass beside which it works, and that time counts as computing.\n"
    )
    figure = _bars("breakdown", "Time of an iteration: dense, top-k, LKGS", times)
    return Result(f"{_table(times)}\n{text}", [figure], claims)


def _draw_gtopk(folder):
    times = {
        "ResNet-20": _read(folder, "ResNet-20", ("dense", "gTop-k 0.1 %")),
        "dense layers": _read(folder, "dense layers", ("dense", "top-k 0.1 %", "gTop-k 0.1 %")),
    }
    share = {model: sum(ways["gTop-k 0.1 %"][1:3]) / ways["gTop-k 0.1 %"][0] for model, ways in times.items()}
    less = "Sparsifying and communicating much less than computing for a residual network"
    more = "Sparsifying and communicating more than computing for a network of dense layers"
    claims = [Claim(less, share["ResNet-20"] < 0.5, ONE_RUN), Claim(more, share["dense layers"] > 1, ONE_RUN)]
    text = (
        f"{claims[0]} They take {share['ResNet-20']:.2f} times as long as computing. "
        f"{claims[1]} Here {share['dense layers']:.2f} times: the paper's networks have 8 to 33 times the "
        "parameters, its GPUs compute faster, and its selection on a GPU is slow.\n"
    )
    figure = _bars("breakdown", "Time of an iteration: dense and gTop-k", times)
    return Result(f"{_table(times)}\n{text}", [figure], claims)


_SCALED = (
    "ResNet-20 (CIFAR-10) and 784-1024-1024-10 (MNIST, 1.9 million parameters), 30 iterations on four hosts of "
    "`scripts/testbed` with {} on one machine with two cores that others used as well, instead of {}."
)
_TESTBED = Testbed(_HOSTS, _RATE)
_QUICK = ("train.iterations=3",)

LKGS = Experiment(
    "lkgs-figure-3",
    "LKGS, Fig. 3: where the time goes",
    "li2022layerwise",
    "breakdown",
    ("-dense/", "-top-k-", "-lkgs-"),
    _SCALED.format("100 Mbit/s", "ResNet-50 and VGG-16 on four GPUs with 10 Gbit/s"),
    _draw_lkgs,
    _TESTBED,
    _QUICK,
)
GTOPK = Experiment(
    "gtopk-figure-11",
    "gTop-k, Fig. 11: where the time goes",
    "shi2019gtopk",
    "breakdown",
    ("-dense/", "-top-k-0.1/", "gtop-k-0.1/"),
    _SCALED.format("100 Mbit/s", "four models on 32 GPUs with 1 Gbit/s"),
    _draw_gtopk,
    _TESTBED,
    _QUICK,
)
