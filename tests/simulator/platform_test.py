#!/usr/bin/env python3
"""Platform files, changed at random: each gives a run or a sentence, and none ends the simulator otherwise.

Usage: platform_test.py SIMULATOR SOURCE_DIR [RUNS [SEED]]. Exit status 1: a file that ends it, with what it said.
SimGrid reads these files, and each run is a process of its own: 0.06 s. What reads
them, millions of times: tests/simulator/fuzz/platform.cpp.
"""
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = ["", "0", "-1", "1e999", "nan", "0-99999", "5-3", "-5-3", "Full", "Floyd", "Vivaldi", "Wifi", "None",
         "SHARED", "1Gf", "1us", "4.0", "99", "node0", "ethernet", "&x;", "</cluster>",
         '<include file="x.xml"/>', '<link id="between" bandwidth="1Bps" latency="1s"/>',
         '<actor host="node1" function="f"/>', "\0", '"', "<", ">"]
ROUTE = '<route src="node{}" dst="node{}"><link_ctn id="wire"/></route>'
FULL = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="z" routing="Full">
""" + "\n".join([f'<host id="node{host}" speed="1Gf"/>' for host in range(4)]
                + ['<link id="wire" bandwidth="1MBps" latency="1us"/>']
                + [ROUTE.format(a, b) for a in range(4) for b in range(a + 1, 4)]) + "\n</zone>\n</platform>\n"
CONFIGURATION = """
seed: 1
exchange: {name: dpsgd}
simulate: {gradients: synthetic, compute_s: 0.01, values: 100, iterations: 2}
"""


def changed(text, draw):
    """One of: a value of an attribute; a line, left out or there twice; some bytes."""
    kind = draw.random()
    if kind < 0.6:
        value = draw.choice(list(re.finditer(r'"([^"]*)"', text[text.index("<platform"):])))
        start, end = (text.index("<platform") + offset for offset in value.span(1))
        old = value.group(1)
        new = draw.choice([*WORDS, old + draw.choice("019ax-"), old[1:], old[:-1], old.replace("1", "9")])
        return text[:start] + new + text[end:]
    if kind < 0.8:
        lines = text.split("\n")
        line = lines.pop(draw.randrange(len(lines)))
        for _ in range(draw.choice([0, 2])):
            lines.insert(draw.randrange(len(lines)), line)
        return "\n".join(lines)
    at = draw.randrange(text.index("<platform"), len(text))
    return text[:at] + draw.choice([*WORDS, chr(draw.randrange(256))]) + text[at + draw.randrange(20):]


def outcome(simulator, folder, text):
    """Exit code and words of a run on that platform; None: it did not end."""
    (folder / "platform.xml").write_text(text, encoding="latin-1")
    command = [simulator, folder / "run.yaml", "--platform", folder / "platform.xml", "-n", "4", "-o", folder / "run",
               "--overwrite"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def main(simulator, source_dir, runs="150", seed="1"):
    draw = random.Random(int(seed))
    platforms = [Path(source_dir, "configs/platforms", name).read_text(encoding="utf-8")
                 for name in ("ethernet-1g-32.xml", "slow-link-16.xml")] + [FULL]
    taken = refused = 0
    with tempfile.TemporaryDirectory(prefix="hearsay-platform-") as name:
        folder = Path(name)
        (folder / "run.yaml").write_text(CONFIGURATION, encoding="utf-8")
        for platform in platforms:
            code, words = outcome(simulator, folder, platform)
            assert code == 0, f"a platform as it is: {code}\n{words}"
        code, words = outcome(simulator, folder, FULL.replace(ROUTE.format(2, 3), ""))
        assert code == 2 and "no route from node2 to node3" in words, f"without a route: {code}\n{words}"
        for run in range(int(runs)):
            text = draw.choice(platforms)
            for _ in range(draw.choice([1, 1, 2, 3])):
                if "<platform" in text:
                    text = changed(text, draw)
            code, words = outcome(simulator, folder, text)
            taken += code == 0
            refused += code == 2
            if code != 0 and not (code == 2 and re.search(r"^hearsay: --platform .+: .", words, re.M)):
                print(f"change {run} of seed {seed} ends with {code}\n{words[:2000]}\nthe platform:\n{text}")
                return 1
    print(f"{runs} changes: {taken} ran, {refused} were refused")
    return 0 if taken > 0 and refused > 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
