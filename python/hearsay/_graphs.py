"""Graphs that a Python function makes, as the edge lists that the core reads."""
from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from contextlib import suppress

from hearsay_analysis.text import shown

from .errors import ConfigError, DataError

KEPT = "graph.txt"  # beside the run's config.yaml, which names it: it gives the same run on any machine
RUN = re.compile(r"# run hearsay-[0-9a-f]{16}\n")  # the first line of what a run has written


class Edges:
    """The edges of a graph, as a file `path` until `close`. No folder has it: it is gone with the process, however that
    ends."""

    def __init__(self, function, ranks):
        self._text = "".join(f"{i} {j}\n" for i, j in _edges_of(function, ranks))
        try:
            self._file = tempfile.TemporaryFile("w", encoding="utf-8")
            self._file.write(self._text)
            self._file.flush()
        except OSError as error:
            raise DataError(
                f"the graph cannot be written to a temporary file ({error.strerror}); let TMPDIR name another folder"
            ) from None
        self.path = f"/proc/self/fd/{self._file.fileno()}"

    def close(self):
        self._file.close()

    def keep(self, directory):
        """Puts them into a run folder. What could not be written, a list."""
        path = os.path.join(directory, KEPT)
        try:
            with open(os.path.join(directory, "config.yaml"), encoding="utf-8", errors="replace") as config:
                _put(path, config.readline() + self._text)
        except OSError as error:
            words = f"cannot be written ({error.strerror})"
            again = "config.yaml names it, and gives the same run only with graph=… again"
            print(f"hearsay: warning: {shown(path)}: {words}; {again}", file=sys.stderr, flush=True)
            return [words]
        return []


def require_own(directory):
    """Raises ConfigError where something stands in the graph's place that no run has written."""
    path = os.path.join(directory, KEPT)
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # nothing is there, or it cannot be reached: `keep` says so
        return
    if not stat.S_ISDIR(mode) and not (stat.S_ISREG(mode) and _is_of_a_run(path)):
        raise ConfigError(
            f"{shown(path)}: no run has written this, and graph=… would replace it; choose another folder with "
            f"`report: {{directory: …}}`, or move it away"
        )


def _is_of_a_run(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return RUN.fullmatch(file.readline(100)) is not None
    except OSError:
        return False


def _edges_of(function, ranks):
    """Each once, in order."""
    edges = []
    for edge in function(ranks):
        try:
            i, j = (int(end) for end in edge)
        except (TypeError, ValueError):
            raise ConfigError(f"the graph function returns pairs of ranks (i, j), not {edge!r}") from None
        if i == j or not (0 <= i < ranks and 0 <= j < ranks):
            why = "a rank is no neighbour of its own" if i == j else f"there are {ranks} ranks, from 0 to {ranks - 1}"
            raise ConfigError(f"the graph function has returned ({i}, {j}): {why}")
        edges.append((min(i, j), max(i, j)))
    alone = _unreached(edges, ranks)
    if alone:
        raise ConfigError(
            f"the graph function's edges do not reach rank {min(alone)} from rank 0; add some, or replicas can never "
            f"agree"
        )
    return sorted(set(edges))


def _unreached(edges, ranks):
    """Ranks that no path leads to from rank 0."""
    neighbours = {i: [] for i in range(ranks)}
    for i, j in edges:
        neighbours[i].append(j)
        neighbours[j].append(i)
    reached, new = {0}, [0]
    while new:
        for j in neighbours[new.pop()]:
            if j not in reached:
                reached.add(j)
                new.append(j)
    return set(range(ranks)) - reached


def _put(path, text):
    """In one piece, and in the place of a link, not through it."""
    unfinished = f"{path}.{os.getpid()}.tmp"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, path)
    except OSError:
        with suppress(OSError):
            os.remove(unfinished)
        raise
