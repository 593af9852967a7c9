"""The page of a sweep: the Pareto front dominates all other points, seeds are gathered as they should be."""
import itertools
import random
import statistics
import unittest

from run_folders import make_sweep
from support import FolderTest, Page, read_csv

from hearsay_analysis.sweeps.gathered import Point, pareto_front, read_sweep


def point(accuracy, bytes_sent, diverged=0):
    return Point(f"{accuracy} {bytes_sent}", 2, (), (accuracy,), (bytes_sent,), {}, diverged, 0)


class Front(unittest.TestCase):
    def test_dominates_all_others_and_nobody_dominates_it(self):
        dice = random.Random(3)
        for size in range(1, 40):
            points = [point(dice.randrange(10) / 10, dice.randrange(10)) for _ in range(size)]
            front = pareto_front(points)
            self.assertTrue(front)
            for other in points:
                at_least_as_good = [
                    p for p in front if p.value >= other.value and p.bytes_mean <= other.bytes_mean
                ]
                self.assertTrue(at_least_as_good, other)
            for a, b in itertools.permutations(front, 2):
                equal = a.value == b.value and a.bytes_mean == b.bytes_mean
                self.assertTrue(equal or not (a.value >= b.value and a.bytes_mean <= b.bytes_mean))

    def test_diverged_methods_are_not_on_it(self):
        self.assertEqual([p.value for p in pareto_front([point(0.5, 10), point(0.9, 5, diverged=1)])], [0.5])


class Sweep(FolderTest):
    accuracies = {1: 0.90625, 2: 0.9375, 3: 0.953125}

    def setUp(self):
        super().setUp()
        self.sweep = self.folder / "sweep"
        make_sweep(
            self.sweep,
            [
                *(("dense", seed, accuracy, 1.0) for seed, accuracy in self.accuracies.items()),
                ("sparse", 1, 0.875, 0.1),
                ("bad", 1, 0.5, 0.6),
            ],
        )

    def report(self, code=0, words="page.html"):
        self.expect(code, words, "report", "--sweep", self.sweep, "-o", self.folder / "page.html")
        return (self.folder / "page.html").read_text() if code == 0 else ""

    def test_numbers(self):
        text = self.report()
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.assertNotIn("http", text)
        mean, deviation = statistics.mean(self.accuracies.values()), statistics.stdev(self.accuracies.values())
        table = read_csv(next((self.folder / "page_files").glob("pareto-*.csv")))
        dense = next(row for row in table if row["method"] == "dense")
        self.assertAlmostEqual(float(dense["accuracy_mean"]), mean)
        self.assertAlmostEqual(float(dense["accuracy_deviation"]), deviation)
        self.assertEqual({row["method"] for row in table if row["pareto_front"] == "True"}, {"dense", "sparse"})
        self.assertIn(f"{100 * mean:.2f} ± {100 * deviation:.2f} %", text)

    def test_single_seeds_are_said_to_have_no_bars(self):
        self.assertIn("2 of 3 methods drawn without bars: one seed only", self.report())
        table = read_csv(next((self.folder / "page_files").glob("pareto-*.csv")))
        self.assertEqual([row["method"] for row in table if row["accuracy_deviation"] == ""], ["sparse", "bad"])

    def test_unfinished_runs_are_named(self):
        (self.sweep / "dense" / "seed3" / "summary.json").unlink()
        self.assertIn("dense: 1 run not finished", self.report())
        [points] = read_sweep(self.sweep).values()
        self.assertEqual({p.method: p.seeds for p in points}, {"bad": 1, "dense": 2, "sparse": 1})

    def test_errors(self):
        self.expect(3, "no sweep folder", "report", "--sweep", self.folder / "nowhere", "-o", self.folder / "p.html")
        (self.folder / "empty").mkdir()
        self.expect(3, "no point.json", "report", "--sweep", self.folder / "empty", "-o", self.folder / "p.html")
        (self.sweep / "bad" / "seed1" / "point.json").write_text("{}")
        self.report(3, "has not the keys that `sweep` writes")


if __name__ == "__main__":
    unittest.main()
