"""A Python that has the packages. The first python3 on PATH is often another one than the distribution's."""
import importlib.util
import os
import sys

from hearsay_analysis.errors import DataError

DISTRIBUTION = "/usr/bin/python3"
_DEBIAN = {
    "numpy": "python3-numpy",
    "pandas": "python3-pandas",
    "matplotlib": "python3-matplotlib",
    "yaml": "python3-yaml",
}


def missing(packages):
    return [package for package in packages if importlib.util.find_spec(package) is None]


def need(*packages):
    """Returns if this Python has the packages; else starts the program again with the distribution's Python.

    Throws DataError where that one does not have them either.
    """
    absent = missing(packages)
    if not absent:
        return
    if sys.executable != DISTRIBUTION and os.access(DISTRIBUTION, os.X_OK):
        sys.stdout.flush()
        os.execv(DISTRIBUTION, [DISTRIBUTION, *sys.argv])
    raise DataError(
        f"{sys.executable} has no {', '.join(absent)}; on Debian: "
        f"apt-get install {' '.join(_DEBIAN[package] for package in absent)}"
    )
