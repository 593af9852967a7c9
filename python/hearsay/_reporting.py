"""Pages that compare runs."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Union


def report(runs: Any, output: Union[str, "os.PathLike[str]"] = "report.html") -> Path:
    """Draws one page that compares runs, those of Python and those of the program `hearsay`, and returns its path.

    runs    names of run folders, members or summaries; the first one is the baseline
    output  the page, one HTML file; figures and their data go into a folder beside it

    Not collective: call it on one rank, or in another program. Needs pandas, matplotlib and yaml (Debian:
    python3-pandas python3-matplotlib python3-yaml).
    """
    try:
        from hearsay_analysis.commands import report as command
        from hearsay_analysis.errors import UsageError
        import matplotlib, pandas, yaml
    except ImportError as error:
        raise ImportError(
            f"hearsay.report needs {error.name} (Debian: python3-pandas python3-matplotlib python3-yaml)"
        ) from error
    import argparse

    several = [runs] if isinstance(runs, (str, os.PathLike)) else runs
    folders = [getattr(run, "directory", run) for run in several]
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    options = parser.parse_args([*map(str, folders), "-o", os.fspath(output)])
    try:
        command.run(options)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return Path(output)
