#!/usr/bin/env python3
"""A file that uses a name of a precompiled standard header includes that header, itself or by headers of ours. The
compiler finds it anyhow: HEARSAY_COMMON_HEADERS of cmake/HearsayLibrary.cmake are read before every file.

Usage: standard_headers_test.py [ROOT]. Exit status 0: all do; 1: each complaint on a line.
"""
import functools
import re
import sys
from pathlib import Path

TOPS = ("base", "topology", "trigger", "sparsify", "runtime", "hearsay", "apps", "python", "research", "tests")
NAMES = {
    "algorithm": "all_of any_of clamp count_if fill_n find_if lower_bound max max_element min min_element minmax "
                 "none_of nth_element partition remove_if sort stable_sort transform upper_bound",
    "array": "array",
    "atomic": "atomic atomic_ref atomic_thread_fence",
    "chrono": "chrono",
    "cmath": "abs ceil cos exp floor hypot isfinite isinf isnan llround log log1p log2 lround pow sin sqrt",
    "condition_variable": "condition_variable condition_variable_any",
    "cstring": "memcmp memcpy memmove memset strcmp strlen",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": "cref function greater invoke plus ref reference_wrapper",
    "map": "map multimap",
    "memory": "enable_shared_from_this make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock unique_lock",
    "numeric": "accumulate exclusive_scan gcd inner_product iota lcm midpoint partial_sum reduce",
    "optional": "make_optional nullopt optional",
    "set": "multiset set",
    "span": "as_bytes as_writable_bytes span",
    "sstream": "istringstream ostringstream stringstream",
    "string": "getline stod stoi stoul string to_string",
    "string_view": "string_view",
    "thread": "jthread thread",
    "unordered_map": "unordered_map",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in NAMES.items() for name in names.split()}
# Headers that the standard says have another one's names.
ALSO = {"cmath": {"cstdlib", "complex"}, "string_view": {"string"}, "set": {"unordered_set"}}


@functools.cache
def parts(path):
    """Standard headers and ours that a file includes, and the names after std:: in its code."""
    text = path.read_text(encoding="utf-8")
    standard = frozenset(re.findall(r"^#include <([^>]+)>", text, re.MULTILINE))
    ours = tuple(re.findall(r'^#include "([^"]+)"', text, re.MULTILINE))
    code = re.sub(r'"(\\.|[^"\\\n])*"', '""', re.sub(r"//.*", "", text))
    return standard, ours, frozenset(re.findall(r"\bstd::(?:ranges::)?(\w+)", code))


def included(path, root, seen):
    """All standard headers that a file includes, itself or by headers of ours."""
    if path in seen or not path.exists():
        return set()
    seen.add(path)
    standard, ours, _ = parts(path)
    return set(standard).union(*(included(root / header, root, seen) for header in ours))


def complaints(root):
    for path in sorted(path for top in TOPS for path in (root / top).rglob("*.[ch]pp")):
        headers = included(path, root, set())
        for name in sorted(parts(path)[2] & HEADER_OF.keys()):
            header = HEADER_OF[name]
            if not headers & {header, *ALSO.get(header, ())}:
                yield f"{path.relative_to(root)}: std::{name} is of <{header}>, which it does not include"


def main(root="."):
    wrong = list(complaints(Path(root).resolve()))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
