#!/usr/bin/env python3
"""Adds an entry of each kind to a copy of the tree, builds it and runs the contract tests: is it one new file and its
place in one table, and do the tests take an entry that they have never seen?

Usage: new_entries.py [--kind KIND]… [--folder FOLDER] [--only-add] [--jobs N] [--preset PRESET] [ROOT]

The new file is what docs/guide/extending.md says that it is: the nearest one there is, copied under a name of its own.
The copy of the tree is kept (build/new-entries), so that a second run builds what has changed. No part of the default
tests: it takes as long as a build. Exit status 0: all is as it should be; 1: something is not, which is said.
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

NEW = "freshly_added"
# kind → (nearest file, its name, what its function ends with, table, targets whose tests run over the table)
KINDS = {
    "trigger": ("trigger/policies/geometric.cpp", "geometric", "_trigger", "trigger/table.cpp",
                ["trigger_test", "exchange_test"]),
    "selector": ("sparsify/selectors/topk.cpp", "topk", "_selector", "sparsify/table.cpp",
                 ["sparsify_test", "exchange_test"]),
    "quantiser": ("sparsify/quantisers/int8.cpp", "int8", "_quantiser", "sparsify/table.cpp",
                  ["sparsify_test", "exchange_test"]),
    "codec": ("sparsify/codecs/delta.cpp", "delta", "_coder", "sparsify/table.cpp",
              ["sparsify_test", "exchange_test"]),
    "graph": ("topology/graphs/ring.cpp", "ring", "_graph", "topology/table.cpp", ["topology_test"]),
    "model": ("apps/models/lenet5.cpp", "lenet5", "_model", "apps/models/table.cpp", ["training_test"]),
    "data set": ("apps/datasets/synthetic_images.cpp", "synthetic_images", "_entry", "apps/datasets/table.cpp",
                 ["data_test"]),
    "neighbour exchange": ("runtime/exchange/neighbour/gradient_tracking.cpp", "gradient_tracking", "_exchange",
                           "runtime/exchange/table.cpp", ["exchange_test", "cost_test"]),
    "global exchange": ("runtime/exchange/global/gtopk_naive.cpp", "gtopk_naive", "_exchange",
                        "runtime/exchange/table.cpp", ["exchange_test", "cost_test"]),
    "outer exchange": ("runtime/exchange/outer/noloco.cpp", "noloco", "_exchange", "runtime/exchange/table.cpp",
                       ["exchange_test", "cost_test"]),
}
SCRIPTS = ("includes_test.py", "standard_headers_test.py", "citations_test.sh")


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run(list(map(str, command)), check=False, **options)


def tracked(root):
    listed = run("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if name and (root / name).is_file()]


def copy(root, folder):
    """Brings the copy to the state of the tree. Files that are the same keep their times, and so their objects; the
    others are of now, or objects of what an earlier run has added would count as newer."""
    names = tracked(root)
    for name in names:
        new, old = root / name, folder / name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(new, old)
    there = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    for path in there:  # the copy may lie in a folder of that name itself
        if path.parts[0] != "build" and str(path) not in names:
            (folder / path).unlink()
    return names


def named(kind):
    return f"{NEW}_{kind.split(' ')[0]}"


def with_entry(table, old, new):
    """The table with the new function after the old one, where it is declared and where it is listed."""
    declared = re.sub(rf"^(\w+ ){old}\(\);\n", rf"\g<0>\g<1>{new}();\n", table, count=1, flags=re.MULTILINE)
    return re.sub(rf"\b{old}\(\)(?!;)", rf"\g<0>, {new}()", declared, count=1)


def with_types_of_its_own(text):
    """Files of a library may be compiled together: what two of them define has two names."""
    types = re.findall(r"^(?:class|struct) (\w+)", text, re.MULTILINE)
    for name in sorted({type_.removesuffix("Impl") for type_ in types}, key=len):  # of torch's TORCH_MODULE(name)
        text = re.sub(rf"\b{name}", f"Added{name}", text)
    return text


def add(folder, kind):
    """Adds the entry; the files that were changed for it, and the new one."""
    source, name, suffix, table, _ = KINDS[kind]
    new = named(kind)
    text = (folder / source).read_text(encoding="utf-8")
    text = text.replace(f"{name}{suffix}()", f"{new}{suffix}()").replace(f'.name = "{name}"', f'.name = "{new}"')
    (folder / source).with_name(f"{new}.cpp").write_text(with_types_of_its_own(text), encoding="utf-8")
    listed = (folder / table).read_text(encoding="utf-8")
    (folder / table).write_text(with_entry(listed, name + suffix, new + suffix), encoding="utf-8")


def changes(root, folder, names):
    """(new files, changed files) of the copy."""
    here = {str(path.relative_to(folder)) for top in {name.split("/")[0] for name in names if "/" in name}
            for path in (folder / top).rglob("*") if path.is_file()}
    new = here - set(names)
    return new, {name for name in names if (folder / name).read_bytes() != (root / name).read_bytes()}


def wrong_additions(root, folder, names, kinds):
    new, changed = changes(root, folder, names)
    expected = {str(Path(KINDS[kind][0]).with_name(f"{named(kind)}.cpp")) for kind in kinds}
    if new != expected:
        yield f"new files: {sorted(new)}, expected {sorted(expected)}"
    if changed != {KINDS[kind][3] for kind in kinds}:
        yield f"changed files: {sorted(changed)}, expected the tables of {kinds}"
    for kind in kinds:
        function, table = named(kind) + KINDS[kind][2], (folder / KINDS[kind][3]).read_text(encoding="utf-8")
        if table.count(f"{function}()") != 2:
            yield f"{kind}: the table does not declare and list {function}() once each"


def wrong_tests(folder, kinds, preset, jobs):
    for script in SCRIPTS:
        if run(folder / "tests/contract" / script, folder, cwd=folder).returncode:
            yield f"tests/contract/{script} does not take the new entries"
    targets = sorted({target for kind in kinds for target in KINDS[kind][4]})
    build = folder / "build" / preset
    if run("cmake", "--preset", preset, "-DHEARSAY_BUILD_TESTS=ON", "-DHEARSAY_BATCH=0",
           "--log-level=WARNING", cwd=folder).returncode or \
            run("cmake", "--build", build, "--parallel", jobs, "--target", *targets).returncode:
        yield "it does not build"
        return
    names = "|".join(target.removesuffix("_test") for target in targets)
    if run("ctest", "--test-dir", build, "--output-on-failure", "--parallel", 2 * jobs, "-R",
           rf"^({names})(\.arithmetic)?$").returncode:
        yield "contract tests do not take the new entries"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=".", type=Path)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this one (default: all ten together)")
    parser.add_argument("--folder", type=Path, help="of the copy (default: ROOT/build/new-entries)")
    parser.add_argument("--only-add", action="store_true", help="look at the files, build nothing")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--preset", default="ci")
    arguments = parser.parse_args()
    root, kinds = arguments.root.resolve(), arguments.kind or list(KINDS)
    folder = (arguments.folder or root / "build/new-entries").resolve()
    names = copy(root, folder)
    for kind in kinds:
        add(folder, kind)
    wrong = list(wrong_additions(root, folder, names, kinds))
    if not wrong and not arguments.only_add:
        wrong += wrong_tests(folder, kinds, arguments.preset, arguments.jobs)
    print("\n".join(wrong) or f"{len(kinds)} kinds: one new file each, and its place in a table")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
