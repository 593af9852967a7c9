"""What can go wrong, by cause. Every class has the exit code that the program `hearsay` ends with in that case."""
from __future__ import annotations

from typing import Iterable, List, NamedTuple, Optional, Tuple


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

    def __init__(self, message: str, problems: Iterable[Tuple[str, Optional[int], Optional[int], str]] = ()):
        super().__init__(message)
        self._problems = [Problem(*problem) for problem in problems]

    @property
    def problems(self) -> List[Problem]:
        """One entry for everything that is wrong, in the order of the file."""
        return self._problems or [Problem("", None, None, str(self))]


class DataError(Error):
    """A file is missing, malformed or cannot be written."""

    code = 3


class CommunicationError(Error):
    """MPI, the network or another rank failed."""

    code = 4


class RankLeft(CommunicationError):
    """Another rank has left the job, and this one waits for it."""


class RankDied(CommunicationError):
    """Another rank has died where the job cannot go on without it: before training, or while states were loaded."""


class TakenForDead(CommunicationError):
    """This rank stood still for so long (`train.failure_timeout_s`) that the others have gone on without it. Its
    program ends alone."""


class DivergenceError(Error):
    """A loss, a gradient or a norm is not finite."""

    code = 5
