"""Iterations done against time, rank by rank; a panel a folder."""
import matplotlib.figure
import pandas as pd

from hearsay_analysis.drawing import style
from hearsay_analysis.errors import DataError
from hearsay_analysis.page import markdown
from hearsay_analysis.runs.json_files import read_lines
from hearsay_analysis.runs.points import read_points

_COLUMNS = ["folder", "method", "rank", "iterations", "time_s", "loss"]
_LINE_STYLES = ["-", ":", "--", "-."]


def _named(folder):
    """[(method, run folder)]: the runs of a sweep, or the one run that the folder holds itself."""
    if (folder / "manifest.json").exists():
        return [(folder.name, folder)]
    return [(run.method, run.folder) for run in read_points(folder)]


def _rows(folder, ranks):
    rows = []
    for method, run in _named(folder):
        for file in sorted(run.glob("metrics.rank*.jsonl")):
            records = [r for r in read_lines(file) if r["record"] == "iteration"]
            if records and (ranks is None or records[0]["rank"] in ranks):
                rows.append((folder.name, method, records[0]["rank"], 0, 0.0, None))
                rows += [(folder.name, method, r["rank"], r["iteration"] + 1, r["time_s"], r["loss"]) for r in records]
    if not rows:
        raise DataError(f"no metrics.rankNNNN.jsonl with iterations of these ranks below {folder}; train first")
    return rows


def points(folders, ranks):
    """A row a record: folder, method, rank, iterations done, time_s, loss. ranks: None for all. Throws DataError."""
    return pd.DataFrame([row for folder in folders for row in _rows(folder, ranks)], columns=_COLUMNS)


def draw(data):
    """The picture; names of methods and ranks stand in a legend where a panel has few lines."""
    folders, methods = list(data["folder"].unique()), list(data["method"].unique())
    swept = data.groupby("folder")["method"].nunique().max() > 1
    plot = matplotlib.figure.Figure(figsize=(4.5 * len(folders), 3.4), layout="constrained")
    panels = plot.subplots(1, len(folders), sharex=True, sharey=True, squeeze=False)[0]
    for axes, folder in zip(panels, folders):
        here = data[data["folder"] == folder]
        for (method, rank), line in here.groupby(["method", "rank"], sort=False):
            shade = style.colour(methods.index(method) if swept else rank)
            dashes = _LINE_STYLES[rank % len(_LINE_STYLES)] if swept else "-"
            label = f"{method}, rank {rank}" if swept else f"rank {rank}"
            axes.plot(line["time_s"], line["iterations"], linestyle=dashes, color=shade, linewidth=0.9, label=label)
        axes.set_title(folder)
        axes.set_xlabel("time, s")
    panels[0].set_ylabel("iterations done")
    if len(panels[-1].lines) <= 12:
        panels[-1].legend(fontsize="x-small")
    return plot


def paces(data):
    """Markdown: iterations a second over the whole run of its slowest and its fastest rank, a row a run."""
    rows = []
    for (folder, method), lines in data.groupby(["folder", "method"], sort=False):
        last = lines.groupby("rank").last()
        rates = (last["iterations"] / last["time_s"]).sort_values(kind="stable")
        ends = [f"{rates.loc[rank]:.4g} (rank {rank})" for rank in (rates.index[0], rates.index[-1])]
        rows.append([folder, method, *ends])
    return markdown.table(["folder", "run", "iterations/s, slowest", "fastest"], rows)
