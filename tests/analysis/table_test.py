"""The tables of a sweep: one row a method, and with --best the value of an axis that is best for each."""
import csv
import json
import unittest

from run_folders import make_run
from support import FolderTest, run_analysis


class Table(FolderTest):
    def setUp(self):
        super().setUp()
        for method, rate, accuracies in (
            ("slow and steady", 0.1, [0.75, 0.8125]),
            ("slow and steady", 0.3, [0.9375, 0.25]),  # the best seed is not the best mean
            ("bold", 0.1, [0.5, 0.5]),
            ("bold", 0.3, [0.625, 0.875]),
        ):
            for seed, accuracy in enumerate(accuracies, 1):
                run = self.folder / str(rate) / method / f"seed{seed}"
                make_run(run, seed=seed, accuracy=accuracy, rate=1.0, segments=False)
                point = {"method": method, "ranks": 2, "seed": seed, "axis": {"rate": rate, "data": "iid"}}
                (run / "point.json").write_text(json.dumps(point))

    def test_all_values(self):
        code, out, _ = run_analysis("table", self.folder)
        self.assertEqual(code, 0)
        self.assertEqual(out.count("| slow and steady |"), 2)
        self.assertIn("**P = 2, rate 0.3, data iid**", out)

    def test_best_value(self):
        code, out, _ = run_analysis("table", self.folder, "--best", "rate")
        self.assertEqual(code, 0)
        self.assertEqual(out.count("**P = 2"), 1)
        self.assertIn("| slow and steady (0.1) | 78.12 ± 4.42 |", out)
        self.assertIn("| bold (0.3) | 75.00 ± 17.68 |", out)
        self.assertNotIn("steady (0.3)", out)

    def test_the_smallest_value_that_comes_close_to_the_best(self):
        for within, bold in ((0.2, "bold (0.3) | 75.00"), (0.3, "bold (0.1) | 50.00")):
            code, out, _ = run_analysis("table", self.folder, "--best", "rate", "--within", str(within))
            self.assertEqual(code, 0)
            self.assertIn(bold, out)
            self.assertIn("| slow and steady (0.1) | 78.12 ± 4.42 |", out)
        code, _, err = run_analysis("table", self.folder, "--best", "data", "--within", "0.1")
        self.assertEqual(code, 2)
        self.assertIn("'iid' is no number", err)
        for wrong in (("--within", "0.1"), ("--best", "rate", "--within", "-1")):
            code, _, err = run_analysis("table", self.folder, *wrong)
            self.assertEqual(code, 2)
            self.assertIn("only with --best", err)

    def test_few_bytes_are_not_rounded_to_none(self):
        for file in self.folder.glob("0.1/bold/*/summary.json"):
            file.write_text(json.dumps({**json.loads(file.read_text()), "bytes_fraction": 0.000432}))
        code, out, _ = run_analysis("table", self.folder)
        self.assertEqual(code, 0)
        self.assertIn("| 0.043 ± 0.000 |", out)
        self.assertNotIn("| 0.0 ± 0.0 |", out)

    def test_rows_make_the_same_tables(self):
        rows = self.folder / "rows.csv"
        code, out, _ = run_analysis("table", self.folder, "--csv")
        self.assertEqual(code, 0)
        self.assertEqual(len(out.splitlines()), 1 + 8)
        rows.write_text(out)
        for more in ((), ("--best", "rate")):
            self.assertEqual(run_analysis("table", rows, *more)[1], run_analysis("table", self.folder, *more)[1])
        code, again, _ = run_analysis("table", rows, "--csv")
        self.assertEqual(again, out)

    def test_a_file_that_has_no_rows(self):
        for wrong in ("", "a,b\n1,2\n", "method,ranks\nx"):
            (self.folder / "wrong.csv").write_text(wrong)
            code, _, err = run_analysis("table", self.folder / "wrong.csv")
            self.assertEqual(code, 3)
            self.assertIn("wrong.csv", err)

    def test_a_run_that_diverged_counts_as_nothing(self):
        for method in ("slow and steady", "bold"):
            file = self.folder / "0.1" / method / "seed1" / "summary.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), "status": "diverged"}))
        code, out, _ = run_analysis("table", self.folder, "--best", "rate")
        self.assertEqual(code, 0)
        self.assertIn("| slow and steady (0.3) | 59.38 ± 48.61 |", out)  # 0.1 reached 0 and 0.8125
        code, out, _ = run_analysis("table", self.folder)
        self.assertIn("| 1 (1 diverged) |", out)

    def test_runs_that_learn_nothing_are_shown_by_their_time(self):
        for file in self.folder.glob("0.1/*/seed*/summary.json"):
            summary = json.loads(file.read_text())
            summary |= dict.fromkeys(("accuracy_mean_model", "accuracy_rank_min"))
            file.write_text(json.dumps({**summary, "time_per_iteration_s": 0.5}))
        _, out, _ = run_analysis("table", self.folder)
        self.assertIn("| method | an iteration, s | messages, % |", out)
        self.assertIn("| bold | 0.500 ± 0.000 |", out)
        self.assertIn("| bold | 75.00 ± 17.68 |", out)  # the table of the other rate is as it was
        rows = self.folder / "rows.csv"
        rows.write_text(run_analysis("table", self.folder, "--csv")[1])
        self.assertEqual(run_analysis("table", rows)[1], out)

    def test_rows_of_older_versions(self):
        rows = self.folder / "rows.csv"
        rows.write_text(run_analysis("table", self.folder, "--csv")[1])
        with open(rows, newline="", encoding="utf-8") as stream:
            table = list(csv.reader(stream))
        for heads_then in (len(table[0]) - 1, len(table[0]) - 2):  # without times, without metrics
            with open(rows, "w", newline="", encoding="utf-8") as stream:
                csv.writer(stream).writerows(row[:heads_then] for row in table)
            self.assertIn("| bold | 75.00 ± 17.68 |", run_analysis("table", rows)[1])

    def test_no_such_axis(self):
        code, _, err = run_analysis("table", self.folder, "--best", "ratio")
        self.assertEqual(code, 2)
        self.assertIn("there are: data, rate", err)


if __name__ == "__main__":
    unittest.main()
