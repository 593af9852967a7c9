"""Pages that compare runs."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Union

from .errors import DataError


def report(runs: Any, output: Union[str, "os.PathLike[str]"] = "report.html") -> Path:
    """Draws one page that compares runs, those of Python and those of the program `hearsay`, and returns its path.

    runs    names of run folders, members or summaries; the first one is the baseline
    output  the page, one HTML file; figures and their data go into a folder beside it

    Not collective: call it on one rank, or in another program, `python3 -m hearsay report`. Needs pandas, matplotlib
    and yaml (`pip install hearsay[report]`; Debian: python3-pandas python3-matplotlib python3-yaml). Raises DataError
    where a folder holds no run, ValueError where the runs cannot stand on one page, ImportError.
    """
    try:
        from hearsay_analysis.commands import report as command
        from hearsay_analysis.errors import AnalysisError, UsageError
        import matplotlib, pandas, yaml
    except ImportError as error:
        raise ImportError(
            f"hearsay.report needs {error.name} (pip install 'hearsay[report]'; Debian: python3-pandas "
            f"python3-matplotlib python3-yaml)"
        ) from error
    import argparse

    several = [runs] if isinstance(runs, (str, os.PathLike)) else runs
    folders = [getattr(run, "directory", run) for run in several]
    if not folders:
        raise ValueError("hearsay.report needs at least one run: the name of a folder, a member or a summary")
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    options = parser.parse_args([*map(str, folders), "-o", os.fspath(output)])
    try:
        command.run(options)
    except UsageError as error:
        raise ValueError(str(error)) from error
    except AnalysisError as error:
        raise DataError(str(error)) from error
    return Path(output)
