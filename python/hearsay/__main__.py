"""python3 -m hearsay COMMAND: starts jobs, explains what a configuration can say, and looks at run folders."""
from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from typing import List

from hearsay_analysis.text import shown

from . import _core, _launch, _reporting
from .errors import ConfigError, DataError, Error

ABOUT = "Decentralised, event-triggered training: every process trains a model and tells its neighbours what is news."
EXIT_CODES = "Exit codes: 0 done, 2 wrong usage, 3 a run folder or a package is missing; those of `launch`: its --help."
A_DAY_S = 86400


def listed(options):
    print(_core.list_text(None if options.kind is None else shown(options.kind)), end="")


def described(options):
    text = _core.markdown_text if options.markdown else _core.describe_text
    print(text(list(map(shown, options.names))), end="")


def compared(options):
    print(_core.compare_text(options.runs, options.json), end="")


def reported(options):
    try:
        print(shown(_reporting.report(options.runs, options.output)))
    except (ImportError, DataError) as error:
        raise DataError(shown(error)) from error
    except ValueError as error:
        raise ConfigError(shown(error)) from error


def watched(options):
    run = _core.WatchedRun(options.run)
    while True:
        if sys.stdout.isatty() and not options.once:
            print("\033[H\033[J", end="")  # home, and clear what is below
        print(run.view(shutil.get_terminal_size((100, 25)).columns), end="", flush=True)
        if options.once or run.status is not None:
            return
        if not sys.stdout.isatty():
            print()
        time.sleep(options.every)
        run.poll()


def versioned(options):
    import numpy

    libraries = [("Python", sys.version.split()[0]), ("numpy", numpy.__version__)]
    try:
        import torch

        libraries.append(("torch", str(torch.__version__)))
    except ImportError:
        pass
    print(_core.version_text(libraries), end="")


def seconds(text):
    if not 0.1 <= float(text) <= A_DAY_S:
        raise argparse.ArgumentTypeError(f"{text}: must be 0.1 seconds or more, and a day ({A_DAY_S}) at most")
    return float(text)


class Parser(argparse.ArgumentParser):
    """One that shows the words that it complains of."""

    def error(self, message):
        super().error(shown(message))


def parser():
    raw = argparse.RawDescriptionHelpFormatter
    whole = Parser(
        prog="python3 -m hearsay", description=ABOUT, epilog=EXIT_CODES, formatter_class=raw
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")

    def add(name, work, text, example):
        one = commands.add_parser(
            name,
            help=text,
            description=text + ".",
            epilog=f"Example: python3 -m hearsay {example}",
            formatter_class=raw,
        )
        one.set_defaults(work=work)
        return one

    add("launch", None, "start a program on several processes", "launch -n 4 train.py")
    one = add("list", listed, "list what a configuration can choose from", "list trigger")
    one.add_argument("kind", nargs="?", metavar="KIND", help="exchange, graph, trigger …; all of them if left out")
    one = add("describe", described, "show equation, keys, defaults, cost, citation", "describe eventgrad ring report")
    one.add_argument("names", nargs="+", metavar="NAME", help="names that `list` shows, or the section report")
    one.add_argument("--markdown", action="store_true", help="tables of whole KINDs, such as trigger, for a page")
    one = add("compare", compared, "compare finished runs in one table; the first is the baseline", "compare runs/*")
    one.add_argument("runs", nargs="+", metavar="RUN", help="run folders")
    one.add_argument("--json", action="store_true", help="JSON instead of a table")
    one = add("report", reported, "draw one page that compares runs", "report runs/dpsgd runs/eventgrad")
    one.add_argument("runs", nargs="+", metavar="RUN", help="run folders; the first is the baseline")
    one.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page (default: report.html)")
    one = add("watch", watched, "watch a run from its folder: ranks, loss, bytes, stragglers", "watch runs/mine")
    one.add_argument("run", metavar="RUN", help="run folder; the run does not notice")
    one.add_argument("--every", type=seconds, default=1.0, metavar="S", help="seconds between two looks (default: 1)")
    one.add_argument("--once", action="store_true", help="one look")
    add("version", versioned, "versions of Hearsay, MPI, Python, numpy, torch and the compiler", "version")
    return whole


def run(words):
    if words[:1] == ["launch"]:
        return _launch.main(words[1:])
    options = parser().parse_args(words)
    return options.work(options) or 0


def main(words: List[str]) -> int:
    """Runs the command that the words of the command line name; returns the exit code."""
    command = words[0] if words and not words[0].startswith("-") else ""
    name = f"hearsay {shown(command)}".rstrip()
    try:
        try:
            code = run(words)
        except SystemExit as end:  # --help, or words that make no sense
            code = end.code or 0
        sys.stdout.flush()
        return code
    except Error as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 0 if command == "watch" else 130
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is not None:  # of a file, and nobody has said what to do: a mistake of ours
            raise
        print(f"{name}: the output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
