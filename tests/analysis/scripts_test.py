"""The scripts of analysis/ as processes of their own: help, usage, a Python without packages, a real run."""
import os
import subprocess
import sys
import unittest

from support import ANALYSIS, ROOT, FolderTest, Page, run_process

PROGRAM = os.environ.get("HEARSAY")
CONFIG = """
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 256, test_size: 64, batch_size: 16}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}
trigger: {name: adaptive, horizon: 1.0, warmup_iterations: 2}
train: {epochs: 2}
report: {every_iterations: 2, segments: true, trace: true}
"""


class Scripts(FolderTest):
    def test_help_and_usage(self):
        scripts = sorted(ANALYSIS.glob("*.py"))
        self.assertGreaterEqual(len(scripts), 4)
        for script in scripts:
            code, out, err = run_process(sys.executable, script, "--help")
            self.assertEqual((code, err), (0, ""), script)
            self.assertIn("usage:", out)
            code, out, err = run_process(sys.executable, script, "--no-such-option")
            self.assertEqual((code, out), (2, ""), script)
            self.assertIn("usage:", err)
            self.assertTrue(os.access(script, os.X_OK), script)

    def test_a_python_without_packages_finds_one_or_says_what_is_missing(self):
        """-S -E: this Python, but without any installed package."""
        need = "import sys; sys.path.insert(0, sys.argv.pop()); from hearsay_analysis import errors, interpreter; "
        need += (
            "interpreter.DISTRIBUTION = '/nowhere'; errors.run_script('x', lambda: interpreter.need('numpy', 'yaml'))"
        )
        code, _, err = run_process(sys.executable, "-S", "-E", "-c", need, ANALYSIS)
        self.assertEqual(code, 3, err)
        self.assertIn("apt-get install python3-numpy python3-yaml", err)

    def test_sweep_can_go_elsewhere_with_other_settings(self):
        (self.folder / "s.yaml").write_text("output: here\nseeds: [1, 2]\nmethods:\n  A b: {base: a.yaml}\n")
        sweep = [ROOT / "scripts/sweep", self.folder / "s.yaml", "--program", sys.executable, "--list"]
        code, out, _ = run_process(*sweep, "--output", self.folder / "there", "--set", "train.iterations=3")
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines()[1:], [f"{self.folder}/there/p4/a-b/seed{seed}" for seed in (1, 2)])
        code, _, err = run_process(*sweep, "--set", "train.iterations")
        self.assertEqual((code, err), (2, "sweep: --set train.iterations: needs KEY=VALUE\n"))

    @unittest.skipUnless(PROGRAM, "skipped: no hearsay program in this build")
    def test_real_run(self):
        (self.folder / "a.yaml").write_text(CONFIG)
        launch = [
            os.environ.get("MPIEXEC", "mpirun"),
            "--oversubscribe",
            "--bind-to",
            "none",
            "-n",
            "2",
            PROGRAM,
            "train",
        ]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(
            [*launch, "a.yaml", "--output", "run", "--progress", "off"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect(0, "page.html", "report.py", self.folder / "run", "-o", self.folder / "page.html")
        text = (self.folder / "page.html").read_text()
        self.assertEqual(Page(text).faults, [])
        # Where this holds, the page was read from fields that the program really writes.
        row = Page(text).row("payload", "run")
        self.assertEqual(
            sum(int(row[name]) for name in ("payload", "index", "header", "control")), int(row["all bytes"])
        )
        self.assertGreater(int(row["payload"]), 0)
        said = self.expect(0, "of 32 packets arrive before", "merge_trace.py", self.folder / "run")
        self.assertIn("clocks ahead of rank 0's: rank 1", said)
        self.assertEqual(sum(text.count(f"not drawn, {reason}") for reason in ("not recorded", "no run has")), 0)


if __name__ == "__main__":
    unittest.main()
