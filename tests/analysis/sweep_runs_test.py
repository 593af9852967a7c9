"""What a sweep does with its runs: each is made once, keeps a log, says why it failed, and is not written over."""
import json
import os
import unittest
from pathlib import Path

from support import ROOT, FolderTest, run_process

from hearsay_analysis.sweeps.making import reason_in

PROGRAM = os.environ.get("HEARSAY")
# Stands for the simulator: refuses a folder with a run, as the program does, and does what optimizer.name says.
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
folder = pathlib.Path(words[words.index("--output") + 1])
sets = dict(word.split("=", 1) for word in words if "=" in word)
if (folder / "manifest.json").exists() and "--overwrite" not in words:
    sys.exit("hearsay-simulator: the folder already holds a run; replace it with --overwrite")
(folder / "manifest.json").write_text("{}")
with open("calls", "a") as calls:
    calls.write(str(folder) + "\\n")
print("a line of progress")
wanted = json.loads(sets["optimizer.name"])
if wanted == "broken" and not pathlib.Path("mended").exists():
    lines = ["hearsay-simulator: invalid configuration (2 errors)", "  a.yaml:1:1: one", "  a.yaml:2:1: two", "---"]
    print(*lines, sep="\\n", file=sys.stderr)
    sys.exit(2)
if wanted == "lost":
    sys.stderr.write("hearsay-simulator: [rank 0] rank 0 diverged\\nmore of mpirun\\n")
