"""Tables and sentences of the comparison page: the same figures as `hearsay compare`, from the same files."""
import json
import shlex

from hearsay_analysis import text
from hearsay_analysis.page import markup
from hearsay_analysis.runs.metrics import BYTE_KINDS
from hearsay_analysis.runs.run_folder import IN_PROGRESS, flat_config

_MOST_NAMES = 4  # in a sentence; of more only the number is said
_MUCH_STALENESS = 0.1  # of the run's iterations
# Where a run's own files go is no difference between experiments.
_NO_DIFFERENCE = ("report.directory", "report.overwrite")


def _of_first(run, first, name):
    part, whole = run.totals[name], first.totals[name]
    return part / whole if whole and part is not None else None


def _row(number, run, first):
    time = run.summary.get("time_per_iteration_s") if run.counted_by_summary else None
    quality = run.quality
    value, worst = quality.mean_model, quality.rank_worst
    # A run that broke off has measured no distance; its summary says 0.
    distance = run.number("consensus_distance") if value is not None else None
    messages, sent = run.totals["messages"], run.totals["bytes_sent"]
    possible = run.messages_per_iteration * run.counted_iterations
    fraction = messages / possible if possible and messages is not None else None
    return [
        markup.swatch(number) + markup.escaped(run.name),
        markup.escaped(run.status),
        markup.value(run.iterations, text.count(run.iterations)),
        markup.value(value, quality.metric.text(value)),
        markup.value(worst, quality.metric.text(worst)),
        markup.value(distance, text.significant(distance, 3)),
        markup.value(messages, text.count(messages)),
        markup.value(fraction, text.number_of_percent(fraction)),
        markup.value(_of_first(run, first, "messages"), text.number_of_percent(_of_first(run, first, "messages"))),
        markup.value(sent, text.byte_count(sent)),
        markup.value(_of_first(run, first, "bytes_sent"), text.number_of_percent(_of_first(run, first, "bytes_sent"))),
        markup.value(time, text.duration(time)),
        markup.value(run.mean_staleness, text.significant(run.mean_staleness, 3)),
        markup.value(run.oldest_copy, text.count(run.oldest_copy)),
    ]


def comparison_table(runs):
    heads = [
        "run",
        "status",
        "iterations",
        f"{runs[0].quality.metric.label}, averaged",
        "worst rank",
        "consensus distance",
        "messages",
        "% of D-PSGD's",
        "% of first's messages",
        "bytes",
        "% of first's bytes",
        "time per iteration",
        "staleness, mean",
        "oldest copy",
    ]
    return markup.table(heads, [_row(number, run, runs[0]) for number, run in enumerate(runs)], "wide")


def bytes_table(runs):
    """Every byte by kind; the last column is the sum of the others."""
    names = [*BYTE_KINDS, "bytes_sent"]
    rows = [
        [
            markup.swatch(number) + markup.escaped(run.name),
            *(
                markup.value(run.totals[name], text.count(run.totals[name]))
                for name in [*names, "packets", "puts", "deferred"]
            ),
        ]
        for number, run in enumerate(runs)
    ]
    return markup.table(
        ["run", "payload", "index", "header", "control", "all bytes", "packets", "puts", "deferred"], rows
    )


def _experiment(run):
    topology = run.manifest.get("topology", {})
    schedule = (run.summary or run.config.get("exchange", {})).get("schedule")
    facts = {
        "ranks": run.ranks,
        "directed edges": topology.get("directed_edges"),
        "model": run.manifest["model"],
        "parameters": run.manifest.get("parameters"),
        "data": run.manifest["dataset"],
        "schedule": schedule,
        "judged by": run.quality.metric.label if run.quality.mean_model is not None else None,
    }
    if run.status == "finished":
        facts["iterations"] = run.iterations
    return facts


def _differences(run, first):
    theirs = _experiment(first)
    return [
        f"{what} {here} (first run: {theirs[what]})"
        for what, here in _experiment(run).items()
        if None not in (here, theirs.get(what)) and here != theirs[what]
    ]


def _staleness_note(run):
    """A warning where copies were so old that the run is a good part of a run of ranks each for itself; else none."""
    oldest, iterations = run.oldest_copy, run.iterations
    if not oldest or not iterations or oldest <= _MUCH_STALENESS * iterations:
        return []
    return [
        f"{run.name} mixed copies that were up to {text.counted(oldest, 'iteration')} old, "
        f"{text.percent(oldest / iterations, 0)} of its run: some ranks were far ahead of others, as happens where "
        "processes share cores or hosts are unequal. Compare it with a run in lockstep (exchange.schedule)."
    ]


