#!/usr/bin/env python3
"""The arrows of docs/method/architecture.md: what each folder may include, that neither folders nor files make a
circle, and that nothing of the product refers to research/.

Usage: includes_test.py [ROOT]. Also holds algorithm tables against their files: entry, file and function share a name.
A folder with many entries is only pointed out. Exit status 0: all is as it should be; 1: each complaint on a line.
"""
import collections
import os
import re
import sys

TOPS = ("base", "topology", "trigger", "sparsify", "runtime", "hearsay", "apps", "python", "research", "tests")
SUFFIXES = (".hpp", ".cpp", ".cu", ".cuh")

# What a folder may include of ours, itself and what lies in it apart: the longest row that a file's folder begins with
# decides. A name stands for a folder with all that is in it.
PURE = ["base", "topology", "trigger", "sparsify"]
MAY = {
    "base": [],
    "topology": ["base"],
    "trigger": ["base"],
    "sparsify": ["base"],
    "runtime/replica": ["base", "trigger", "sparsify"],
    "runtime/transport": ["base", "topology", "sparsify"],
    "runtime/data": ["base"],
    "runtime/gpu": ["base", "sparsify", "runtime/replica"],
    "runtime/mpi": ["base", "runtime/transport"],
    "runtime/sockets": ["base", "runtime/transport", "runtime/collectives"],
    "runtime/job": ["base", "runtime/transport", "runtime/mpi", "runtime/sockets"],
    "runtime/collectives": ["base", "sparsify", "runtime/transport", "runtime/replica"],
    "runtime/exchange": [*PURE, "runtime/collectives", "runtime/transport", "runtime/replica"],
    "runtime/exchange/cost": ["base", "topology", "sparsify", "runtime/replica"],
    "runtime/report": [*PURE, "runtime/exchange", "runtime/mpi", "runtime/transport", "runtime/replica",
                       "runtime/data"],
    "runtime/failure": [*PURE, "runtime/exchange", "runtime/transport", "runtime/report"],
    "runtime/training": [*PURE, "runtime", "hearsay_version.hpp"],
    "hearsay": ["base", "runtime"],
    "apps/datasets": ["base", "runtime/data"],
    "apps/models": ["base", "runtime/data", "runtime/training"],
    "apps/shared": ["base", "runtime", "apps/datasets", "apps/models", "hearsay_version.hpp"],
    "apps/bench": [*PURE, "runtime", "apps/models", "apps/shared", "hearsay_version.hpp"],
    "apps/simulator": [*PURE, "runtime", "apps/models", "apps/datasets", "apps/shared", "hearsay_version.hpp"],
    "apps/tools": [*PURE, "runtime/exchange", "runtime/mpi", "runtime/sockets", "runtime/report", "runtime/data",
                   "apps/shared", "hearsay_version.hpp"],
    "apps/hearsay": [*PURE, "runtime", "apps/models", "apps/datasets", "apps/shared", "apps/bench", "apps/tools",
                     "hearsay_version.hpp"],
    "apps/examples": ["hearsay"],
    "python/core": [*PURE, "runtime", "apps/tools", "hearsay_version.hpp"],
    "tests/python": ["hearsay"],
    "research": [*PURE, "runtime", "apps", "hearsay_version.hpp"],
    "tests/package": ["hearsay"],
    "tests": [*PURE, "runtime", "apps", "hearsay"],
}

# Who may include what is not ours (or hides LibTorch): header, then file. What no row names is free.
LIBTORCH = (r"^(runtime/training/|apps/models/|apps/shared/chosen_run\.cpp|apps/hearsay/commands/train\.cpp"
            r"|apps/(bench|examples)/|research/|tests/(runtime/training|package|fuzz|python)/)")
