"""`times` and `progress`: what they print and draw are the runs' own numbers."""
import json
import unittest

from swept_runs import add_run, table_rows
from run_folders import make_run
from support import FolderTest, read_csv


class Times(FolderTest):
    def test_time_to_a_target_is_that_of_the_first_evaluation_that_reaches_it(self):
        """make_run evaluates after 5 iterations, 10 points below the end, and after 10; 0.05 s each."""
        add_run(self.folder / "fast", "D-PSGD", accuracy=0.9)
        add_run(self.folder / "slow", "D-PSGD", accuracy=0.8)
        folders = [self.folder / "fast", self.folder / "slow"]
        [row] = table_rows(self.expect(0, "time to 75.0 %", "times", *folders, "--target", "0.75"))
        self.assertEqual(row[1], "0 s, epoch 1")
        self.assertEqual(row[4], "0 s, epoch 2")
        self.assertEqual(row[2:4], ["50.0 ms", "50.0 %"])  # 0.25 s of waiting in 10 iterations of 0.05 s
        self.assertEqual(row[-1], "90.00 / 80.00")
        [row] = table_rows(self.expect(0, "", "times", *folders, "--target", "0.85"))
        self.assertEqual(row[4], "not in 2 epochs (80.00 %)")

    def test_without_a_target_it_is_what_every_run_reaches(self):
        add_run(self.folder / "s", "a", accuracy=0.876)
        add_run(self.folder / "s", "b", accuracy=0.95)
        self.expect(0, "time to 87.5 %", "times", self.folder / "s")

    def test_errors(self):
        self.expect(3, "no sweep folder", "times", self.folder / "nowhere")
        add_run(self.folder / "s", "a")
        self.expect(3, "no finished runs of 8 ranks", "times", self.folder / "s", "--ranks", "8")


class Progress(FolderTest):
    def test_points_are_the_records_and_paces_their_last(self):
        run = self.folder / "run"
        make_run(run, ranks=2, iterations=10, every=5)
        slow = run / "metrics.rank0001.jsonl"
        records = [json.loads(line) for line in slow.read_text().splitlines()]
        slow.write_text("".join(json.dumps({**record, "time_s": 1.0}) + "\n" for record in records))
        said = self.expect(0, "p.svg", "progress", run, "-o", self.folder / "p.svg")
        [row] = table_rows(said)
        self.assertEqual(row, ["run", "run", "10 (rank 1)", "20 (rank 0)"])
        points = read_csv(self.folder / "p.csv")
        expected = [(rank, iterations) for rank in "01" for iterations in ("0", "5", "10")]
        self.assertEqual([(point["rank"], point["iterations"]) for point in points], expected)
        self.assertIn("rank 1", (self.folder / "p.svg").read_text())

    def test_a_panel_a_sweep_and_only_the_ranks_asked_for(self):
        for sweep in ("even", "link"):
            for method in ("D-PSGD", "EventGraD"):
                add_run(self.folder / sweep, method)
        folders = [self.folder / "even", self.folder / "link"]
        said = self.expect(0, "", "progress", *folders, "--ranks", "0,3", "-o", self.folder / "p.png")
        self.assertEqual([row[:2] for row in table_rows(said)][:2], [["even", "D-PSGD"], ["even", "EventGraD"]])
        self.assertEqual({point["rank"] for point in read_csv(self.folder / "p.csv")}, {"0", "3"})
        self.assertGreater((self.folder / "p.png").stat().st_size, 1000)

    def test_errors(self):
        self.expect(3, "no sweep folder", "progress", self.folder / "nowhere", "-o", self.folder / "p.svg")
        make_run(self.folder / "run")
        self.expect(3, "of these ranks", "progress", self.folder / "run", "--ranks", "7", "-o", self.folder / "p.svg")
        self.expect(2, "must end in", "progress", self.folder / "run", "-o", self.folder / "p.bmp")


if __name__ == "__main__":
    unittest.main()
