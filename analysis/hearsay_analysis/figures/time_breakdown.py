"""Where the time of an iteration goes."""
import pandas as pd

from hearsay_analysis import text
from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Absent, Figure, canvas

# Phase of summary.json, words, colour number. wait is communication that computation does not hide.
_PHASES = [
    ("compute_s", "compute", 0),
    ("trigger_s", "trigger", 3),
    ("select_s", "select", 4),
    ("encode_s", "encode", 5),
    ("mix_s", "mix", 2),
    ("optimizer_s", "optimizer", 6),
    ("wait_s", "exposed communication", 1),
]


def per_iteration(run):
    """Seconds of an iteration by phase, mean over ranks; `unattributed_s` is the rest of time_per_iteration_s."""
    seconds = {name: run.summary.get(name, 0.0) / run.iterations for name, _, _ in _PHASES}
    rest = run.summary["time_per_iteration_s"] - sum(seconds.values())
    hidden = run.summary.get("communicate_hidden_s", 0.0) / run.iterations
    coding = _exposed_coding(run.summary) / run.iterations
    seconds["encode_s"] += coding
    seconds["wait_s"] -= coding
    return {**seconds, "unattributed_s": max(0.0, rest), "communicate_hidden_s": hidden}


def _exposed_coding(summary):
    """Seconds of wait_s in which messages are encoded or decoded: all of that where the computing thread waits for
    whole collectives; where a part of them is hidden, the same part of their coding."""
    coding, communicating = summary.get("communicate_encode_s", 0.0), summary.get("communicate_s", 0.0)
    return coding * min(1.0, summary["wait_s"] / communicating) if communicating > 0 else 0.0


def _drawn(data):
    plot, axes = canvas(0.9 + 0.42 * len(data))
    left = pd.Series(0.0, index=data.index)
    for name, words, number in [*_PHASES, ("unattributed_s", "not attributed", None)]:
        milliseconds = 1e3 * data[name]
        if not milliseconds.any():
            continue
        shade = style.GRID if number is None else style.colour(number)
        axes.barh(data.index, milliseconds, left=left, height=0.6, color=shade, label=words)
        left += milliseconds
    axes.set_yticks(data.index, [text.shortened(name, 18) for name in data["run"]])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("ms an iteration, mean over ranks")
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncol=3, frameon=False, fontsize=8, handlelength=1)
    return plot


def draw(runs, _options):
    title = "Time of an iteration"
    timed = [run for run in runs if run.counted_by_summary and run.iterations]
    if not timed:
        return [Absent(title, "times are written at the end of a run, and no run has come to its end")]
    data = pd.DataFrame([{"run": run.name, **per_iteration(run)} for run in timed])
    caption = (
        "Without evaluations. Exposed communication is waiting for neighbours or collectives; encoding that is waited "
        "for is drawn as encoding. What is hidden behind computation costs nothing and is not drawn (its seconds are "
        "in the CSV file). The rest of the slowest rank's iteration is not attributed."
    )
    left_out = [run.name for run in runs if run not in timed]
    if left_out:
        caption += f" Without {', '.join(left_out)}: not finished."
    return [Figure("time", title, caption, data, _drawn(data))]
