"""Errors with the exit codes of the hearsay program, and the one place where a script catches them."""
import os
import sys


class AnalysisError(Exception):
    """The message has the value, the place and the remedy; `code` is what the script exits with."""

    code = 1


class UsageError(AnalysisError):
    """What the user asked for makes no sense."""

    code = 2


class DataError(AnalysisError):
    """A file is missing, broken or of another kind; or a Python package is missing."""

    code = 3


def run_script(name, main):
    """Runs main() and exits: 0 done, 2 usage, 3 data or file."""
    try:
        main()
        sys.stdout.flush()
    except AnalysisError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.code)
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