ONLY = [
    (r"^mpi\.h$", r"^runtime/mpi/((check|messages|waiting|real/(polite_flush|room))\.hpp"
     r"|((real|simulated)/)?[a-z_]+\.cpp)$"),
    (r"^(sys/(socket|un|epoll)|netinet/.*|arpa/inet|ifaddrs|net/if)\.h$",
     r"^(runtime|tests/runtime)/sockets/|^tests/fuzz/targets/(frames|greeting)\.cpp$"),
    (r"^openssl/", r"^runtime/sockets/secret\.cpp$"),
    (r"^simgrid/", r"^(runtime/mpi/simulated|tests/simulator/fuzz)/[a-z_]+\.cpp$"),
    (r"^torch/version\.h$", r"^(runtime/training|apps/hearsay)/([a-z]+/)?[a-z_]+\.cpp$"),
    (r"^(torch|c10|ATen|caffe2)/", LIBTORCH),
    (r"^runtime/training/(model/(model|objective|batches|evaluator|writing)|set_up"
     r"|rank|evaluations|checkpoints|resumption)\.hpp$",
     LIBTORCH + r"|^hearsay/hearsay\.hpp$"),
    (r"^(cuda|cub/|thrust/|nvtx|curand|cublas)", r"(\.cu$|\.cuh$|^runtime/gpu/)"),
    (r"^boost/lockfree/", r"^runtime/transport/"),
    (r"^boost/crc\.hpp$", r"^(runtime|tests/runtime)/report/"),
    (r"^boost/", r"^(topology|tests/topology)/"),
    (
        r"^Eigen/",
        r"^(topology|tests/topology)/"
        r"|^runtime/exchange/(neighbour/linear_iteration|global/powersgd|global/parts/block_dct)\.cpp$",
    ),
    (r"^(google/protobuf/|event\.pb\.h$)", r"^runtime/report/events/protobuf/|^tests/runtime/report/"),
    (r"^yaml-cpp/", r"^base/config/"),
    (r"^nlohmann/", r"^(runtime/(report|training)|apps/(hearsay|tools|bench)|research|tests)/"),
    (r"^utf8\.h$", r"^apps/datasets/"),
    (r"^(zlib|lzma|png|turbojpeg)\.h$", r"^(apps/datasets|tests/runtime/data)/"),
    (r"^CLI/", r"^(apps/(hearsay|simulator|examples|shared)|research)/"),
    (r"^benchmark/", r"^research/bench/"),
    (r"^pybind11/", r"^python/core/"),
    (r"^(doctest/|rapidcheck)", r"^tests/"),
]

# A table of algorithms, and the folders whose files have entries in it.
TABLES = {
    "topology/table.cpp": ["topology/graphs", "topology/weights"],
    "trigger/table.cpp": ["trigger/policies"],
    "sparsify/table.cpp": ["sparsify/selectors", "sparsify/codecs", "sparsify/quantisers"],
    "runtime/exchange/table.cpp": ["runtime/exchange/neighbour", "runtime/exchange/global",
                                    "runtime/exchange/dropping", "runtime/exchange/outer"],
    "runtime/exchange/neighbour/mixing/table.cpp": ["runtime/exchange/neighbour/mixing"],
    "runtime/exchange/neighbour/correction/table.cpp": ["runtime/exchange/neighbour/correction"],
    "runtime/data/partition.cpp": ["runtime/data/partitions"],
    "apps/datasets/table.cpp": ["apps/datasets", "apps/datasets/text"],
    "apps/models/table.cpp": ["apps/models"],
}
MANY_ENTRIES = 14  # files (a source counts with its header) and folders in a folder, that of a table apart
PRODUCT = (*(top for top in TOPS if top != "research"), "CMakeLists.txt", "CMakePresets.json", "cmake", "analysis",
           "configs", "scripts", "setup.py", "pyproject.toml")
SMOKE_TEST = r"include\(.*/research/tests/tests\.cmake\)"  # the one line that adds it


def sources():
    for top in TOPS:
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names if name.endswith(SUFFIXES))


def includes(path):
    """(line, header, quoted) of every #include."""
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if found := re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line):
                yield number, found[2], found[1] == '"'


def within(name, folder):
    return name == folder or name.startswith(folder + "/")


def wrong_arrows(path):
    row = max((folder for folder in MAY if within(path, folder)), key=len, default=None)
    for number, header, quoted in includes(path):
        ours = quoted or header.split("/")[0] in TOPS
        if ours and row and not any(within(header, folder) for folder in [row, *MAY[row]]):
            yield f"{path}:{number}: includes {header}; {row} may include {' '.join(MAY[row]) or 'nothing else'} only"
        for pattern, by in ONLY:
            if re.search(pattern, header):
                if not re.search(by, path):
                    yield f"{path}:{number}: includes {header}, which only {by} may"
                break


