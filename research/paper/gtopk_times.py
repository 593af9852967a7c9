"""gTop-k's times on 32 machines with 1 Gbit/s (shi2019gtopk: Figs. 9 and 10, Table IV), simulated exchanges."""
import pandas as pd

from hearsay_analysis.drawing.figure import Figure, canvas
from paper.experiment import (
    SIMULATED,
    Claim,
    Experiment,
    Result,
    Simulation,
    markdown_table,
    runs_of,
)
from paper.lines import as_table, draw_lines, line_figure, plain_log_axis

_ALPHA_S, _BETA_S = 0.436e-3, 3.6e-8  # of a message, of a word of 4 bytes: the paper's measurement
_DENSITY = 0.001
_WAYS = ("dense", "top-k", "gTop-k")
_QUICK = ("simulate.iterations=1",)
_CAPTION = "1 Gbit/s; of the sparse exchanges every rank sends a thousandth of the values. Simulated."
_MS = ("milliseconds", "ms")


def _rounds(ranks):
    return (ranks - 1).bit_length()


def predicted_s(way, ranks, values):
    """The paper's Table I; k = 0.001 m."""
    k = _DENSITY * values
    messages, words = {
        "dense": (2 * (ranks - 1), 2 * (ranks - 1) / ranks * values),
        "top-k": (_rounds(ranks), 2 * (ranks - 1) * k),
        "gTop-k": (2 * _rounds(ranks), 4 * _rounds(ranks) * k),
    }[way]
    return messages * _ALPHA_S + words * _BETA_S


def _exchange_s(folder, method, ranks, **axis):
    [run, *_] = runs_of(folder, method, ranks, **axis)
    return run.summary["time_per_iteration_s"]


def _milliseconds(seconds):
    return f"{1e3 * seconds:.1f}"


def _figure_9(head, points, seconds):
    """points: [(what the table calls it, ranks, values)]; seconds: way, ranks, values → s. Returns Markdown and
    {way: [(ranks or millions of values, ms)]}."""
    rows, series = [], {way: [] for way in _WAYS}
    worst = 1.0
    for label, ranks, values in points:
        row = [label]
        for way in _WAYS:
            here, there = seconds(way, ranks, values), predicted_s(way, ranks, values)
            row += [_milliseconds(here), _milliseconds(there)]
            series[way].append((ranks if head == "P" else values / 1e6, 1e3 * here))
            worst = max(worst, here / there, there / here)
        rows.append(row)
    heads = [head, *(word for way in _WAYS for word in (f"{way}, ms", "Table I"))]
    text = (
        "The paper's figure is computed from its Table I with the α and β that it measured. The simulation adds the "
        f"real algorithms, packet by packet: their times are at most {100 * (worst - 1):.1f} % from the formula's."
    )
    return f"{markdown_table(heads, rows)}\n{text}", series


def _draw_9_ranks(folder):
    table, series = _figure_9(
        "P",
        [(ranks, ranks, 25_000_000) for ranks in (4, 8, 16, 32, 64, 128)],
        lambda way, ranks, _: _exchange_s(folder, way, ranks),
    )
    figure = line_figure("ranks", "An exchange of 25 million values", _CAPTION, ("ranks", "ranks"), _MS, series)
    topk, gtopk = dict(series["top-k"]), dict(series["gTop-k"])
    claim = Claim(
        "Top-k ahead at P = 4, gTop-k much faster from 16 on",
        topk[4] < gtopk[4] and all(1.2 * gtopk[p] < topk[p] for p in topk if p >= 16),
        SIMULATED,
    )
    return Result(f"{table} {claim}\n", [figure], [claim])


