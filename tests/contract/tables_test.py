#!/usr/bin/env python3
"""The tables of docs/method/algorithms.md are those that `hearsay describe --markdown KIND` prints.

Usage: tables_test.py PROGRAM [ROOT] [--write]. --write puts them there. Exit status 0: all tables are; 1: one is not.
"""
import re
import subprocess
import sys

PAGE = "docs/method/algorithms.md"
TABLE = re.compile(r"(<!-- table (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def main(program, root=".", *options):
    with open(f"{root}/{PAGE}", encoding="utf-8") as page:
        old = page.read()

    def printed(match):
        command = [program, "describe", "--markdown", match[2]]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    new = TABLE.sub(lambda match: match[1] + printed(match) + match[4], old)
    kinds = [match[2] for match in TABLE.finditer(old)]
    if "--write" in options:
        with open(f"{root}/{PAGE}", "w", encoding="utf-8") as page:
            page.write(new)
    elif new != old:
        sys.exit(f"{PAGE} has not the tables of this build; write them by: tables_test.py {program} {root} --write")
    if not kinds:
        sys.exit(f"{PAGE} has no table")
    print(f"{len(kinds)} tables: {', '.join(kinds)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
