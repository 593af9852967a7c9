"""MSTopK's operator and HiTopKComm (shi2021towards)."""
import pandas as pd

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import read_lines
from paper.experiment import (
    ONE_RUN,
    SIMULATED,
    Bench,
    Claim,
    Experiment,
    NotRun,
    Result,
    Simulation,
    markdown_table,
    runs_of,
)
from paper.lines import line_figure
from paper.making import BENCH_FILE

_DENSITY = 0.001
_SELECTORS = ("LibTorch's topk", "topk", "sampled", "mstopk")


def _read_times(folder):
    """The benchmark's lines as a table. Throws DataError."""
    file = folder / BENCH_FILE
    if not file.exists():
        raise NotRun(f"no {BENCH_FILE} of `research/papers run mstopk-operator`", folder)
    table = pd.DataFrame(read_lines(file))
    for column in ("selector", "values", "density", "repeats", "median_s", "mass_of_exact", "processor", "hearsay"):
        if column not in table:
            raise DataError(f"{file} has no {column!r}: it was edited or damaged; measure again")
    for (values, density), found in table.groupby(["values", "density"]):
        for name in _SELECTORS:
            if name not in set(found["selector"]):
                raise DataError(f"{file} has no {name} of {values:,} values at {density}; measure again")
    return table


def _curve(table, selector):
    """[(million values, ms)], ascending."""
    found = table[(table["selector"] == selector) & (table["density"] == _DENSITY)].sort_values("values")
    return list(zip(found["values"] / 1e6, 1e3 * found["median_s"]))


def _draw_operator(folder):
    table = _read_times(folder)
    rows = []
    for values in sorted(table["values"].unique()):
        for density in sorted(table["density"].unique()):
            cells = table[(table["values"] == values) & (table["density"] == density)].set_index("selector")
            times = [f"{1e3 * cells.loc[name, 'median_s']:.3f}" for name in _SELECTORS]
            masses = [f"{100 * cells.loc[name, 'mass_of_exact']:.2f}" for name in ("sampled", "mstopk")]
            rows.append([f"{values:,}", density, *times, *masses])
    heads = ["values", "density", *(f"`{name}`, ms" for name in _SELECTORS), "`sampled`, mass, %", "`mstopk`, mass, %"]
    series = {name: _curve(table, name) for name in _SELECTORS}
    last = {name: points[-1][1] for name, points in series.items()}  # of the most values
    faster = last["mstopk"] < last["LibTorch's topk"]
    claim = Claim("MSTopK faster than the exact top-k of its framework", faster, ONE_RUN)
    text = (
        f"Medians of {table['repeats'].min()} calls on one thread; {', '.join(sorted(table['processor'].unique()))}, "
        f"hearsay {', '.join(sorted(table['hearsay'].unique()))}. Mass: Σ of the magnitudes chosen, of the exact "
        "choice's; `sampled` may choose more than k. The article has curves without numbers in the text. "
        f"{claim} Here, with the most values and density {_DENSITY}, it takes "
        f"{last['mstopk'] / last[_SELECTORS[0]]:.2f} times as long as LibTorch's topk and "
        f"{last['mstopk'] / last['topk']:.1f} times as long as our exact one: 30 passes over "
        "memory suit a GPU.\n"
    )
    figure = line_figure(
        "times",
        "Time of a selection",
        f"Density {_DENSITY}; medians, one thread.",
        ("millions_of_values", "million values"),
        ("milliseconds", "ms"),
        series,
    )
    return Result(f"{markdown_table(heads, rows)}\n{text}", [figure], [claim])


_EXCHANGES = ("dense ring", "top-k, flat", "gTop-k, tree", "HiTopKComm")


def _draw_hierarchy(folder):
    times = {name: runs_of(folder, name, 128)[0].summary["time_per_iteration_s"] for name in _EXCHANGES}
    hitopk = times["HiTopKComm"]
    rows = [[name, f"{1e3 * s:.1f}", f"{s / hitopk:.2f}"] for name, s in times.items()]
    claim = Claim(
        "The hierarchical exchange faster than a flat all-gather and than a dense sum",
        hitopk < min(times["top-k, flat"], times["dense ring"]),
        SIMULATED,
    )
    text = (
        f"{claim} The article gives no times in its text. Every GPU's own top-k crosses the machines' cables in the "
        "flat all-gather. gTop-k's tree, which the article does not have, sends least between machines; it keeps the "
        "fewest values, too.\n"
    )
    return Result(f"{markdown_table(['exchange', 'ms', 'of HiTopKComm'], rows)}\n{text}", [], [claim])


OPERATOR = Experiment(
    "mstopk-operator",
    "MSTopK: the operator",
    "shi2021towards",
    "mstopk-operator",
    ("",),
    "one thread of a processor instead of a V100; independent normal values.",
    _draw_operator,
    Bench(
        "selector_times",
        ("--values", "1e5,1e6,1e7,2.5e7", "--density", "0.001,0.01", "--repeats", "5"),
        ("--values", "1e4,1e5", "--density", "0.001", "--repeats", "1"),
    ),
)
HIERARCHY = Experiment(
    "hitopkcomm",
    "HiTopKComm: 16 machines of 8 GPUs",
    "shi2021towards",
    "simulated-hierarchy",
    ("",),
    "times are simulated; 25 million values, 1 %, 128 ranks, 25 Gbit/s between machines and an assumed 50 GB/s "
    "inside; a 100th of the values travels at a 100th of the bandwidth; selecting takes no time.",
    _draw_hierarchy,
    Simulation("gpu-16x8-25g"),
    ("simulate.iterations=1",),
)
