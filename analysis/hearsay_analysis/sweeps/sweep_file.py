"""The file that describes a sweep, read as strictly as a configuration: everything that is wrong is found at once."""
import difflib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from hearsay_analysis.errors import DataError, UsageError
from hearsay_analysis.runs.json_files import read_text

_KEYS = ("output", "set", "ranks", "seeds", "axes", "methods")
_METHOD_KEYS = ("base", "set", "ranks")
# Keys of a configuration that the sweep itself decides, and what to do instead.
_OWN_KEYS = {"seed": "use `seeds`", "report.directory": "use `output`", "report.overwrite": "finished runs stay"}


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number, as the program does; YAML 1.1 wants a point in it."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


@dataclass(frozen=True)
class Method:
    """config: the base configuration. settings: dotted key → value. ranks: those it is run with; None for all."""

    name: str
    config: Path
    settings: dict
    ranks: tuple | None


@dataclass(frozen=True)
class Plan:
    """settings: for all runs. axes: dotted key → values, every combination of which is run."""

    output: Path
    settings: dict
    ranks: tuple
    seeds: tuple
    axes: dict
    methods: tuple


def slug(value):
    """What stands for a value in the name of a run folder."""
    return re.sub(r"[^a-z0-9.]+", "-", str(value).lower()).strip("-")


class _Reader:
    """Turns nodes of YAML into values and collects what is wrong with them. A wrong value is read as None or left
    out."""

    def __init__(self, path):
        self._path = path
        self.problems = []

    def wrong(self, node, words):
        mark = node.start_mark
        self.problems.append((mark.line, mark.column, f"{self._path}:{mark.line + 1}:{mark.column + 1}: {words}"))

    def value(self, node):
        """Any value that a configuration may have."""
        try:
            value = _Loader("").construct_object(node, deep=True)
            json.dumps(value)
            return value
        except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
            words = getattr(error, "problem", None) or "expected numbers, texts, lists or KEY: VALUE pairs"
            self.wrong(node, f"{words}, got {_shown(node)}")
            return None

    def pairs(self, node, what):
        """{key: (its node, the value's node)}"""
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"{what}: expected KEY: VALUE pairs, got {_shown(node)}")
            return {}
        found = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(key, f"{what}: a key must be a word")
            elif key.value in found:
                self.wrong(key, f"{what}: key {key.value!r} stands there twice")
            else:
                found[key.value] = (key, value)
        return found

    def known_pairs(self, node, what, known, needed):
        """{key: the value's node} of the known keys."""
        found = self.pairs(node, what)
        for name, (key, _) in found.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, 0.5)
                rest = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                self.wrong(key, f"{what}: unknown key {name!r}, {rest}")
        for name in needed:
            if name not in found and isinstance(node, yaml.MappingNode):
                self.wrong(node, f"{what}: key {name!r} is missing")
        return {name: value for name, (_, value) in found.items() if name in known}

    def text(self, node, what):
        value = self.value(node)
        if not isinstance(value, str) or not value:
            self.wrong(node, f"{what}: expected a text, got {_shown(node)}")
            return None
        return value

    def values(self, node, what):
        """[(node, value)] of a list with at least one entry."""
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.wrong(node, f"{what}: expected a list like [1, 2], got {_shown(node)}")
            return []
        return [(entry, self.value(entry)) for entry in node.value]

    def integers(self, node, what, least):
        """A tuple of different integers."""
        numbers = []
        for entry, number in self.values(node, what):
            if type(number) is not int or number < least:  # True is an int, too
                self.wrong(entry, f"{what}: expected an integer from {least} up, got {_shown(entry)}")
            elif number in numbers:
                self.wrong(entry, f"{what}: {number} stands there twice")
            else:
                numbers.append(number)
        return tuple(numbers)

    def setting_key(self, key, what):
        """Whether it may be a key of a configuration; which ones there are is the program's to know."""
        if key.value in _OWN_KEYS:
            self.wrong(key, f"{what}: {key.value} is the sweep's own: {_OWN_KEYS[key.value]}")
        elif not re.fullmatch(r"\w+(\.\w+)*", key.value):
            self.wrong(key, f"{what}: expected a key like train.epochs, got {key.value!r}")

    def settings(self, node, what, axes=()):
        """{dotted key: value}. axes: keys that these settings would be stronger than."""
        found = {}
        for name, (key, value) in self.pairs(node, what).items():
            self.setting_key(key, what)
            for axis in axes:
                if f"{axis}.".startswith(f"{name}."):
                    words = f"{what}: {name} is stronger than the axis {axis}, so all values of that would be one run"
                    self.wrong(key, f"{words}; set the keys of {name} that you mean one by one, or drop the axis")
            found[name] = self.value(value)
        return found

    def different(self, nodes_and_names, what):
        """Two of the same folder name would share their runs."""
        seen = {}
        for node, name in nodes_and_names:
            folder = slug(name)
            if not folder:
                self.wrong(node, f"{what}: {name!r} has no letter or digit that could name a folder")
            elif folder in seen:
                self.wrong(node, f"{what}: {name!r} and {seen[folder]!r} would share the run folders {folder!r}")
            seen.setdefault(folder, name)


