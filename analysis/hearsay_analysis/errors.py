"""Errors with the exit codes of the hearsay program."""


class AnalysisError(Exception):
    """The message has the value, the place and the remedy; `code` is what the program exits with."""

    code = 1


class UsageError(AnalysisError):
    """What the user asked for makes no sense."""

    code = 2


class DataError(AnalysisError):
    """A file is missing, broken or of another kind; or a Python package is missing."""

    code = 3
