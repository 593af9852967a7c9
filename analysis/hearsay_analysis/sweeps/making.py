"""Making the runs of a sweep: each once, with a log beside its folder, and the reason where one fails."""
import json
import os
import queue
import re
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import read_text
from hearsay_analysis.runs.points import POINT_FILE

ROOT = Path(__file__).resolve().parents[3]
DIVERGED = 5  # exit code of the program: a result, not a failure


@dataclass(frozen=True)
class Way:
    """How runs are made: by `program`, on this machine, on the hosts of scripts/testbed, or with `simulate`, a
    platform's file, by the simulator. cores: those that no simulation has."""

    program: Path
    testbed: bool = False
    simulate: Path | None = None
    cores: queue.SimpleQueue = field(default_factory=queue.SimpleQueue)

    def __post_init__(self):
        for core in sorted(os.sched_getaffinity(0)) if self.simulate else []:
            self.cores.put(core)

    @contextmanager
    def core(self):
        """The words that give a run a core of its own. Of a simulation's threads one runs at a time: they hand over
        twice as fast where none has to wake another core."""
        try:
            core = self.cores.get_nowait()
        except queue.Empty:
            yield []
            return
        try:
            yield ["taskset", "--cpu-list", str(core)]
        finally:
            self.cores.put(core)


@dataclass(frozen=True)
class Outcome:
    """reason: the program's sentence where it did not finish."""

    code: int
    seconds: float
    log: Path
    reason: str

    @property
    def failed(self):
        return self.code not in (0, DIVERGED)


def is_done(folder):
    """Whether the folder has a result, which is kept."""
    try:
        return json.loads(read_text(folder / "summary.json"))["status"] in ("finished", "diverged")
    except (DataError, ValueError, KeyError, TypeError):
        return False


def command(point, way):
    """The words that make the run. What an unfinished run of this sweep left is replaced; nothing else is."""
    sets = [word for key, value in point.settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    rest = [str(point.config), *sets, "--output", str(point.folder)]
    if (point.folder / POINT_FILE).exists() and not is_done(point.folder):
        rest.append("--overwrite")
    if way.simulate:
        return [str(way.program), "--platform", str(way.simulate), "-n", str(point.ranks), *rest]
    launch = ["scripts/testbed", "run", "-np"] if way.testbed else ["scripts/launch", "-n"]
    ranks = [str(point.ranks), *(["--"] if way.testbed else [])]
    return [str(ROOT / launch[0]), *launch[1:], *ranks, str(way.program), "train", *rest, "--progress", "off"]


def reason_in(said):
    """The program's own error in what it and mpirun said: its first sentence, with the lines that belong to it."""
    lines = said.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"hearsay[\w-]*: ", line):
            more = [text for text in lines[number + 1 : number + 12] if text.startswith("  ")]
            return "\n".join([line, *more]) if line.endswith(")") else line
    words = [line for line in lines[1:] if line.strip("-= ")]
    return words[-1] if words else "it said nothing"


def make(point, way):
    """Makes the run; returns its Outcome. Throws DataError where it cannot even be started."""
    line = command(point, way)
    log = point.folder.with_name(f"{point.folder.name}.log")
    started = time.monotonic()
    try:
        point.folder.mkdir(parents=True, exist_ok=True)
        fresh = not any(point.folder.iterdir()) or "--overwrite" in line
        with log.open("w", encoding="utf-8") as out:
            out.write(f"$ {' '.join(line)}\n")
            out.flush()
            if fresh:
                (point.folder / POINT_FILE).write_text(json.dumps(point.record) + "\n")
            with way.core() as core:
                code = subprocess.run([*core, *line], stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    except OSError as error:
        raise DataError(f"{error.filename or point.folder}: {error.strerror}") from None
    reason = reason_in(log.read_text(encoding="utf-8", errors="replace")) if code else ""
    return Outcome(code, time.monotonic() - started, log, reason)
