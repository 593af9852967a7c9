"""What the programs say: names and texts of others are shown and command a terminal nothing, and what stdout has not
taken is an error."""
import contextlib
import os
import sys

from hearsay_analysis.errors import AnalysisError
from hearsay_analysis.text import shown_lines


class _Shown:
    """A stream to which everything goes as it is to be seen."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        self._stream.write(shown_lines(text))
        return len(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def said_safely():
    """Within it, stdout and stderr show what others have written."""
    with contextlib.redirect_stdout(_Shown(sys.stdout)), contextlib.redirect_stderr(_Shown(sys.stderr)):
        yield


def _forget_stdout():
    """Python would try once more at its end, and say so in its own words."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def guarded(name, work):
    """work()'s exit code, 0 for None; the one place where errors become exit codes. name stands before messages."""
    try:
        try:
            code = work() or 0
        except SystemExit as end:  # --help, or words that make no sense
            code = end.code or 0
        sys.stdout.flush()
        return code
    except AnalysisError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        _forget_stdout()
        return 0
    except OSError as error:
        if error.filename is not None:  # of a file, and nobody has said what to do: a mistake of ours
            raise
        words = f"standard output cannot be written ({error.strerror}); print where there is room"
        print(f"{name}: {words}", file=sys.stderr)
        _forget_stdout()
        return 3
