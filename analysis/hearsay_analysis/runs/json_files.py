"""Files whose absence or damage is the user's to know about."""
import json
import os
import re
import stat

from hearsay_analysis.errors import DataError
from hearsay_analysis.text import shown

_NO_CHARACTER = re.compile("[\ud800-\udfff]")  # half of a pair, such as "\\ud800": no file can hold it

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


def read_text(path, errors="strict"):
    """The text of a plain file, which is opened without waiting. Throws DataError where it is something else (a FIFO
    would wait for a writer, a device may never end), or cannot be read."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise DataError(f"{path}: is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, a file was expected")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(descriptor, encoding="utf-8-sig", errors=errors) as file:
            return file.read()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def rank_files(folder, pattern, ranks):
    """[(rank, path)] of the files that are there of ranks below `ranks`, by rank; `*` in the pattern is the number."""
    before, after = pattern.split("*")
    numbered = [(path.name[len(before) : len(path.name) - len(after)], path) for path in folder.glob(pattern)]
    there = [(int(number), path) for number, path in numbered if number.isdecimal() and len(number) < 16]
    return sorted((rank, path) for rank, path in there if rank < ranks)


def _parsed(text):
    """Of a JSON text; strings with what is no character are shown."""
    value = json.loads(text)
    return _with_characters(value) if "\\ud" in text or "\\uD" in text else value


def _with_characters(value):
    if isinstance(value, str):
        return shown(value) if _NO_CHARACTER.search(value) else value
    if isinstance(value, list):
        return list(map(_with_characters, value))
    if isinstance(value, dict):
        return {_with_characters(key): _with_characters(one) for key, one in value.items()}
    return value


def read_object(path):
    """The JSON object in the file. Throws DataError naming the file."""
    try:
        value = _parsed(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is not whole JSON ({error}); it was damaged after the run, which writes it in one "
            "piece: train again"
        ) from None
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no JSON object: not a file of a run")
    return value


def read_lines(path):
    """The objects of a file with one JSON object a line.

    The last line may be half written: its run goes on or was killed, and the line is left out. Throws DataError naming
    file and line where any other line is broken.
    """
    lines = read_text(path, errors="replace").split("\n")
    whole, rest = lines[:-1], lines[-1]
    records = []
    for number, line in enumerate([*whole, rest] if rest else whole, 1):
        try:
            record = _parsed(line)
            if not isinstance(record, dict):
                raise ValueError
        except (ValueError, RecursionError):
            if number > len(whole):
                break
            raise DataError(f"{path}:{number}: not a JSON object; the file was damaged: train again") from None
        records.append(record)
    return records
