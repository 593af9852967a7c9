#!/usr/bin/env python3
"""Draw the pictures of these pages that are made from tables/: accuracy-bytes.svg and those in figures/.

    research/results/draw.py

It needs matplotlib, numpy, pandas and yaml as Debian packages them, and no run folder.
"""
import re
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "analysis"))

import front  # noqa: E402
import matplotlib.figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator  # noqa: E402

from hearsay_analysis.drawing import output, style  # noqa: E402
from hearsay_analysis.runs.rows import read_rows  # noqa: E402

FAMILIES = ("D-PSGD", "periodic", "events", "events, top-k", "top-k", "events, stale (the paper)")


def read_table(name, heading=""):
    """[{column: cell}] of the first table below the line "## heading" of tables/NAME.md."""
    text = (HERE / "tables" / f"{name}.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n", 1)[1] if heading else text
    lines = section[section.index("\n|") + 1 :].split("\n\n", 1)[0].strip().split("\n")
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(heads, row)) for row in rows]


def number(cell):
    """The first number of "97.53 ± 0.17" or "107 ms"."""
    return float(cell.split()[0].replace("−", "-").rstrip("%"))


def family(method):
    """Which of FAMILIES a row of mnist.md belongs to."""
    if method.startswith(("D-PSGD", "periodic")):
        return method.split(",")[0]
    if "stale" in method:
        return FAMILIES[5]
    if method.startswith("always"):
        return FAMILIES[4]
    return FAMILIES[3] if "top-k" in method else FAMILIES[2]


def mnist_rows(heading):
    """The rows of mnist.md whose runs did not diverge."""
    return [row for row in read_table("mnist", heading) if "bytes, %" in row and row["bytes, %"]]


def canvas(height_in, columns=1, width_in=7.2, rows=1, **options):
    plot = matplotlib.figure.Figure(figsize=(width_in, height_in), layout="constrained")
    return plot, plot.subplots(rows, columns, squeeze=False, **options).ravel()


