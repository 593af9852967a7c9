"""The page of a sweep: metric against bytes, the Pareto front of every combination of ranks and axis values."""
import re

from hearsay_analysis import text
from hearsay_analysis.page import markup
from hearsay_analysis.figures import pareto
from hearsay_analysis.sweeps.gathered import pareto_front, read_sweep


def _heads(metric):
    return ["", "method", f"{metric.label}, averaged", "worst rank", "messages, %", "bytes", "bytes, %", "seeds"]


def group_title(ranks, axis):
    return ", ".join(
        [text.counted(ranks, "rank"), *(f"{name.removesuffix('.name')} {value.strip(chr(34))}" for name, value in axis)]
    )


def _row(number, point):
    lost = f", {point.diverged} diverged" if point.diverged else ""
    others = {name: point.mean(name) for name in point.others}
    return [
        str(number),
        markup.escaped(point.method),
        markup.value(point.value, point.metric.text(point.value, point.deviation)),
        markup.value(others["rank_worst"], point.metric.text(others["rank_worst"])),
        markup.value(others["messages_fraction"], text.number_of_percent(others["messages_fraction"])),
        markup.value(point.bytes_mean, text.byte_count(point.bytes_mean)),
        markup.value(others["bytes_fraction"], text.number_of_percent(others["bytes_fraction"])),
        f"{point.seeds}{lost}",
    ]


def _tables(points, front):
    numbers = pareto.numbered(points)
    best = [(number, point) for number, point in numbers if point in front]
    rows = [_row(number, point) for number, point in numbers]
    heads = _heads(numbers[0][1].metric)
    marks = ["front" if point in front else "" for _, point in numbers]
    return (
        markup.element("h3", "The front")
        + markup.table(heads, [_row(*item) for item in best], "methods")
        + f"<details><summary>All {len(numbers)} methods, by bytes</summary>"
        f"{markup.table(heads, rows, 'methods', marks)}</details>"
    )


def _left_out(points):
    lines = [
        f"{p.method}: diverged ({text.counted(p.diverged, 'run')}), so not on the front" for p in points if p.diverged
    ]
    lines += [f"{p.method}: {text.counted(p.unfinished, 'run')} not finished" for p in points if p.unfinished]
    return "".join(markup.element("p", markup.escaped(line) + ".", "quiet") for line in lines)


def _group(key, points, folder):
    title = group_title(*key)
    front = pareto_front(points)
    figure = pareto.figure("pareto-" + re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-"), title, points, front)
    folder.save([figure])
    beside = _tables(points, front) if front else ""
    return (
        f'<section class="beside"><div>{markup.figures([figure], folder.links)}</div>'
        f"<div>{beside}{_left_out(points)}</div></section>\n"
    )


def report(sweep_folder, folder):
    """The page's HTML; the figures' files go into the FigureFolder. Throws DataError."""
    groups = read_sweep(sweep_folder)
    points = [point for group in groups.values() for point in group]
    heading = (
        f"<h1>{markup.escaped(sweep_folder)}</h1>\n<p>{text.counted(sum(p.seeds for p in points), 'finished run')}, "
        f"{text.counted(len(points), 'point')} (method, ranks and axis values). Figures are of the averaged model, "
        "mean and sample standard deviation over seeds. A point is on the Pareto front if no other of its figure is "
        "as good with as few bytes. An axis of accuracy is spaced by the error's logarithm.</p>\n"
    )
    return markup.document(
        f"Hearsay sweep: {sweep_folder}", heading + "".join(_group(key, group, folder) for key, group in groups.items())
    )
