"""What the tests of analysis/ share: the program as users call it, temporary folders, a strict reader of HTML."""
import contextlib
import csv
import html.parser
import io
import pathlib
import runpy
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ANALYSIS = ROOT / "analysis"
PROGRAM = ANALYSIS / "hearsay"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ANALYSIS))

VOID = {"meta", "br", "hr", "img", "link", "input"}


def run_analysis(*words, program=PROGRAM):
    """(exit code, stdout, stderr) of a Python program, run in this process: its imports take longer than its work."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = [str(program), *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def run_process(*command):
    """(exit code, stdout, stderr) of a process of its own."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def read_csv(path):
    """[{column: text}]"""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Page(html.parser.HTMLParser):
    """Reads a page; `faults` are tags that do not match, `cells` the tables' rows as lists of (text, value),
    `addresses` what it refers to, `identifiers` all ids, `unnamed_cells` those whose data-head is not their
    column's."""

    def __init__(self, text):
        super().__init__()
        self.faults, self.rows, self.addresses, self.identifiers = [], [], [], []
        self.unnamed_cells = []
        self._open, self._heads, self._cell, self._value = [], [], None, None
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [v for k, v in attrs if k in ("href", "src", "xlink:href", "action") and v is not None]
        self.identifiers += [attributes["id"]] if "id" in attributes else []
        if tag == "tr":
            self.rows.append([])
        if tag == "thead":
            self._heads = []
        if tag == "td" and attributes.get("data-head") != self._heads[len(self.rows[-1])]:
            self.unnamed_cells.append((self.getpos(), attributes))
        if tag in ("td", "th"):
            self._cell, self._value = "", None
        if tag == "data":
            self._value = attributes["value"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes nothing")
        if tag in ("td", "th"):
            self.rows[-1].append((self._cell.strip(), self._value))
            self._heads += [self._cell.strip()] if tag == "th" else []
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def row(self, head, name):
        """{column: value of the <data> element, else text} of the row `name` of the first table with column `head`."""
        for index, row in enumerate(self.rows):
            if head not in [text for text, _ in row]:
                continue
            for candidate in self.rows[index + 1 :]:
                if candidate and candidate[0][0] == name:
                    return {
                        column: value if value is not None else text
                        for (column, _), (text, value) in zip(row, candidate)
                    }
        raise AssertionError(f"no row {name!r} below a column {head!r}")


class FolderTest(unittest.TestCase):
    """A test with a temporary folder of its own, self.folder, of the program PROGRAM."""

    PROGRAM = PROGRAM

    @classmethod
    def temporary_folder(cls):
        temporary = tempfile.TemporaryDirectory(prefix="hearsay-analysis-")
        cls.addClassCleanup(temporary.cleanup)
        return pathlib.Path(temporary.name)

    def setUp(self):
        self.folder = self.temporary_folder()

    def expect(self, code, words, *arguments):
        """Runs the program; it must exit with `code` and say `words` on stdout or stderr. Returns all it
        printed."""
        actual, out, err = run_analysis(*arguments, program=self.PROGRAM)
        self.assertEqual(actual, code, out + err)
        self.assertIn(words, out + err)
        self.assertNotIn("Traceback", err)
        return out + err