def circles(paths, node_of, kind):
    """Nodes (of a path: its folder, or itself with its header) that include each other in a circle, with one #include
    for each arrow in it."""
    arrows = collections.defaultdict(dict)
    for path in paths:
        for number, header, quoted in includes(path):
            here, there = node_of(path), node_of(header)
            if quoted and "/" in header and here != there:
                arrows[here].setdefault(there, f"{path}:{number}")
    reach = {node: reachable(node, arrows) for node in list(arrows)}
    for a in sorted(reach):
        for b in sorted(arrows[a]):
            if a in reach.get(b, ()):
                yield f"{arrows[a][b]}: {a} -> {b} is part of a circle of {kind}"


def unit_of(paths):
    """path → the unit that it is a part of: a header with its source, and with what only that unit includes (x_part.hpp
    without a source, included by x.cpp and x_more.cpp)."""
    stem = lambda path: os.path.splitext(path)[0]  # noqa: E731
    users = collections.defaultdict(set)
    for path in paths:
        for _, header, quoted in includes(path):
            if quoted:
                users[header].add(stem(path))
    private = {}
    for header, by in users.items():
        owner = min(by, key=len)
        alone = not any(os.path.exists(stem(header) + end) for end in SUFFIXES if end != ".hpp")
        if alone and all(user == owner or user.startswith(owner + "_") for user in by) and \
                stem(header).startswith(owner + "_"):
            private[header] = owner
    return lambda path: private.get(path, stem(path))


def of_research(path):
    """Lines of the product that need what only makes our results."""
    with open(path, encoding="utf-8", errors="ignore") as text:
        for number, line in enumerate(text, 1):
            if re.search(r"(?<![\w-])research/", line) and not re.search(SMOKE_TEST, line):
                yield f"{path}:{number}: refers to research/, which the product does not need"


def product():
    for top in PRODUCT:
        if os.path.isfile(top):
            yield top
        for folder, folders, names in os.walk(top):
            folders[:] = set(folders) - {"__pycache__", "contract"}
            yield from (os.path.join(folder, name) for name in names)


def reachable(start, arrows):
    found, left = set(), [start]
    while left:
        for folder in arrows.get(left.pop(), ()):
            if folder not in found:
                found.add(folder)
                left.append(folder)
    return found


def crowded_folders(paths):
    """Folders that are hard to overlook; those of tables are lists of entries."""
    entries = collections.defaultdict(set)
    for path in paths:
        child = os.path.splitext(path)[0]
        while folder := os.path.dirname(child):
            entries[folder].add(child)
            child = folder
    for folder, names in sorted(entries.items()):
        if len(names) > MANY_ENTRIES and not any(folder in of_table for of_table in TABLES.values()):
            yield f"note: {folder}: {len(names)} files and folders"


def wrong_entries(table, folders):
    """One file may hold a family: resnet.cpp has resnet18 and resnet20."""
    with open(table, encoding="utf-8") as text:
        listed = text.read()
    entries = 0
    for path in (os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))):
        if not path.endswith(".cpp"):
            continue
        with open(path, encoding="utf-8") as text:
            makers = re.findall(r'^\w+Entry (\w+)\(\) \{(.*?)^\}', text.read(), re.M | re.S)
        for maker, body in makers:
            entries += 1
            name = (re.search(r'\.name = "([^"]+)"', body) or [None, ""])[1]
            if not name.startswith(os.path.splitext(os.path.basename(path))[0]) or not maker.startswith(name + "_"):
                yield f'{path}: the entry {maker}() is named "{name}"; file, function and name must agree'
            if len(re.findall(rf"\b{maker}\(\)", listed)) < 2:
                yield f"{path}: {maker}() is not in {table}"
    if entries == 0:
        yield f"{table}: no entry found for it in {' '.join(folders)}"


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    paths = sorted(sources())
    code = [path for path in paths if not within(path, "tests")]
    complaints = [c for path in paths for c in wrong_arrows(path)]
    complaints += [*circles(code, os.path.dirname, "folders"), *circles(code, unit_of(code), "files")]
    complaints += [c for path in product() for c in of_research(path)]
    complaints += [c for table, folders in TABLES.items() for c in wrong_entries(table, folders)]
    if len(paths) < 300:
        complaints.append(f"only {len(paths)} sources: this test does not see them")
    print("".join(f"{note}\n" for note in crowded_folders(code)), end="")
    fine = f"{len(paths)} files: includes, folders and tables are as they should be"
    print("\n".join(complaints) if complaints else fine)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
