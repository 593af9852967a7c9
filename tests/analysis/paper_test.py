"""analysis/hearsay paper: what it prints comes from the runs; what is missing is said."""
import json
import unittest

from run_folders import make_run
from support import ROOT, FolderTest

from hearsay_analysis.paper import EXPERIMENTS
from hearsay_analysis.paper.experiment import Bench, judged, points

METHODS = {
    "constant 0": (0.96875, 1.0),
    "adaptive_compounding, horizon 0.9": (0.9609375, 0.5),
    "adaptive_compounding, horizon 1.0": (0.953125, 0.25),
}


class Paper(FolderTest):
    def setUp(self):
        super().setUp()
        self.runs = self.folder / "sweeps"
        for number, (method, (accuracy, rate)) in enumerate(METHODS.items()):
            for seed in (1, 2):
                run = self.runs / "mnist-reproduction" / "p4" / f"m{number}" / f"seed{seed}"
                make_run(run, ranks=4, seed=seed, accuracy=accuracy, rate=rate, segments=False)
                point = {"method": method, "ranks": 4, "seed": seed, "axis": {}}
                (run / "point.json").write_text(json.dumps(point))

    def test_every_experiment_names_a_sweep_that_exists(self):
        for experiment in EXPERIMENTS:
            if isinstance(experiment.way, Bench):
                continue
            self.assertTrue((ROOT / f"configs/sweeps/{experiment.sweep}.yaml").exists(), experiment.name)
        self.assertEqual(len({e.name for e in EXPERIMENTS}), len(EXPERIMENTS))

    def test_list_counts_runs(self):
        other = self.runs / "mnist-reproduction" / "p4" / "constant-0" / "seed1"
        make_run(other, ranks=4, segments=False)  # the only one whose name Fig. 6 looks for
        lines = self.expect(0, "", "paper", "list", "--runs", self.runs).splitlines()
        counts = {
            before.split()[0]: after
            for before, after in zip(lines, lines[1:])
            if "runs in" in after or "run in" in after
        }
        self.assertIn(" 7 runs in", counts["eventgrad-mnist"])
        self.assertIn(" 1 run in", counts["eventgrad-figure-6"])

    def test_table_is_the_runs(self):
        said = self.expect(0, "released code", "paper", "draw", "eventgrad-mnist", "--runs", self.runs)
        for method, (accuracy, _) in METHODS.items():
            line = next(line for line in said.splitlines() if line.startswith(f"| {method} |"))
            self.assertEqual(line.split("|")[-3:-1], [f" {100 * accuracy:.2f} ± 0.00 ", " 2 "])

    def test_document_says_what_is_missing(self):
        page = self.folder / "results.md"
        self.expect(0, "results.md", "paper", "document", "--runs", self.runs, "-o", page)
        text = page.read_text()
        for experiment in EXPERIMENTS:
            self.assertIn(f"## {experiment.source}", text)
        there = [e for e in EXPERIMENTS if e.sweep == "mnist-reproduction"]
        self.assertEqual(text.count("Not run yet"), len(EXPERIMENTS) - len(there))
        self.assertGreater((self.folder / "results" / "eventgrad-figure-6-loss.svg").stat().st_size, 0)

    def test_errors(self):
        self.expect(3, "no finished run of 'allreduce'", "paper", "draw", "gtopk-figures-1-5", "--runs", self.runs)
        self.expect(2, "no experiment 'table-9'; there are: eventgrad-table-1", "paper", "draw", "table-9")

    def test_judgement(self):
        self.assertIn(": reproduced, at most 0.50", judged("x", [0.005, 0.0], [0.0, 0.0]))
        self.assertIn("not reproduced**, up to 2.00 points below", judged("x", [0.01, -0.01], [0.0, 0.01]))
        self.assertIn("better than in the paper, by up to 2.00", judged("x", [0.02], [0.0]))
        self.assertEqual(points(-0.005), "−0.50")


if __name__ == "__main__":
    unittest.main()
