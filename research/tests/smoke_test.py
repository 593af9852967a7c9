"""Every program of research/ starts, says what it takes, and does its smallest work."""
import json
import os
import subprocess
import sys
import unittest

from support import ROOT, FolderTest, run_process

from hearsay_analysis.sweeps import grid
from hearsay_analysis.sweeps.sweep_file import read_sweep_file

RESEARCH = ROOT / "research"
HEARSAY, MAILBOX, KERNELS = (os.environ.get(name) for name in ("HEARSAY", "MAILBOX", "KERNELS"))
STORM = """
seed: 3
model: {name: mlp, hidden: [128]}
data: {name: synthetic_digits, train_size: 1024, test_size: 64, batch_size: 16}
optimizer: {name: sgd, learning_rate: 0.05}
exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}
train: {epochs: 1000000, seconds: 4, evaluate_every_epochs: 0, on_failure: abort, failure_timeout_s: 1.5,
        checkpoint: {every_s: 0.5}}
report: {every_iterations: 20}
"""


class Smoke(FolderTest):
    def run_in_folder(self, *command):
        """(exit code, all it said) of a process in a folder of its own."""
        done = subprocess.run(
            list(map(str, command)), cwd=self.folder, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stdout + done.stderr

    def test_every_program_says_what_it_takes(self):
        programs = [file for file in RESEARCH.iterdir() if file.is_file() and os.access(file, os.X_OK)]
        self.assertGreaterEqual(len(programs), 5)
        for program in [*programs, *RESEARCH.glob("method/*.py")]:
            code, out, err = run_process(program, "--help")
            self.assertEqual((code, err), (0, ""), program)
            self.assertRegex(out, "(?i)usage", program)

    def test_every_sweep_is_one(self):
        for file in RESEARCH.glob("sweeps/*.yaml"):
            points = list(grid.points(read_sweep_file(file)))
            self.assertTrue(points, file)

    def test_a_baseline_is_as_fast_as_itself(self):
        check, baseline = RESEARCH / "check-performance", RESEARCH / "baseline.jsonl"
        code, said = self.run_in_folder(check, "--new", baseline)
        self.assertEqual(code, 0, said)
        lines = [json.loads(line) for line in baseline.read_text(encoding="utf-8").splitlines()]
        slower = self.folder / "slower.jsonl"
        slower.write_text("".join(json.dumps({**line, "ratio": 9999}) + "\n" for line in lines), encoding="utf-8")
        code, said = self.run_in_folder(check, "--new", slower)
        self.assertEqual(code, 1, said)

    @unittest.skipUnless(MAILBOX, "the program was not built")
    def test_a_packet_is_timed(self):
        two_ranks = (RESEARCH.parent / "scripts/launch", "-n", 2)
        code, said = self.run_in_folder(*two_ranks, MAILBOX, "--blocks", 2, "--packets", 5, "--rounds", 20, "--json")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r'"kernel":"mailbox/1MB","repetitions":2,.*"ratio":[0-9.]+')

    @unittest.skipUnless(KERNELS, "the program was not built")
    def test_kernels_are_timed_beside_their_floors(self):
        few = ("--most-values", 1e6, "--repetitions", 3, "--seconds", 0.001)
        for words in ("select", "code/", "mix", "merge/"):
            code, said = self.run_in_folder(KERNELS, *few, "--filter", words, "--json", "kernels.jsonl")
            self.assertEqual(code, 0, said)
            lines = (self.folder / "kernels.jsonl").read_text(encoding="utf-8").splitlines()
            names = {json.loads(line)["kernel"] for line in lines}
            self.assertTrue(any(words in name for name in names), names)
        code, said = self.run_in_folder(KERNELS, *few, "--filter", "selct")
        self.assertEqual(code, 2, said)

    @unittest.skipUnless(HEARSAY, "the program was not built")
    def test_a_storm_loses_nothing(self):
        (self.folder / "storm.yaml").write_text(STORM, encoding="utf-8")
        words = ("--program", HEARSAY, "--ranks", 2, "--kills", 1, "--stops", 0, "--rate", 7200, "storm.yaml")
        code, said = self.run_in_folder(RESEARCH / "storm", *words)
        self.assertEqual(code, 0, said)
        for line in ("| kills | 1 |", "| hangs | 0 |", "| damaged checkpoints | 0 |", "| jobs lost | 0 |"):
            self.assertIn(line, said)


if __name__ == "__main__":
    sys.exit(unittest.main())