def _listed(ranks, name):
    if len(ranks) > _MOST_NAMES:
        return text.counted(len(ranks), "rank")
    return ", ".join(f"{name(one)} after {text.duration(one['at_s'])}" for one in ranks)


def _losses_note(run):
    """Who died, and who came in their places; runs of older versions say nothing of it."""
    summary = run.summary or {}
    lost, joined = summary.get("ranks_lost", []), summary.get("ranks_joined", [])
    if not lost:
        return []
    words = f"{run.name} lost " + _listed(lost, lambda one: "a spare" if one["rank"] is None else f"rank {one['rank']}")
    if joined:
        came = _listed(joined, lambda one: f"process {one['process']} (rank {one['rank']})")
        words += f"; in the places of dead ranks came {came}"
    return [words + "."]


def comparison_notes(runs):
    """What makes the runs hard to compare, in sentences."""
    sentences = []
    for run in runs:
        after = f"after {text.count(run.iterations)} iterations"
        if run.status == IN_PROGRESS:
            sentences.append(
                f"{run.name} has no summary: it is still in progress, or it was killed. Its numbers are of its "
                f"last records, {after}."
            )
        elif run.status != "finished":
            sentences.append(
                f"{run.name} {run.status} {after}: {run.summary.get('message') or 'no reason given'}. Its "
                "counts are of its last records."
                if not run.counted_by_summary
                else f"{run.name} {run.status} {after}: {run.summary.get('message') or 'no reason given'}."
            )
    for run in runs:
        sentences += _losses_note(run)
        sentences += _staleness_note(run)
    for run in runs[1:]:
        differences = _differences(run, runs[0])
        if differences:
            sentences.append(f"{run.name} is another experiment than the first run: {', '.join(differences)}.")
    if runs[0].totals["messages"] == 0:
        sentences.append(f"{runs[0].name} counted no messages, so nothing can be a % of it.")
    return sentences


def configuration_differences(runs):
    """[(key, [value of every run])] of the keys in which they differ; a run that has not the key has None."""
    flat = [flat_config(run) for run in runs]
    keys = list(dict.fromkeys(key for config in flat for key in config))
    rows = [(key, [config.get(key) for config in flat]) for key in keys if key not in _NO_DIFFERENCE]
    return [(key, values) for key, values in rows if any(value != values[0] for value in values)]


def configuration_table(runs):
    rows = configuration_differences(runs)
    if not rows:
        return "<p>None but the folder they write to.</p>" if len(runs) > 1 else "<p>One run: nothing to compare.</p>"

    def cell(value):
        words = value if isinstance(value, str) else json.dumps(value)
        return markup.escaped(text.NO_NUMBER if value is None else words)

    return markup.table(
        ["key", *(run.name for run in runs)],
        [[markup.escaped(key), *(cell(value) for value in values)] for key, values in rows],
        "words",
    )


def commands(runs):
    """Shell lines that make the same runs again: every configuration is complete, so its file is all that is needed."""
    lines = []
    for run in runs:
        folder = shlex.quote(str(run.folder))
        again = shlex.quote(f"{str(run.folder).rstrip('/')}-again")
        lines.append(f"mpirun -n {run.ranks} hearsay train {folder}/config.yaml --output {again}")
    lines.append("hearsay compare " + " ".join(shlex.quote(str(run.folder)) for run in runs))
    return lines


def origins(runs):
    """When, where, with which versions and how every run was started."""
    blocks = []
    for run in runs:
        hosts = ", ".join(dict.fromkeys(run.manifest.get("hosts", [])))
        versions = ", ".join(f"{name} {version}" for name, version in run.manifest.get("versions", {}).items())
        started = run.manifest.get("started_utc", text.NO_NUMBER)
        blocks.append(
            markup.element("h3", markup.escaped(run.name))
            + markup.element("p", markup.escaped(f"{started}, {run.ranks} ranks on {hosts}; {versions}"), "quiet")
            + markup.element("pre", markup.escaped(run.manifest["command"]))
        )
    return f"<details><summary>How, when and where they were started</summary>{''.join(blocks)}</details>"
