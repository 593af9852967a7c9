"""research/papers: what it prints comes from the runs; what is missing is said."""
import json
import re
import unittest

from run_folders import make_run
from support import ROOT, FolderTest

from hearsay_analysis.sweeps import grid
from hearsay_analysis.sweeps.sweep_file import read_sweep_file
from paper import EXPERIMENTS
from paper.experiment import NOT_STATED, SIMULATED, Bench, Claim, Evidence, judged, points

METHODS = {
    "constant 0": (0.96875, 1.0),
    "adaptive_compounding, horizon 0.9": (0.9609375, 0.5),
    "adaptive_compounding, horizon 1.0": (0.953125, 0.25),
}


class Papers(FolderTest):
    PROGRAM = ROOT / "research/papers"

    def setUp(self):
        super().setUp()
        self.runs = self.folder / "sweeps"
        for number, (method, (accuracy, rate)) in enumerate(METHODS.items()):
            for seed in (1, 2):
                run = self.runs / "mnist-reproduction" / "p4" / f"m{number}" / f"seed{seed}"
                make_run(run, ranks=4, seed=seed, accuracy=accuracy, rate=rate, segments=False)
                point = {"method": method, "ranks": 4, "seed": seed, "axis": {}}
                (run / "point.json").write_text(json.dumps(point))

    def test_every_part_of_an_experiment_names_runs_of_its_sweep(self):
        for experiment in EXPERIMENTS:
            if isinstance(experiment.way, Bench):
                continue
            file = ROOT / f"research/sweeps/{experiment.sweep}.yaml"
            folders = [f"{point.folder}/" for point in grid.points(read_sweep_file(file))]
            for part in experiment.only:
                self.assertTrue(any(part in folder for folder in folders), (experiment.name, part))
        self.assertEqual(len({e.name for e in EXPERIMENTS}), len(EXPERIMENTS))

    def test_no_figure_of_another_page_is_quoted_by_hand(self):
        """Nor is a file said to have a paper's full settings: none of them has."""
        for source in sorted((ROOT / "research/paper").glob("*.py")):
            text = source.read_text(encoding="utf-8")
            for page in re.finditer(r"network\.md", text):
                self.assertNotRegex(text[max(0, page.start() - 200) : page.start()], r"\d\.\d %", source.name)
            self.assertNotIn("full settings", text, source.name)

    def test_list_counts_runs(self):
        other = self.runs / "mnist-reproduction" / "p4" / "constant-0" / "seed1"
        make_run(other, ranks=4, segments=False)  # the only one whose name Fig. 6 looks for
        lines = self.expect(0, "", "list", "--runs", self.runs).splitlines()
        counts = {
            before.split()[0]: after
            for before, after in zip(lines, lines[1:])
            if "runs in" in after or "run in" in after
        }
        self.assertIn(" 7 runs in", counts["eventgrad-mnist"])
        self.assertIn(" 1 run in", counts["eventgrad-figure-6"])

    def test_table_is_the_runs(self):
        said = self.expect(0, "released code", "draw", "eventgrad-mnist", "--runs", self.runs)
        for method, (accuracy, _) in METHODS.items():
            line = next(line for line in said.splitlines() if line.startswith(f"| {method} |"))
            self.assertEqual(line.split("|")[-3:-1], [f" {100 * accuracy:.2f} ± 0.00 ", " 2 "])

    def test_document_says_what_is_missing(self):
        page = self.folder / "results.md"
        self.expect(0, "results.md", "document", "--runs", self.runs, "-o", page)
        papers = "".join(file.read_text() for file in (self.folder / "results").glob("*.md"))
        for experiment in EXPERIMENTS:
            self.assertIn(f"## {experiment.source}", papers)
        there = [e for e in EXPERIMENTS if e.sweep == "mnist-reproduction"]
        self.assertEqual(papers.count("Not run yet"), len(EXPERIMENTS) - len(there))
        text = page.read_text()
        self.assertEqual(text.count("|  | not run |  |"), len(EXPERIMENTS) - len(there))
        self.assertIn("Accuracy of the released program, in lockstep | open | 2 seeds, 2 of 10 epochs", text)
        self.assertGreater((self.folder / "results" / "eventgrad-figure-6-loss.svg").stat().st_size, 0)

    def test_errors(self):
        self.expect(3, "no finished run of 'allreduce'", "draw", "gtopk-figures-1-5", "--runs", self.runs)
        self.expect(2, "no experiment 'table-9'; there are: eventgrad-table-1", "draw", "table-9")

    def test_judgement(self):
        whole = Evidence(3, 20.0, 20.0)
        near = str(judged("x", [0.005, 0.0], [0.0, 0.0], whole))
        self.assertIn(": reproduced (3 seeds, 20 of 20 epochs; at most 0.50", near)
        below = str(judged("x", [0.01, -0.01], [0.0, 0.01], whole))
        self.assertIn("**not reproduced** (3 seeds, 20 of 20 epochs; up to 2.00 points below", below)
        self.assertEqual(judged("x", [0.02], [0.0], whole).verdict, "better than the paper")
        self.assertEqual(points(-0.005), "−0.50")

    def test_a_verdict_takes_three_seeds_and_half_of_the_epochs(self):
        def verdict(holds, *evidence):
            return Claim("x", holds, Evidence(*evidence)).verdict

        self.assertEqual(verdict(True, 3, 20.0, 20.0), "reproduced")
        self.assertEqual(verdict(False, 3, 20.0, 20.0), "**not reproduced**")
        self.assertEqual(verdict(True, 3, 10.0, 20.0), "reproduced, scaled down")
        self.assertEqual(verdict(False, 3, 10.0, 20.0), "**not reproduced**, scaled down")
        self.assertEqual(verdict(True, 3, 9.0, 20.0), "open")
        self.assertEqual(verdict(True, 2, 20.0, 20.0), "seen in 2 seeds")
        self.assertEqual(verdict(True, 1, 10.0, 20.0), "seen once")
        self.assertEqual(verdict(False, 1, 20.0, 20.0), "open")
        self.assertEqual(verdict(True, 1, 2.0, 20.0), "open")
        self.assertEqual(verdict(True, 9, 1000.0, NOT_STATED), "open")
        self.assertEqual(Claim("x", True, SIMULATED).verdict, "reproduced")
        self.assertIn("unknown number", str(Evidence(1, 2.0, NOT_STATED)))


if __name__ == "__main__":
    unittest.main()
