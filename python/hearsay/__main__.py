"""python3 -m hearsay COMMAND: starts jobs, explains what a configuration can say, and looks at run folders."""
from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from typing import List

from . import _core, _launch, _reporting
from .errors import ConfigError, DataError, Error

ABOUT = "Decentralised, event-triggered training: every process trains a model and tells its neighbours what is news."
EXIT_CODES = "Exit codes: 0 done, 2 wrong usage, 3 a run folder or a package is missing; those of `launch`: its --help."


def listed(options):
    print(_core.list_text(options.kind), end="")


def described(options):
    text = _core.markdown_text if options.markdown else _core.describe_text
    print(text(options.names), end="")


def compared(options):
    print(_core.compare_text(options.runs, options.json), end="")


def reported(options):
    try:
        print(_reporting.report(options.runs, options.output))
    except ImportError as error:
        raise DataError(str(error)) from error
    except ValueError as error:
        raise ConfigError(str(error)) from error


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
    if not float(text) >= 0.1:
        raise argparse.ArgumentTypeError(f"{text}: must be 0.1 seconds or more")
    return float(text)


def parser():
    raw = argparse.RawDescriptionHelpFormatter
    whole = argparse.ArgumentParser(
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


def main(words: List[str]) -> int:
    """Runs the command that the words of the command line name; returns the exit code."""
    if words[:1] == ["launch"]:
        return _launch.main(words[1:])
    options = parser().parse_args(words)
    try:
        code = options.work(options) or 0
        sys.stdout.flush()
        return code
    except Error as error:
        print(f"hearsay {options.command}: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 0 if options.command == "watch" else 130
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"hearsay {options.command}: the output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
