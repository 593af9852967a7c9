"""pip install: what comes out is the whole package, and nothing is left beside the sources."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

from support import JobCase, have

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from importlib.metadata import version
import numpy as np
import hearsay, hearsay_analysis
assert version("hearsay") == hearsay.__version__, hearsay.__version__
for package in (hearsay, hearsay_analysis):
    assert package.__file__.startswith(sys.argv[1]), package.__file__
member = hearsay.join({"exchange": {"name": "dpsgd"}}, [np.zeros(9, np.float32)])
for _ in range(10):
    with member.step():
        pass
assert member.summary()["messages"] == 20
"""


def left_behind():
    """Top-level entries, and metadata of setuptools anywhere but in build/."""
    top = {path.name for path in ROOT.iterdir()} - {"build"}
    return top | {path for path in ROOT.glob("*/*.egg-info") if path.parent.name != "build"}


@unittest.skipUnless(have("setuptools, wheel, pip"), "pip is not installed (Debian: python3-pip python3-wheel)")
class PipTest(JobCase):
    def test_what_pip_installs_is_the_package(self):
        """With the module that is built already: compiling it again takes minutes."""
        installed, before = self.folder / "installed", left_behind()
        build = Path(os.environ["PYTHONPATH"]).parent
        line = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--quiet"]
        done = subprocess.run(
            [*line, "--target", str(installed), str(ROOT)],
            env={**os.environ, "HEARSAY_BUILD": str(build), "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(left_behind(), before)
        names = {path.name for path in (installed / "hearsay").iterdir()} - {"__pycache__"}
        ours = {path.name for path in (ROOT / "python/hearsay").iterdir()} - {"__pycache__"}
        self.assertEqual({name for name in names if not name.endswith(".so")}, ours)
        self.assertEqual(len(names), len(ours) + 1)
        environment = {"PYTHONPATH": str(installed)}
        self.good_job(PROGRAM, installed, environment=environment)
        said = self.command(sys.executable, "-m", "hearsay", "list", "graph", environment=environment, ranks=None)
        self.assertEqual((said.code, said.out.splitlines()[0]), (0, "graph (topology.graph.name)"), said)


if __name__ == "__main__":
    unittest.main()