(folder / "summary.json").write_text(json.dumps({"status": "diverged" if wanted == "lost" else "finished"}))
sys.exit(5 if wanted == "lost" else 0)
"""


class Runs(FolderTest):
    def setUp(self):
        super().setUp()
        (self.folder / "base.yaml").write_text("seed: 1\n")
        (self.folder / "stand-in").write_text(STAND_IN)
        (self.folder / "stand-in").chmod(0o755)
        before = Path.cwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.write("sgd", "adam")

    def write(self, *optimizers):
        methods = "".join(f"  {name}: {{base: base.yaml, set: {{optimizer.name: {name}}}}}\n" for name in optimizers)
        (self.folder / "s.yaml").write_text(f"output: out\nranks: [2]\nmethods:\n{methods}")

    def sweep(self, code, words, *more):
        return self.expect(code, words, "sweep", "s.yaml", "--program", "stand-in", "--simulate", "p.xml", *more)

    def calls(self):
        return (self.folder / "calls").read_text().split()

    def test_finished_runs_are_made_once_and_never_written_over(self):
        self.sweep(0, "2 runs, 0 done, 2 to do")
        kept = (self.folder / "out/p2/sgd/seed1/summary.json").stat().st_mtime_ns
        self.write("sgd", "adam", "more")
        self.sweep(0, "3 runs, 2 done, 1 to do")
        self.assertEqual(self.calls(), [f"out/p2/{name}/seed1" for name in ("sgd", "adam", "more")])
        self.assertEqual((self.folder / "out/p2/sgd/seed1/summary.json").stat().st_mtime_ns, kept)
        for log in self.folder.glob("out/**/seed1.log"):
            self.assertNotIn("--overwrite", log.read_text())

    def test_every_run_has_a_log_beside_it_and_says_what_it_is(self):
        self.sweep(0, "")
        log = (self.folder / "out/p2/adam/seed1.log").read_text()
        self.assertIn("a line of progress", log)
        self.assertIn("--set optimizer.name=\"adam\"", log.splitlines()[0])
        point = json.loads((self.folder / "out/p2/adam/seed1/point.json").read_text())
        self.assertEqual(point, {"method": "adam", "ranks": 2, "seed": 1, "axis": {}})

    def test_a_failed_run_says_why_and_the_others_go_on(self):
        self.write("sgd", "broken", "adam")
        said = self.sweep(1, "1 of 3 runs failed")
        reason = "invalid configuration (2 errors)\n      a.yaml:1:1: one\n      a.yaml:2:1: two\n    exit code 2;"
        self.assertIn(reason, said)
        self.assertIn("all it said: out/p2/broken/seed1.log", said)
        self.assertEqual(said.count(": finished"), 2)
        (self.folder / "mended").touch()  # what it left is the sweep's own, and is replaced
        self.sweep(0, "3 runs, 2 done, 1 to do")
        self.assertIn("--overwrite", (self.folder / "out/p2/broken/seed1.log").read_text())

    def test_a_diverged_run_is_a_result_with_a_reason(self):
        self.write("lost")
        self.assertIn("[rank 0] rank 0 diverged\n", self.sweep(0, ": diverged"))
        self.sweep(0, "1 runs, 1 done, 0 to do")

    def test_somebody_elses_run_is_not_written_over(self):
        theirs = self.folder / "out/p2/sgd/seed1"
        theirs.mkdir(parents=True)
        (theirs / "manifest.json").write_text("theirs")
        for _ in range(2):
            self.sweep(1, "already holds a run")
        self.assertEqual((theirs / "manifest.json").read_text(), "theirs")
        self.assertFalse((theirs / "point.json").exists())

    def test_jobs_and_parts(self):
        self.write("a", "b", "c", "d")
        self.sweep(0, "[4/4] out/p2/d/seed1: finished", "--jobs", "3")
        self.assertEqual(len(self.calls()), 4)
        self.sweep(0, "1 runs, 1 done", "--only", "/b/")
        self.sweep(0, "2 runs, 2 done", "--only", "/b/", "--only", "/d/")
        self.sweep(2, "no run's folder contains '/nowhere/'", "--only", "/b/", "--only", "/nowhere/")

    def test_errors(self):
        self.sweep(2, "--testbed or --simulate, not both", "--testbed")
        self.sweep(2, "--jobs 0", "--jobs", "0")
        self.expect(2, "share the machine's cores", "sweep", "s.yaml", "--jobs", "2")
        self.expect(3, "no program at nowhere", "sweep", "s.yaml", "--program", "nowhere")
        (self.folder / "out").write_text("")
        self.sweep(3, "out/p2/")

    def test_the_short_form_is_the_same(self):
        words = ["s.yaml", "--program", "stand-in", "--simulate", "p.xml", "--list"]
        code, out, err = run_process(ROOT / "scripts/sweep", *words)
        self.assertEqual((code, out, err), (0, self.expect(0, "", "sweep", *words), ""))

    @unittest.skipUnless(PROGRAM, "skipped: no hearsay program in this build")
    def test_real_runs(self):
        """One trains, one has a key that the program does not know."""
        (self.folder / "base.yaml").write_text(
            "model: {name: mlp, hidden: [8]}\n"
            "data: {name: synthetic_digits, train_size: 64, test_size: 64, batch_size: 16}\n"
            "train: {iterations: 2}\n"
        )
        (self.folder / "s.yaml").write_text(
            "output: out\nranks: [2]\nmethods:\n  good: {base: base.yaml}\n"
            "  bad: {base: base.yaml, set: {train.epoch: 3}}\n"
        )
        for done in (0, 1):
            said = self.expect(1, f"2 runs, {done} done", "sweep", "s.yaml", "--program", PROGRAM)
            self.assertRegex(said, r"bad/seed1: failed, \d+ s\n    hearsay: invalid configuration \(1 error\)\n")
            self.assertIn("train.epoch: unknown key, did you mean 'epochs'?", said)
        self.assertEqual(json.loads((self.folder / "out/p2/good/seed1/summary.json").read_text())["ranks"], 2)


class Reason(unittest.TestCase):
    def test_it_is_the_programs_sentence_not_mpiruns(self):
        noise = "-----\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n-----\n"
        self.assertEqual(reason_in(f"$ hearsay x\n{noise}hearsay: no such file\n  1\n{noise}"), "hearsay: no such file")
        self.assertEqual(reason_in("$ mpirun\nstarting\nmpirun: no slots\n-----\n"), "mpirun: no slots")
        self.assertEqual(reason_in("$ hearsay x\n"), "it said nothing")


if __name__ == "__main__":
    unittest.main()
