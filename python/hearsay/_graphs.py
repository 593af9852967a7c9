"""Graphs that a Python function makes, as the edge lists that the core reads."""
from __future__ import annotations

import hashlib
import os
import shutil
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
        edges.append((min(i, j), max(i, j)))
    text = "".join(f"{i} {j}\n" for i, j in sorted(set(edges)))
    name = f"hearsay-graph-{os.getuid()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
    path = os.path.join(tempfile.gettempdir(), name)
    own = f"{path}.{os.getpid()}"
    with open(own, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(own, path)
    return path


def keep(path, directory):
    """Beside the run's config.yaml, which from then on names that copy: it gives the same run on any machine."""
    shutil.copyfile(path, os.path.join(directory, "graph.txt"))
    config = os.path.join(directory, "config.yaml")
    with open(config, encoding="utf-8") as file:
        text = file.read()
    with open(config, "w", encoding="utf-8") as file:
        file.write(text.replace(path, "graph.txt"))
