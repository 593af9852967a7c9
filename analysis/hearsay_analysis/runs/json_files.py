"""JSON files whose absence or damage is the user's to know about."""
import json

from hearsay_analysis.errors import DataError


def read_object(path):
    """The JSON object in the file. Throws DataError naming the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
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
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    lines = text.split("\n")
    whole, rest = lines[:-1], lines[-1]
    records = []
    for number, line in enumerate([*whole, rest] if rest else whole, 1):
        try:
            record = json.loads(line)
        except ValueError:
            if number > len(whole):
                break
            raise DataError(f"{path}:{number}: not a JSON object; the file was damaged: train again") from None
        records.append(record)
    return records