def _shown(node):
    kinds = {yaml.MappingNode: "KEY: VALUE pairs", yaml.SequenceNode: "a list"}
    filled = "" if getattr(node, "value", None) else "nothing"
    return filled or kinds.get(type(node)) or repr(node.value)


def _axes(reader, node):
    axes = {}
    for name, (key, values) in reader.pairs(node, "axes").items():
        reader.setting_key(key, "axes")
        entries = reader.values(values, f"axes: {name}")
        reader.different(entries, f"axes: {name}")
        axes[name] = [value for _, value in entries]
    return axes


def _base(reader, node, what, folder):
    """The base configuration's path, relative to the sweep file's folder."""
    name = reader.text(node, what)
    if name is None:
        return None
    path = (folder / name).resolve()
    if not path.is_file():
        there = sorted(file.name for file in path.parent.glob("*.yaml"))
        near = difflib.get_close_matches(path.name, there, 1, 0.5)
        rest = f"did you mean {Path(name).with_name(near[0])}?" if near else "paths are relative to the sweep file"
        reader.wrong(node, f"{what}: no file {name}; {rest}")
    return path


def _methods(reader, node, folder, axes):
    found = reader.pairs(node, "methods")
    if not found and isinstance(node, yaml.MappingNode):
        reader.wrong(node, "methods: there is none")
    reader.different([(key, name) for name, (key, _) in found.items()], "methods")
    methods = []
    for name, (_, value) in found.items():
        what = f"methods: {name}"
        keys = reader.known_pairs(value, what, _METHOD_KEYS, ("base",))
        methods.append(
            Method(
                name,
                _base(reader, keys["base"], f"{what}: base", folder) if "base" in keys else None,
                reader.settings(keys["set"], f"{what}: set", axes) if "set" in keys else {},
                reader.integers(keys["ranks"], f"{what}: ranks", 1) if "ranks" in keys else None,
            )
        )
    return tuple(methods)


def _root(path):
    try:
        return _Loader(read_text(path)).get_single_node()
    except DataError as error:
        raise DataError(f"{error}; name a sweep file (YAML)") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise UsageError(f"{path}:{mark.line + 1}:{mark.column + 1}: no YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path}: no YAML text: {error}") from None


def read_sweep_file(path):
    """The Plan. Throws UsageError with all that is wrong, a line each; DataError where the file cannot be read."""
    root = _root(path)
    if root is None:
        raise UsageError(f"{path}: is empty; a sweep file has `output` and `methods`, see --help")
    reader = _Reader(path)
    keys = reader.known_pairs(root, "the sweep", _KEYS, ("output", "methods"))
    axes = _axes(reader, keys["axes"]) if "axes" in keys else {}
    plan = Plan(
        Path(reader.text(keys["output"], "output") or "") if "output" in keys else Path(),
        reader.settings(keys["set"], "set") if "set" in keys else {},
        reader.integers(keys["ranks"], "ranks", 1) if "ranks" in keys else (4,),
        reader.integers(keys["seeds"], "seeds", 0) if "seeds" in keys else (1,),
        axes,
        _methods(reader, keys["methods"], path.resolve().parent, axes) if "methods" in keys else (),
    )
    if reader.problems:
        lines = [words for _, _, words in sorted(reader.problems)]
        errors = f"{len(lines)} error{'s' if len(lines) > 1 else ''}"
        raise UsageError("\n  ".join([f"invalid sweep file ({errors})", *lines]))
    return plan


def read_overrides(words):
    """{dotted key: value} of --set KEY=VALUE. Throws UsageError."""
    found = {}
    for setting in words:
        key, equals, value = setting.partition("=")
        if not equals or not re.fullmatch(r"\w+(\.\w+)*", key):
            raise UsageError(f"--set {setting}: needs KEY=VALUE")
        if key in _OWN_KEYS:
            raise UsageError(f"--set {setting}: {key} is the sweep's own: {_OWN_KEYS[key]}")
        try:
            found[key] = yaml.load(value, _Loader)
        except yaml.YAMLError:
            raise UsageError(f"--set {setting}: {value!r} is no YAML value") from None
    return found
