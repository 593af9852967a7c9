#!/usr/bin/env python3
"""The front of accuracy against bytes, cell by cell: shares of the data, graph, number of ranks.

    research/results/front.py             the table of skew.md, from tables/skew.csv and tables/skew-exponential.csv;
                                          other strengths of the correction, on rings, are in tables/skew-strength.csv

Its picture, figures/skew-cells.svg, is drawn by draw.py.
"""
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "analysis"))

from hearsay_analysis.runs.rows import read_rows  # noqa: E402

SHARES = {"shards": "label-sorted", "dirichlet": "Dirichlet 0.1", "iid": "iid"}
GRAPHS = {"ring": "skew", "exponential": "skew-exponential"}  # and the table of its runs
RANKS = (8, 16)
ACCURACIES = ("accuracy_mean_model", "accuracy_rank_min")
METHODS = {  # (method, correction) and its column
    ("all-reduce", None): "all-reduce",
    ("D-PSGD", "none"): "D-PSGD",
    ("D-PSGD", "drift"): "D-PSGD, corrected",
    ("int8, events 0.5", "drift"): "`int8`, horizon 0.5",
    ("int8, events 2", "drift"): "`int8`, horizon 2",
    ("2 bits, every 7th", "drift"): "`two_bit`, every 7th",
}


def cells():
    """{(shares, graph, ranks): {(method, correction): [SweptRun]}}; a sum over all has no graph and is in both."""
    found = {(shares, graph, ranks): {} for shares in SHARES for ranks in RANKS for graph in GRAPHS}
    for graph, table in (*GRAPHS.items(), ("ring", "skew-strength")):
        for run in read_rows(HERE / f"tables/{table}.csv"):
            if "exchange.strategy" in run.axis:
                continue
            strength = run.axis.get("exchange.correction.strength")
            method = run.method if strength is None else f"{run.method}, strength {strength:g}"
            correction = run.axis.get("exchange.correction.name")
            for other in GRAPHS if correction is None else (graph,):
                cell = found.get((run.axis["data.partition"]["name"], other, run.ranks))
                if cell is not None:
                    cell.setdefault((method, correction), []).append(run)
    return found


def per_cent(runs, key):
    """[100 * run.summary[key]] of the runs that finished."""
    return [100 * run.summary[key] for run in runs if run.finished]


def entry(runs):
    """Mean and deviation of the averaged model and, in brackets, the worst rank's mean; how many runs diverged."""
    means, worst = (per_cent(runs, key) for key in ACCURACIES)
    if not means:
        return f"all {len(runs)} diverge" if runs else "–"
    text = f"{statistics.mean(means):.1f}"
    if len(means) > 1:
        text += f" ± {statistics.stdev(means):.1f}"
    text += f" ({statistics.mean(worst):.0f})"
    if len(means) < len(runs):
        text += f", {len(runs) - len(means)} of {len(runs)} diverges"
    return text


def main():
    print("| shares | P | graph |", " | ".join(METHODS.values()), "|")
    print("|---" * (3 + len(METHODS)) + "|")
    for (shares, graph, ranks), methods in cells().items():
        entries = [entry(methods.get(method, [])) for method in METHODS]
        print("|", " | ".join((SHARES[shares], str(ranks), graph, *entries)), "|")


if __name__ == "__main__":
    main()
