"""What can go wrong, by cause. Every class has the exit code that the program `hearsay` ends with in that case."""
from __future__ import annotations

import re
from typing import List, NamedTuple, Optional


class Problem(NamedTuple):
    """One thing that is wrong with a configuration.

    `file` is the file's name, `configuration` for a dictionary (lines then count in its JSON form), or the argument of
    `hearsay.join` that says it: `set`, `name`, `data`, `trigger`, `graph`. `line` and `column` count from 1 and are
    None where there is no such place.
    """

    file: str
    line: Optional[int]
    column: Optional[int]
    message: str


class Error(Exception):
    """Base of everything that has a cause outside of Hearsay."""

    code = 1


class ConfigError(Error):
    """The configuration, the model or the number of ranks asks for something that cannot be. All of it at once."""

    code = 2

    @property
    def problems(self) -> List[Problem]:
        """One entry for everything that is wrong, in the order of the file."""
        found = []
        for line in str(self).splitlines():
            place = re.match(r"\s*(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", line)
            if place:
                found.append(Problem(place["file"], int(place["line"]), int(place["column"]), place["message"]))
            elif argument := re.match(r"\s*(set|name|data|trigger|graph)=", line):
                found.append(Problem(argument[1], None, None, line.strip()))
        return found or [Problem("", None, None, str(self))]


class DataError(Error):
    """A file is missing, malformed or cannot be written."""

    code = 3


class CommunicationError(Error):
    """MPI, the network or another rank failed."""

    code = 4


class RankLeft(CommunicationError):
    """Another rank has left the job, and this one waits for it."""


class DivergenceError(Error):
    """A loss, a gradient or a norm is not finite."""

    code = 5
