#!/usr/bin/env python3
"""Form, of every file that git tracks: clang-format's of C++, 120 columns, scripts that shellcheck finds nothing in.

Usage: format_test.py [ROOT]. Exit status 0: all is as it should be; 1: each complaint on a line; 77: skipped, no git.
What needs a tool that is not there is skipped, with a line that says so. Columns are counted as characters; a line
may be longer where an address stands in it that cannot be broken.
"""
import os
import re
import shutil
import subprocess
import sys

COLUMNS = 120
CPP = (".cpp", ".hpp", ".cu", ".cuh")
LINES = (*CPP, ".py", ".sh", ".cmake", ".cmake.in", ".yaml", "CMakeLists.txt", "CMakePresets.json", ".proto", ".css")
SHELL = re.compile(r"#!.*\b(ba)?sh\b")
SOURCED = ["--exclude=SC2034,SC2154"]  # of files whose variables others read and set
CLANG_FORMAT = 14  # other versions break lines elsewhere


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print("skipped: this is not a git repository")
        sys.exit(77)
    return [path for path in listed.stdout.split("\0") if os.path.isfile(path) and not os.path.islink(path)]


def first_line(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.readline()


def long_lines(path):
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if len(line.rstrip("\n")) > COLUMNS and not re.search(r"https?://", line):
                yield f"{path}:{number}: {len(line) - 1} columns, {COLUMNS} at most"


def complaints_of(tool, *command):
    done = subprocess.run([tool, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return [] if done.returncode == 0 else done.stdout.strip().splitlines()


def badly_formatted(paths):
    tool = shutil.which(f"clang-format-{CLANG_FORMAT}") or shutil.which("clang-format")
    if not tool:
        print("skipped: clang-format is not installed")
        return []
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(rf"version {CLANG_FORMAT}\.", version):
        print(f"skipped: clang-format is not version {CLANG_FORMAT} but {version.strip()}")
        return []
    return complaints_of(tool, "--dry-run", "-Werror", *paths)


def bad_scripts(paths, sourced):
    complaints = [c for path in [*paths, *sourced] for c in complaints_of("bash", "-n", path)]
    if not shutil.which("shellcheck"):
        print("skipped: shellcheck is not installed")
        return complaints
    check = ["--severity=warning", "--format=gcc", "--exclude=SC2054"]  # the commas that options of mpirun take
    return [*complaints, *complaints_of("shellcheck", *check, *paths),
            *complaints_of("shellcheck", *check, *SOURCED, *sourced)]


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    paths = tracked()
    cpp = [path for path in paths if path.endswith(CPP)]
    scripts = [path for path in paths if path.startswith((".ci/", "scripts/", "configs/", "tests/", "analysis/"))]
    sourced = [path for path in scripts if path.endswith(".sh") and not first_line(path).startswith("#!")]
    scripts = [path for path in scripts if first_line(path).startswith("#!")]
    complaints = [c for path in sorted({*scripts, *(p for p in paths if p.endswith(LINES))}) for c in long_lines(path)]
    complaints += badly_formatted(cpp)
    complaints += bad_scripts([path for path in scripts if SHELL.match(first_line(path))], sourced)
    if len(cpp) < 300 or len(scripts) < 20:
        complaints.append(f"only {len(cpp)} C++ files and {len(scripts)} scripts: this test does not see them")
    print("\n".join(complaints) if complaints else f"{len(paths)} files are in form")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
