"""Writing the page and, beside it, every figure as SVG and PDF and its data as CSV."""
import contextlib
import os
import urllib.parse

import matplotlib

from hearsay_analysis.drawing import style
from hearsay_analysis.errors import DataError, UsageError
from hearsay_analysis.drawing.figure import Absent
from hearsay_analysis.text import shown


class FigureFolder:
    """The folder of the figures' files. Nothing is written where folder is None."""

    def __init__(self, folder, page):
        """Paths; links in the page are relative to it."""
        self._folder = folder
        self._page = page

    def save(self, figures):
        """Writes NAME.svg, NAME.pdf and NAME.csv of every figure. Throws DataError where it cannot."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for figure in figures:
                if not isinstance(figure, Absent):
                    self._save_one(figure)
        except OSError as error:
            raise DataError(f"cannot write to {self._folder}: {error.strerror}") from None

    def _save_one(self, figure):
        stem = self._folder / figure.name
        stem.with_name(f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
        figure.plot.savefig(
            stem.with_name(f"{figure.name}.pdf"), facecolor=style.PAPER, metadata={"CreationDate": None}
        )
        figure.data.to_csv(stem.with_name(f"{figure.name}.csv"), index=False)

    def links(self, figure):
        """[(kind, address relative to the page)]"""
        if self._folder is None:
            return []
        below = urllib.parse.quote(os.fsencode(os.path.relpath(self._folder, self._page.parent)))
        return [(kind.upper(), f"{below}/{figure.name}.{kind}") for kind in ("svg", "pdf", "csv")]


def figure_folder(page, wanted):
    """wanted: a path, "" for none, None for the page's name with _files at its end."""
    if wanted == "":
        return FigureFolder(None, page)
    return FigureFolder(page.with_name(f"{page.stem}_files") if wanted is None else wanted, page)


def write_page(path, text):
    """The page appears whole or not at all. Throws UsageError, DataError."""
    if path.is_dir():
        raise UsageError(f"-o {path} is a folder; name a file in it, e.g. {path}/report.html")
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError):
            raise DataError(f"cannot write {path}: {error.strerror}") from None
        raise


def require_picture(path):
    """Throws UsageError unless the name ends as that of a picture."""
    if path.suffix not in (".svg", ".pdf", ".png"):
        raise UsageError(f"-o {path}: the name must end in .svg, .pdf or .png")


def write_picture(path, plot):
    """The figure alone, on paper colour, in the format of the name's ending; the same bytes for the same figure. Throws
    DataError."""
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context({"svg.hashsalt": shown(path.name)}):
            plot.savefig(path, facecolor=style.PAPER, dpi=160, metadata=dated.get(path.suffix))
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