def per_cent_axis(axes, what, ticks=(1, 2, 5, 10, 20, 50, 100)):
    """A logarithmic axis with plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(what)


def scatter(axes, rows, x, y, lowest=0.0):
    """A point a row, a colour and a mark a family. Rows below `lowest` are left out; their number is returned."""
    for place, name in enumerate(FAMILIES):
        found = [row for row in rows if family(row["method"]) == name and number(row[y]) >= lowest]
        across, up = [number(row[x]) for row in found], [number(row[y]) for row in found]
        size = 60 if name == "D-PSGD" else 24
        axes.scatter(across, up, size, style.colour(place), style.marker(place), label=name, zorder=3)
    return sum(1 for row in rows if number(row[y]) < lowest)


def legend_below(plot, axes, columns=3):
    """Names of the marks in the axes, in room that is kept free below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    plot.legend(handles, labels, loc="lower center", ncols=columns, frameon=False, fontsize=8)
    room = (0.1 + 0.18 * -(-len(labels) // columns)) / plot.get_size_inches()[1]
    plot.get_layout_engine().set(rect=(0, room, 1, 1 - room))


def accuracy_bytes():
    plot, panels = canvas(3.5, 2, sharey=True)
    for axes, shares in zip(panels, ("iid shares", "label-sorted shares")):
        missing = scatter(axes, mnist_rows(f"P = 4, {shares}"), "bytes, %", "accuracy of the mean model, %", 88)
        axes.set_title(f"{shares} ({missing} below 88 %: not drawn)", loc="left")
        per_cent_axis(axes, "bytes, % of D-PSGD's")
    panels[0].set_ylabel("accuracy of the averaged model, %")
    legend_below(plot, panels[0])
    return plot


def mixing_rules():
    plot, panels = canvas(3.2, 2, sharey=True)
    rules = ("arrival", "difference 0.5", "stale")
    for axes, ranks in zip(panels, (4, 8)):
        rows = mnist_rows(f"P = {ranks}, iid shares")
        for place, rule in enumerate(rules):
            found = [row for row in rows if row["method"].endswith(f", {rule}") and "top-k" not in row["method"]]
            points = sorted((number(row["messages, %"]), number(row["accuracy of the mean model, %"])) for row in found)
            points = [point for point in points if point[1] >= 84]
            axes.plot(*zip(*points), color=style.colour(place), marker=style.marker(place), markersize=5, label=rule)
        [dpsgd] = [number(row["accuracy of the mean model, %"]) for row in rows if row["method"] == "D-PSGD"]
        axes.axhline(dpsgd, color=style.MUTED, linewidth=1, linestyle=":", label="D-PSGD")
        axes.set_title(f"P = {ranks}, iid shares", loc="left")
        per_cent_axis(axes, "messages, % of D-PSGD's")
    panels[0].set_ylabel("accuracy of the averaged model, %")
    legend_below(plot, panels[0], 4)
    return plot


def worst_rank():
    plot, panels = canvas(3.5, 2, sharey=True)
    columns = ("accuracy of the mean model, %", "worst rank, %")
    for axes, column, words in zip(panels, columns, ("the averaged model", "the worst rank's model")):
        scatter(axes, mnist_rows("P = 4, label-sorted shares"), "bytes, %", column)
        axes.set_title(words, loc="left")
        per_cent_axis(axes, "bytes, % of D-PSGD's")
    panels[0].set_ylabel("accuracy, %")
    legend_below(plot, panels[0])
    return plot


SKEW_FAMILIES = ("whole tensors", "8 bits", "4 bits", "2 bits")
CENTRAL = {  # (table, method): its name in the picture
    ("outer-mnist-every-step", "PowerSGD, rank 2"): "PowerSGD",
    ("outer-mnist-every-step", "Top-k 1 %"): "top-k",
    ("outer-mnist-every-step", "gTop-k 1 %"): "gTop-k",
    ("outer-mnist", "SparseLoCo 3 %, 2 bits, H = 5"): "SparseLoCo",
}


def skew_family(method):
    """Which of SKEW_FAMILIES a method of skew-own-rates.csv belongs to."""
    bits = {"int8": "8 bits", "fp4": "4 bits", "2 bits": "2 bits"}
    return next((family for start, family in bits.items() if method.startswith(start)), "whole tensors")


def skew_runs(table):
    """{method: [summary]} of its runs on label-sorted shares that finished."""
    found = {}
    for run in read_rows(HERE / f"tables/{table}.csv"):
        if run.finished and run.axis["data.partition"]["name"] == "shards":
            found.setdefault(run.method, []).append(run.summary)
    return found


def skew_front():
    """Round: along a ring, filled with drift correction. A cross: sums over all ranks. Dotted: the all-reduce."""
    tables = {name: skew_runs(name) for name in ("skew-own-rates", "outer-mnist-every-step", "outer-mnist")}
    corrected, plain = tables["skew-own-rates"], tables["outer-mnist-every-step"]["D-PSGD"]
    full = statistics.mean(summary["bytes_sent"] for summary in plain)
    plot, panels = canvas(3.7, 2)
    for axes, key in zip(panels, ("accuracy_mean_model", "accuracy_rank_min")):

        def place(summaries):
            across = statistics.mean(summary["bytes_sent"] for summary in summaries) / full
            return 100 * across, 100 * statistics.mean(summary[key] for summary in summaries)

        for method, summaries in corrected.items():
            if method != "gradient tracking":
                colour = style.colour(SKEW_FAMILIES.index(skew_family(method)))
                axes.scatter(*place(summaries), 60 if method == "D-PSGD" else 26, color=colour, zorder=3)
        axes.scatter(*place(plain), 60, facecolors="none", edgecolors=style.colour(0), zorder=2)
        for (table, method), name in CENTRAL.items():
            across, up = place(tables[table][method])
            axes.scatter(across, up, 22, marker="x", color=style.MUTED, zorder=2)
            axes.annotate(name, (across, up), (3, 4), textcoords="offset points", fontsize=7, color=style.MUTED)
        dense = tables["outer-mnist-every-step"]["all-reduce"]
        axes.axhline(place(dense)[1], color=style.MUTED, linewidth=1, linestyle=":")
        per_cent_axis(axes, "bytes, % of D-PSGD's")
    panels[0].set_title("the averaged model", loc="left")
    panels[1].set_title("the worst rank's model", loc="left")
    panels[0].set_ylabel("accuracy, %")
    filled = [Line2D([], [], linestyle="", marker="o", color=style.colour(i)) for i in range(len(SKEW_FAMILIES))]
    hollow = Line2D([], [], linestyle="", marker="o", color=style.colour(0), markerfacecolor="none")
    cross = Line2D([], [], linestyle="", marker="x", color=style.MUTED)
    line = Line2D([], [], color=style.MUTED, linewidth=1, linestyle=":")
    names = (*SKEW_FAMILIES, "without correction", "sums over all ranks", "all-reduce")
    plot.legend([*filled, hollow, cross, line], names, loc="lower center", ncols=4, frameon=False, fontsize=8)
    room = 0.48 / plot.get_size_inches()[1]
    plot.get_layout_engine().set(rect=(0, room, 1, 1 - room))
    return plot


def draw_cell(axes, methods):
    """The averaged model, and a thin line down to the worst rank; the all-reduce dotted. A method keeps its colour."""
    for place, (method, correction) in enumerate(front.METHODS):
        finished = [run for run in methods.get((method, correction), []) if run.finished]
        if not finished:
            continue
        model, worst = (statistics.mean(front.per_cent(finished, key)) for key in front.ACCURACIES)
        if method == "all-reduce":
            axes.axhline(model, color=style.MUTED, linewidth=1, linestyle=":")
            continue
        across = 100 * statistics.mean(run.summary["bytes_fraction"] for run in finished)
        filled = style.colour(place) if correction == "drift" else "none"
        axes.vlines(across, worst, model, style.colour(place), linewidth=1)
        axes.scatter(across, model, 26, marker="o", facecolors=filled, edgecolors=style.colour(place), zorder=3)


def skew_cells():
    """A panel for every kind of shares, graph and number of ranks."""
    plot = matplotlib.figure.Figure(figsize=(7.2, 6), layout="constrained")
    columns = [(graph, ranks) for ranks in front.RANKS for graph in front.GRAPHS]
    panels = plot.subplots(len(front.SHARES), len(columns), sharex=True, sharey=True)
    cells = front.cells()
    for row, (shares, name) in zip(panels, front.SHARES.items()):
        row[0].set_ylabel(f"{name}: accuracy, %")
        for axes, (graph, ranks) in zip(row, columns):
            draw_cell(axes, cells[shares, graph, ranks])
            per_cent_axis(axes, "", (1, 5, 20, 100))
    panels[0][0].set_ylim(10, 100)
    for axes, (graph, ranks) in zip(panels[0], columns):
        axes.set_title(f"{graph}, P = {ranks}", loc="left")
    for axes in panels[-1]:
        axes.set_xlabel("bytes, % of D-PSGD's")
    marks = []
    for place, (method, correction) in enumerate(front.METHODS):
        filled = style.colour(place) if correction == "drift" else "none"
        line = method == "all-reduce"
        marks += [
            Line2D([], [], color=style.MUTED, linewidth=1, linestyle=":")
            if line
            else Line2D([], [], linestyle="", marker="o", color=style.colour(place), markerfacecolor=filled)
        ]
    names = [name.replace("`", "") for name in front.METHODS.values()]
    plot.legend(marks, names, loc="lower center", ncols=3, frameon=False, fontsize=8)
    plot.get_layout_engine().set(rect=(0, 0.07, 1, 0.93))
    return plot


def global_bytes():
    plot, panels = canvas(3.6, 2, sharey=True)
    headings = {
        "density 1 %": ("P = 8, 20 epochs (as many iterations as at P = 4), and 10 epochs", "P = 8"),
        "density 0.1 % after a warm-up": ("P = 8, 20 epochs, the gTop-k paper's 0.1 %", "P = 8, 0.1 %"),
    }
    methods = [row["P = 8"] for row in read_table("global-training", headings["density 1 %"][0])]
    for axes, (title, (heading, column)) in zip(panels, headings.items()):
        by_method = {row[column]: row for row in read_table("global-training", heading)}
        for place, method in enumerate(methods):
            row = by_method.get(method, {})
            across = [number(row["bytes, %"])] if row else []
            down = [number(row["less dense"])] if row else []
            mark = style.marker(place + place // len(style.SERIES))
            axes.plot(across, down, mark, color=style.colour(place), markersize=6, label=method)
        axes.set_title(title, loc="left")
        per_cent_axis(axes, "bytes, % of a dense ring's", (1, 2, 5, 10, 20, 50, 100))
    panels[0].set_ylabel("points behind the dense sum")
    legend_below(plot, panels[0])
    return plot


def training_step():
    plot, panels = canvas(2.6, 2, sharex=True, width_ratios=(1, 1))
    for axes, model in zip(panels, ("resnet20", "mnist_cnn")):
        text = (HERE / "tables/training-step.md").read_text(encoding="utf-8")
        block = next(part for part in text.split("\n\n") if part.startswith(f"| {model} "))
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.strip().split("\n")[2:]]
        axes.barh([row[0] for row in rows], [number(row[2]) for row in rows], height=0.6, color=style.colour(0))
        axes.axvline(1.0, color=style.INK, linewidth=1)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_title(model, loc="left")
        axes.set_xlabel("time of a step, of the bare loop's")
    return plot


OUTER_FAMILIES = (
    ("gossip_outer, drawn events", lambda name: "at random" in name and name.startswith("gossip_outer")),
    ("gossip_outer, asynchronous", lambda name: "asynchronous" in name),
    ("gossip_outer, events", lambda name: name.startswith("gossip_outer") and ("events" in name or "scale" in name)),
    ("gossip_outer", lambda name: name.startswith("gossip_outer")),
    ("DiLoCo", lambda name: name.startswith("DiLoCo")),
    ("SparseLoCo", lambda name: name.startswith("SparseLoCo")),
    ("NoLoCo, GASLoC", lambda name: name.startswith(("NoLoCo", "GASLoC"))),
    ("others", lambda name: True),
)
OUTER_TABLES = ("outer-every-step", "outer", "outer-events", "outer-studies")
OUTER_MNIST_TABLES = ("outer-mnist-every-step", "outer-mnist", "outer-mnist-events")
OUTER_DEALINGS = {"iid": "dealt evenly", "shards": "each its own part"}
OUTER_MNIST_DEALINGS = {"shards": "label-sorted shares", "dirichlet": "Dirichlet shares, α 0.1"}


def outer_runs(tables):
    """{(ranks, dealing): all finished runs}, where an all-reduce is among them."""
    cells = {}
    for run in (run for table in tables for run in read_rows(HERE / f"tables/{table}.csv")):
        if run.finished:
            dealing = run.axis.get("data.partition", {}).get("name") or run.axis.get("data.partition.name", "iid")
            cells.setdefault((run.ranks, dealing), []).append(run)
    return {cell: runs for cell, runs in cells.items() if any(run.method == "all-reduce" for run in runs)}


def outer_points(runs):
    """{place in OUTER_FAMILIES: [(bytes, % of the all-reduce's; loss or accuracy, of the averaged model and of the
    worst rank)]}, means over seeds, of one cell's runs."""
    groups, points = {}, {}
    for run in runs:
        groups.setdefault((run.method, run.axis.get("exchange.local_steps")), []).append(run.summary)
    all_reduce = statistics.mean(summary["bytes_sent"] for summary in groups[("all-reduce", None)])
    for (method, _), summaries in groups.items():
        place = next(i for i, (_, belongs) in enumerate(OUTER_FAMILIES) if belongs(method))
        across = 100 * statistics.mean(summary["bytes_sent"] for summary in summaries) / all_reduce
        up, worst = (statistics.mean(s["metrics"][0][of] for s in summaries) for of in ("mean_model", "rank_worst"))
        points.setdefault(place, []).append((across, up, worst))
    return points


def scatter_families(axes, points):
    """Points as `outer_points` has them, a colour and a marker a family; the worst rank is not drawn."""
    for place, of_family in sorted(points.items()):
        mark = style.marker(place + place // len(style.SERIES))
        across, up, _ = zip(*of_family)
        axes.scatter(across, up, 26, style.colour(place), mark, label=OUTER_FAMILIES[place][0], zorder=3)


def local_steps():
    """Validation loss against bytes, those of the all-reduce being 100, a row a number of ranks, a column a dealing.
    Left out: whose worst rank is worse than 2.4."""
    cells = outer_runs(OUTER_TABLES)
    plot, panels = canvas(7.2, len(OUTER_DEALINGS), rows=len({ranks for ranks, _ in cells}), sharey=True)
    for axes, ((ranks, dealing), runs) in zip(panels, sorted(cells.items())):
        points = outer_points(runs)
        scatter_families(axes, {place: kept for place in points if (kept := [p for p in points[place] if p[2] < 2.4])})
        axes.set_title(f"{ranks} ranks, {OUTER_DEALINGS[dealing]}", loc="left")
        per_cent_axis(axes, "bytes, % of the all-reduce's", (0.02, 0.1, 0.5, 2, 10, 50))
        axes.set_xlim(0.012, 200)
    for axes in panels[:: len(OUTER_DEALINGS)]:
        axes.set_ylabel("validation loss, nats a character")
    legend_below(plot, panels[0])
    return plot


def local_steps_mnist():
    """Accuracy of the averaged model against bytes, a panel a dealing. Left out: below 80 %."""
    cells = {dealing: runs for (_, dealing), runs in outer_runs(OUTER_MNIST_TABLES).items()}
    plot, panels = canvas(4.2, len(cells), sharey=True)
    for axes, (dealing, title) in zip(panels, OUTER_MNIST_DEALINGS.items()):
        points = outer_points(cells[dealing])
        shown = {place: [(x, 100 * y, w) for x, y, w in points[place] if y > 0.8] for place in points}
        scatter_families(axes, {place: kept for place, kept in shown.items() if kept})
        axes.set_title(title, loc="left")
        per_cent_axis(axes, "bytes, % of the all-reduce's", (0.05, 0.2, 1, 5, 20, 100))
    panels[0].set_ylabel("accuracy of the averaged model, %")
    legend_below(plot, panels[0])
    return plot


MUON_FAMILIES = ("all-reduce", "D-PSGD", "EventGraD", "SparseLoCo", "gossip_outer, value events", "DiLoCo", "GASLoC",
                 "gossip_outer")


def muon():
    """Validation loss of the averaged model against bytes, those of the all-reduce being 100, four ranks, dealt evenly;
    hollow: AdamW, filled: Muon. Methods of one family, and rounds of several lengths, look alike."""
    plot, (axes,) = canvas(3.8, width_in=style.WIDTH_IN + 1.4)
    named = set()
    for table, filled in (("muon", True), ("outer-published", False)):
        groups = {}
        for run in read_rows(HERE / f"tables/{table}.csv"):
            if run.finished and run.ranks == 4 and run.axis["data.partition.name"] == "iid":
                groups.setdefault(run.method, []).append(run.summary)
        full = next(runs for method, runs in groups.items() if method in ("all-reduce", "all-reduce, Muon"))
        all_reduce = statistics.mean(summary["bytes_sent"] for summary in full)
        for method, runs in groups.items():
            place = next(i for i, family in enumerate(MUON_FAMILIES) if method.startswith(family))
            across = 100 * statistics.mean(summary["bytes_sent"] for summary in runs) / all_reduce
            up = statistics.mean(summary["metrics"][0]["mean_model"] for summary in runs)
            colour, marker = style.colour(place), style.marker(place + place // len(style.SERIES))
            axes.scatter(across, up, 34, marker=marker, edgecolors=colour, facecolors=colour if filled else "none",
                         label=None if place in named else MUON_FAMILIES[place], zorder=3)
            named.add(place)
    per_cent_axis(axes, "bytes, % of the all-reduce's", (0.05, 0.1, 0.2, 0.5, 1, 5, 20, 100))
    axes.set_ylabel("validation loss, nats a character")
    axes.set_title("hollow: AdamW, filled: Muon", loc="left")
    legend_below(plot, axes, 2)
    return plot


def main():
    style.apply()
    output.write_picture(HERE / "accuracy-bytes.svg", accuracy_bytes())
    figures = (mixing_rules, worst_rank, skew_front, skew_cells, global_bytes, training_step, local_steps)
    for draw in (*figures, local_steps_mnist, muon):
        output.write_picture(HERE / "figures" / f"{draw.__name__.replace('_', '-')}.svg", draw())


if __name__ == "__main__":
    main()
