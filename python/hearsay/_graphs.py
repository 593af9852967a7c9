"""Graphs that a Python function makes, as the edge lists that the core reads."""
from __future__ import annotations

import hashlib
import os
import tempfile

from .errors import ConfigError


def written(function, ranks):
    """The name of a file with one edge a line. The same edges have the same name, on every host."""
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
    text = "".join(f"{i} {j}\n" for i, j in sorted(set(edges)))
    name = f"hearsay-graph-{os.getuid()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
    path = os.path.join(tempfile.gettempdir(), name)
    own = f"{path}.{os.getpid()}"
    with open(own, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(own, path)
    return path


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


KEPT = "graph.txt"  # beside the run's config.yaml, which names it: it gives the same run on any machine


def keep(path, directory):
    with open(path, encoding="utf-8") as file:
        _put(os.path.join(directory, KEPT), file.read())


def _put(path, text):
    """In one piece, and in the place of a link, not through it."""
    unfinished = f"{path}.{os.getpid()}.tmp"
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(unfinished, path)
