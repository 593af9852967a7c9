"""A task with a metric of its own: pages, sweeps, tables and times show it, and know which direction is better."""
import json
import unittest

from run_folders import judge_by, make_run, make_sweep
from support import FolderTest, Page, read_csv, run_analysis

PERPLEXITY = {"name": "perplexity", "better": "lower", "fraction": False}


class Runs(FolderTest):
    def setUp(self):
        super().setUp()
        self.runs = [self.folder / "one", self.folder / "two"]
        for folder, value in zip(self.runs, (82.5, 90.25)):
            make_run(folder)
            judge_by(folder, PERPLEXITY, value)

    def page(self):
        self.expect(0, "page.html", "report", *self.runs, "-o", self.folder / "page.html")
        return Page((self.folder / "page.html").read_text())

    def test_the_comparison_shows_it(self):
        page = self.page()
        self.assertEqual(page.faults, [])
        row = page.row("consensus distance", "one")
        self.assertEqual(row["perplexity, averaged"], "82.5")
        self.assertEqual(row["worst rank"], "103.125")
        data = read_csv(self.folder / "page_files" / "perplexity-epochs.csv")
        self.assertEqual({float(row["perplexity"]) for row in data}, {82.5, 90.25})

    def test_a_run_in_progress_shows_its_last_evaluation(self):
        (self.runs[0] / "summary.json").unlink()
        self.assertEqual(self.page().row("consensus distance", "one")["perplexity, averaged"], "82.5")

    def test_runs_of_different_tasks_are_said_to_be_so(self):
        make_run(self.folder / "images")
        self.runs.append(self.folder / "images")
        self.page()
        text = (self.folder / "page.html").read_text()
        self.assertIn("judged by accuracy (first run: perplexity)", text)

    def test_a_loss_does_not_hide_the_training_loss(self):
        for folder in self.runs:
            judge_by(folder, {**PERPLEXITY, "name": "loss"}, 1.5)
        self.page()
        files = {file.name for file in (self.folder / "page_files").glob("*.csv")}
        self.assertLessEqual({"loss-epochs.csv", "test-loss-epochs.csv"}, files)


class Sweep(FolderTest):
    def setUp(self):
        super().setUp()
        self.sweep = self.folder / "sweep"
        rates = {"dense": 1.0, "sparse": 0.1, "bad": 0.6}
        make_sweep(self.sweep, [(method, 1, 0.5, rate) for method, rate in rates.items()])
        for method, value in (("dense", 80.0), ("sparse", 100.0), ("bad", 300.0)):
            judge_by(self.sweep / method / "seed1", PERPLEXITY, value)

    def test_the_front_is_of_those_that_are_lower(self):
        self.expect(0, "page.html", "report", "--sweep", self.sweep, "-o", self.folder / "page.html")
        table = read_csv(next((self.folder / "page_files").glob("pareto-*.csv")))
        self.assertEqual({row["method"] for row in table if row["pareto_front"] == "True"}, {"dense", "sparse"})
        self.assertEqual({float(row["perplexity_mean"]) for row in table}, {80.0, 100.0, 300.0})
        self.assertIn("perplexity, averaged", (self.folder / "page.html").read_text())

    def test_tables_and_rows(self):
        code, out, _ = run_analysis("table", self.sweep)
        self.assertEqual(code, 0)
        self.assertIn("| perplexity of the mean model | worst rank |", out)
        self.assertIn("| dense | 80.000 | 100.000 |", out)
        rows = self.folder / "rows.csv"
        _, csv, _ = run_analysis("table", self.sweep, "--csv")
        rows.write_text(csv)
        self.assertEqual(run_analysis("table", rows)[1], out)

    def test_the_best_value_of_an_axis_is_the_lowest(self):
        for method, value in (("dense", 0.1), ("sparse", 0.2), ("bad", 0.3)):
            point = self.sweep / method / "seed1" / "point.json"
            point.write_text(json.dumps({**json.loads(point.read_text()), "method": "one", "axis": {"rate": value}}))
        self.assertIn("| one (0.1) | 80.000 |", run_analysis("table", self.sweep, "--best", "rate")[1])

    def test_times(self):
        code, out, _ = run_analysis("times", self.sweep, "--ranks", "2", "--target", "90")
        self.assertEqual(code, 0)
        self.assertIn("time to perplexity 90", out)
        self.assertIn("not in 2 epochs (100)", out)


if __name__ == "__main__":
    unittest.main()
