#!/usr/bin/env python3
"""Every command of the README and the guides runs as it stands there, in a tree as the quick start leaves it.

Usage: commands_test.py PROGRAM PYTHON PYTHON_PACKAGE [ROOT [PAGE…]]. Exit status 0: all do; 1: one does not, with what
it said.

Each page has a tree of its own, and its blocks of `sh` run in their order. Comments that no reader sees say the rest:
  <!-- not tried: WHY -->     the block that follows needs what a test has not (hosts, a GPU, root, minutes of building)
  <!-- before: COMMAND -->    what the reader has done before that block
Trainings are cut short: `hearsay` is a wrapper that asks for a few iterations.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"((?:^<!-- .*? -->\n+)*)^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(r"<!-- (not tried|before): (.*?) -->", re.DOTALL)
LINKED = ("configs", "python")
COPIED = ("scripts", "analysis")  # they look for build/release beside themselves
TIMEOUT_S = 120
# A resumed run needs something left to do, so longer command lines train longer there.
WRAPPER = """#!/bin/bash
case " $* " in
  " train "*" --resume "*) exec {program} "$@" --set train.iterations=$((4 + 2 * $#)) ;;
  *" --set train.iterations="*) exec {program} "$@" ;;
  " train "*) exec {program} "$@" --set train.iterations=8 ;;
  *) exec {program} "$@" ;;
esac
"""


def tree(folder, program, python, package, root):
    """What the quick start leaves: sources, build/release, and a configuration and a loop of the reader's own."""
    for name in LINKED:
        (folder / name).symlink_to(root / name)
    for name in COPIED:
        shutil.copytree(root / name, folder / name)
    apps = folder / "build/release/apps"
    apps.mkdir(parents=True)
    (apps / "hearsay").write_text(WRAPPER.format(program=program), encoding="utf-8")
    (apps / "hearsay").chmod(0o755)
    (apps / "python3").write_text(f'#!/bin/sh\nexec {python} "$@"\n', encoding="utf-8")
    (apps / "python3").chmod(0o755)
    (apps.parent / "python").symlink_to(package)
    config = (root / "configs/digits/eventgrad.yaml").read_text(encoding="utf-8")
    (folder / "mine.yaml").write_text(re.sub(r"(?m)^report:.*\n", "", config), encoding="utf-8")
    return {
        **os.environ,
        "PATH": f"{apps}:{os.environ['PATH']}",
        "PYTHONPATH": str(package),
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMP_NUM_THREADS": "1",
    }


def run(command, folder, environment):
    """What went wrong, or nothing."""
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"takes more than {TIMEOUT_S} s"
    return f"ends with {process.returncode}:\n{said[-2000:]}" if process.returncode else None


def blocks(page):
    """(line, commands that come before, block, why it is not tried)"""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        hidden = HIDDEN.findall(match[1])
        before = [words for kind, words in hidden if kind == "before"]
        why = next((words for kind, words in hidden if kind == "not tried"), None)
        yield text[: match.start(2)].count("\n") + 1, before, match[2], why


def wrong_on(page, programs, root):
    tried = 0
    with tempfile.TemporaryDirectory(prefix="hearsay-guide-") as folder:
        environment = tree(Path(folder), *programs, root)
        for line, before, block, why in blocks(page):
            for command in [*before, *([] if why else [block])]:
                tried += 1
                if wrong := run(command, folder, environment):
                    yield f"{page.relative_to(root)}:{line}: {command.strip()}\n  {wrong}"
                    return
    print(f"{page.relative_to(root)}: {tried} blocks")


def main(program, python, package, root=".", *pages):
    root = Path(root).resolve()
    chosen = [root / page for page in pages] or [root / "README.md", *sorted((root / "docs/guide").glob("*.md"))]
    programs = [Path(program).resolve(), python, Path(package).resolve()]
    wrong = [complaint for page in chosen for complaint in wrong_on(page, programs, root)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
