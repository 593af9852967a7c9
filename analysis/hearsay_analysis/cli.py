"""The program analysis/hearsay: its subcommands, and the one place where errors become exit codes."""
import argparse

from hearsay_analysis import interpreter
from hearsay_analysis.commands import overlap, progress, report, sweep, table, times, trace
from hearsay_analysis.saying import guarded, said_safely

# A subcommand is a file of commands/ and its line here. The file's docstring is its help, the first line its summary;
# PACKAGES are what run(options) imports, arguments(parser) declares what it takes.
COMMANDS = {
    "report": report,
    "sweep": sweep,
    "table": table,
    "times": times,
    "progress": progress,
    "trace": trace,
    "overlap": overlap,
}
_ABOUT = "Make runs of sweeps, and draw, tabulate and compare the run folders of `hearsay train` and `simulate`."
_EXIT_CODES = """Exit codes: 0 done, 1 a run of a sweep failed, 2 wrong usage or a wrong sweep file, 3 a run folder is
missing or damaged, or a Python package is missing. The format of run folders: docs/guide/report-format.md."""


def parser():
    """The parser of the whole command line."""
    raw = argparse.RawDescriptionHelpFormatter
    whole = argparse.ArgumentParser(
        prog="analysis/hearsay", description=_ABOUT, epilog=_EXIT_CODES, formatter_class=raw
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="SUBCOMMAND", title="subcommands")
    for name, command in COMMANDS.items():
        summary = command.__doc__.splitlines()[0].rstrip(".")
        one = commands.add_parser(
            name, help=summary, description=command.__doc__, epilog=_EXIT_CODES, formatter_class=raw
        )
        command.arguments(one)
    return whole


def main(words):
    """Runs the subcommand that the words of the command line name; returns the exit code."""
    with said_safely():
        return guarded(words[0] if words else "hearsay", lambda: _run(words))


def _run(words):
    options = parser().parse_args(words)
    command = COMMANDS[options.command]
    interpreter.need(*command.PACKAGES)
    return command.run(options)