def _draw_9_values(folder):
    table, series = _figure_9(
        "m, millions",
        [(m, 32, 1_000_000 * m) for m in (1, 5, 10, 25, 50, 100)],
        lambda way, ranks, values: _exchange_s(folder, way, ranks, values=values // 20),
    )
    x = ("millions_of_values", "million values")
    figure = line_figure("values", "An exchange between 32 ranks", _CAPTION, x, _MS, series)
    gains = [topk / gtopk for (_, topk), (_, gtopk) in zip(series["top-k"], series["gTop-k"])]
    ahead = gains == sorted(gains) and gains[-1] > 1
    claim = Claim("The longer the message, the further gTop-k is ahead of top-k", ahead, SIMULATED)
    return Result(f"{table} {claim}\n", [figure], [claim])


# Floats, examples of a rank, images per second on 32 GPUs (dense, top-k, gTop-k): the paper's Tables III and IV.
_MODELS = {
    "VGG-16": (14_700_000, 128, 403, 2016, 3020),
    "ResNet-20": (270_000, 128, 9212, 22272, 25280),
    "AlexNet": (61_000_000, 64, 39, 296, 505),
    "ResNet-50": (25_500_000, 256, 343, 978, 1251),
}
_TABLE_RANKS = 32


def _compute_s(folder, model):
    """What is left of the paper's gTop-k iteration without the simulated exchange: computing and selecting."""
    _, batch, _, _, gtopk = _MODELS[model]
    return _TABLE_RANKS * batch / gtopk - _exchange_s(folder, f"{model}, gTop-k", _TABLE_RANKS)


def _draw_table_4(folder):
    rows, factors = [], []
    for model, (_, batch, *paper) in _MODELS.items():
        compute_s = _compute_s(folder, model)
        here = [
            _TABLE_RANKS * batch / (compute_s + _exchange_s(folder, f"{model}, {way}", _TABLE_RANKS)) for way in _WAYS
        ]
        ratios = [here[2] / here[0], paper[2] / paper[0], here[2] / here[1], paper[2] / paper[1]]
        factors.append(ratios)
        rows.append(
            [model, f"{compute_s:.3f}", *(f"{s:.0f}" for s in here), *paper, *(f"{ratio:.2f}" for ratio in ratios)]
        )
    heads = ["model", "compute, s", *_WAYS, *(f"paper: {way}" for way in _WAYS)]
    heads += ["gTop-k / dense", "paper", "gTop-k / top-k", "paper"]
    slowest = sum(1 for ratios in factors if ratios[0] > 1)
    fastest = sum(1 for ratios in factors if ratios[2] > 1)
    near = all(abs(ratio[i] / ratio[i + 1] - 1) < 0.1 for ratio in factors for i in (0, 2))
    claims = [
        Claim("gTop-k has more throughput than dense for all models", slowest == len(factors), SIMULATED),
        Claim("gTop-k has more throughput than top-k for all models", fastest == len(factors), SIMULATED),
        Claim("Factors of throughput, 2.7 to 12.8 to dense and 1.1 to 1.7 to top-k, within a tenth", near, SIMULATED),
    ]
    text = (
        f"Images per second. {' '.join(map(str, claims))} gTop-k is faster than dense for {slowest} of "
        f"{len(factors)} models and faster than top-k for {fastest}. With the paper's own α and β a dense sum of "
        f"VGG-16 takes {_exchange_s(folder, 'VGG-16, dense', _TABLE_RANKS):.2f} s, while its dense iteration is "
        f"{_TABLE_RANKS * 128 * (1 / 403 - 1 / 3020):.1f} s longer than its gTop-k iteration. More than the two "
        "constants slows its dense and top-k runs: gradients pass a PCIe lane of 250 MB/s and a Celeron there. For "
        "ResNet-20 (k = 270) only latency counts, and gTop-k's 2 log P messages lose to the all-gather's log P.\n"
    )
    return Result(f"{markdown_table(heads, rows)}\n{text}", [], claims)


def _efficiency(folder, model, way):
    """[(ranks, time of computing / time of an iteration)]"""
    compute_s = _compute_s(folder, model)
    return [(p, compute_s / (compute_s + _exchange_s(folder, f"{model}, {way}", p))) for p in (4, 8, 16, 32)]


def _draw_10(folder):
    plot, grid = canvas(4.2, rows=2, columns=2, sharex=True, sharey=True)
    tables, gains = [], []
    for axes, model in zip(grid.flat, _MODELS):
        series = {way: _efficiency(folder, model, way) for way in _WAYS}
        draw_lines(axes, series)
        axes.set_title(model)
        plain_log_axis(axes.xaxis, [4, 8, 16, 32])
        tables.append(as_table(series, "ranks", "efficiency").assign(model=model))
        last = {way: points[-1][1] for way, points in series.items()}
        gains.append((last["gTop-k"] / last["dense"], last["gTop-k"] / last["top-k"]))
    grid[0, 0].set_ylim(0, 1.05)
    grid[0, 0].set_ylabel("efficiency")
    grid[1, 0].set_ylabel("efficiency")
    grid[1, 0].set_xlabel("ranks")
    grid[1, 1].set_xlabel("ranks")
    grid[0, 0].legend(grid[0, 0].get_lines(), _WAYS, loc="lower left", frameon=False, fontsize=8)
    data = pd.concat(tables)
    wide = data.pivot(index=["model", "series"], columns="ranks", values="efficiency")
    rows = [
        [model, way, *(f"{100 * wide.loc[(model, way), p]:.1f}" for p in (4, 8, 16, 32))]
        for model in _MODELS
        for way in _WAYS
    ]
    dense, topk = (sum(gain[i] for gain in gains) / len(gains) for i in (0, 1))
    fall = max(wide.loc[(model, "gTop-k"), 4] - wide.loc[(model, "gTop-k"), 32] for model in _MODELS)
    other = min(wide.loc[(model, "top-k"), 4] - wide.loc[(model, "top-k"), 32] for model in _MODELS)
    what = "At P = 32 gTop-k 6.7 times as fast as dense and 1.4 times as fast as top-k, on average"
    claim = Claim(what, dense > 6 and topk > 1.35, SIMULATED)
    text = (
        f"Efficiency in per cent: computing / (computing + exchange). At P = 32 gTop-k is {dense:.1f} times as fast "
        f"as dense on average (paper: 6.7) and {topk:.2f} times as fast as top-k (paper: 1.4). "
        f"{claim} From 4 to 32 ranks gTop-k loses at most {100 * fall:.1f} "
        f"points, top-k at least {100 * other:.1f}.\n"
    )
    figure = Figure(
        "efficiency",
        "Scaling efficiency, simulated",
        "Computing as in Table IV's gTop-k column, on any number of ranks the same; the paper's curves are in a "
        "picture only.",
        data,
        plot,
    )
    return Result(f"{markdown_table(['model', 'exchange', 4, 8, 16, 32], rows)}\n{text}", [figure], [claim])


_SCALED = (
    "times are simulated: α = 0.436 ms, β = 3.6·10⁻⁵ ms as the paper measured them, full-duplex cables, a switch "
    "without limits; selecting and merging take no time. {} of the values travel at {} of the bandwidth, so headers "
    "weigh {} times "
    "as much."
)
_COMPUTED = (
    " The paper gives compute times in a bar chart only; the time here is what remains of its gTop-k iteration when "
    "the simulated exchange is taken away, selection included: the gTop-k column is the paper's by construction, the "
    "other two are predictions."
)

FIGURE_9_RANKS = Experiment(
    "gtopk-figure-9-ranks",
    "gTop-k, Fig. 9, left: time of an exchange against P",
    "shi2019gtopk",
    "simulated-ranks",
    ("",),
    _SCALED.format("A 25th", "a 25th", "25"),
    _draw_9_ranks,
    Simulation("ethernet-1g-128"),
    _QUICK,
)
FIGURE_9_VALUES = Experiment(
    "gtopk-figure-9-values",
    "gTop-k, Fig. 9, right: time of an exchange against the model's size",
    "shi2019gtopk",
    "simulated-values",
    ("",),
    _SCALED.format("A 20th", "a 20th", "20"),
    _draw_9_values,
    Simulation("ethernet-1g-32"),
    _QUICK,
)
FIGURE_10 = Experiment(
    "gtopk-figure-10",
    "gTop-k, Fig. 10: scaling efficiency",
    "shi2019gtopk",
    "simulated-models",
    ("",),
    _SCALED.format("A 25th", "a 25th", "25") + " ResNet-20 is whole." + _COMPUTED,
    _draw_10,
    Simulation("ethernet-1g-32"),
    _QUICK,
)
TABLE_4 = Experiment(
    "gtopk-table-4",
    "gTop-k, Table IV: throughput on 32 machines",
    "shi2019gtopk",
    "simulated-models",
    ("/p32/",),
    _SCALED.format("A 25th", "a 25th", "25") + " ResNet-20 is whole." + _COMPUTED,
    _draw_table_4,
    Simulation("ethernet-1g-32"),
    _QUICK,
)
