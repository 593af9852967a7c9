"""Times of analysis/hearsay paper: what is printed is what the runs took, and the verdict follows from it."""
import json
import unittest

from paper_runs import add_run, table_rows
from support import FolderTest

from hearsay_analysis.paper.gtopk_times import predicted_s

WAYS = ("dense", "top-k", "gTop-k")


class Times(FolderTest):
    def setUp(self):
        super().setUp()
        self.runs = self.folder / "sweeps"

    def draw(self, name, code=0, words=""):
        return self.expect(code, words, "paper", "draw", name, "--runs", self.runs, "-o", self.folder / "out")


class Simulated(Times):
    def exchanges(self, factor=lambda way, ranks: 1.0):
        for ranks in (4, 8, 16, 32, 64, 128):
            for way in WAYS:
                seconds = factor(way, ranks) * predicted_s(way, ranks, 25_000_000)
                add_run(self.runs / "simulated-ranks", way, ranks, time_per_iteration_s=seconds)

    def test_costs_are_the_papers_table_1(self):
        """α = 0.436 ms and β = 3.6e-5 ms, by hand: 6 messages and 1.5 m words; 2 and 6 k; 4 and 8 k."""
        self.assertAlmostEqual(predicted_s("dense", 4, 1e6), 6 * 0.436e-3 + 1.5e6 * 3.6e-8)
        self.assertAlmostEqual(predicted_s("top-k", 4, 1e6), 2 * 0.436e-3 + 6e3 * 3.6e-8)
        self.assertAlmostEqual(predicted_s("gTop-k", 4, 1e6), 4 * 0.436e-3 + 8e3 * 3.6e-8)

    def test_figure_9_of_runs_that_obey_the_formula(self):
        self.exchanges()
        said = self.draw("gtopk-figure-9-ranks")
        self.assertIn("at most 0.0 % from the formula's", said)
        self.assertIn("from 16 on: reproduced (simulated).", said)
        for ranks, *cells in table_rows(said):
            times = [f"{1e3 * predicted_s(way, int(ranks), 25_000_000):.1f}" for way in WAYS]
            self.assertEqual(cells, [time for time in times for _ in (1, 2)])
        self.assertGreater((self.folder / "out/gtopk-figure-9-ranks-ranks.svg").stat().st_size, 0)

    def test_figure_9_of_runs_that_do_not(self):
        self.exchanges(lambda way, ranks: 20.0 if (way, ranks) == ("gTop-k", 64) else 1.0)
        said = self.draw("gtopk-figure-9-ranks")
        self.assertIn("at most 1900.0 % from the formula's", said)
        self.assertIn("from 16 on: **not reproduced** (simulated).", said)

    def test_table_4_keeps_the_papers_gtopk_column(self):
        batches = {"VGG-16": (128, 3020), "ResNet-20": (128, 25280), "AlexNet": (64, 505), "ResNet-50": (256, 1251)}
        for model in batches:
            for way, seconds in zip(WAYS, (0.5, 0.03, 0.01)):
                add_run(self.runs / "simulated-models", f"{model}, {way}", 32, time_per_iteration_s=seconds)
        for model, compute, dense, _, gtopk, *_ in table_rows(self.draw("gtopk-table-4")):
            batch, paper = batches[model]
            self.assertEqual(gtopk, str(paper))
            self.assertAlmostEqual(float(compute), 32 * batch / paper - 0.01, places=3)
            self.assertAlmostEqual(float(dense), 32 * batch / (32 * batch / paper + 0.49), delta=0.51)

    def test_hierarchy(self):
        times = {"dense ring": 0.08, "top-k, flat": 0.6, "gTop-k, tree": 0.005, "HiTopKComm": 0.01}
        for way, seconds in times.items():
            folder = add_run(self.runs / "simulated-hierarchy", way, 128, time_per_iteration_s=seconds)
        said = self.draw("hitopkcomm", words="a dense sum: reproduced")
        self.assertEqual(table_rows(said), [[way, f"{1e3 * s:.1f}", f"{100 * s:.2f}"] for way, s in times.items()])
        slow = json.loads((folder / "summary.json").read_text()) | {"time_per_iteration_s": 0.09}
        (folder / "summary.json").write_text(json.dumps(slow))
        self.draw("hitopkcomm", words="a dense sum: **not reproduced**")

    def test_missing_runs_are_named(self):
        self.exchanges()
        self.draw("gtopk-figure-10", 3, "no finished run of 'VGG-16, gTop-k' with 32 ranks")


class Operator(Times):
    def measured(self, mstopk_s):
        times = {"LibTorch's topk": 0.01, "topk": 0.001, "sampled": 0.0005, "mstopk": mstopk_s}
        folder = self.runs / "mstopk-operator"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "selector": name,
                "values": values,
                "density": 0.001,
                "repeats": 5,
                "median_s": seconds * values / 1e6,
                "mass_of_exact": 0.5,
                "processor": "here",
                "hearsay": "0",
            }
            for values in (1_000_000, 10_000_000)
            for name, seconds in times.items()
        ]
        (folder / "bench.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return lines

    def test_table_and_verdict(self):
        self.measured(0.02)
        said = self.draw("mstopk-operator", words="of its framework: open (one run: did not hold)")
        self.assertEqual(table_rows(said)[0][2:6], ["10.000", "1.000", "0.500", "20.000"])
        self.assertIn("2.00 times as long as LibTorch's topk and 20.0 times as long as our exact one", said)
        self.measured(0.005)
        self.draw("mstopk-operator", words="of its framework: seen once (one run: held)")

    def test_missing_or_damaged(self):
        self.draw("mstopk-operator", 3, "no bench.jsonl")
        lines = self.measured(0.02)
        file = self.runs / "mstopk-operator" / "bench.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines[1:]))
        self.draw("mstopk-operator", 3, "has no LibTorch's topk of 1,000,000 values")
        file.write_text('{"selector": "topk"}\n')
        self.draw("mstopk-operator", 3, "has no 'values'")


class Breakdown(Times):
    def measured(self, lkgs_wait_s):
        names = ["compute_s", "select_s", "encode_s", "wait_s"]
        for model in ("ResNet-20", "dense layers"):
            ways = {"dense": (1.0, 0.0, 0.0, 2.0)}
            for density in ("1 %", "5 %", "10 %"):
                ways[f"top-k {density}"] = (1.0, 0.1, 0.1, 0.8)
                ways[f"LKGS {density}"] = (1.0, 0.2, 0.2, lkgs_wait_s)
            for way, seconds in ways.items():  # of 10 iterations
                total = sum(seconds) / 10 + 0.05
                sweep = self.runs / "breakdown"
                add_run(sweep, f"{model}, {way}", **dict(zip(names, seconds)), time_per_iteration_s=total)

    def test_parts_are_the_summaries(self):
        self.measured(0.2)
        said = self.draw("lkgs-figure-3")
        rows = {(model, way): cells for model, way, *cells in table_rows(said)}
        self.assertEqual(rows[("ResNet-20", "dense")], ["100.0", "0.0", "200.0", "50.0", "350.0"])
        self.assertEqual(rows[("dense layers", "LKGS 5 %")], ["100.0", "40.0", "20.0", "50.0", "210.0"])
        self.assertIn("ResNet-20: less than half of the exposed communication of top-k: seen once (one run", said)
        self.assertIn("is 0.25 of top-k's on average", said)
        self.assertIn("Sparsifying takes 2.00 times as long, an iteration 0.84 times", said)

    def test_verdict_follows(self):
        self.measured(0.9)
        self.draw(
            "lkgs-figure-3",
            words="dense layers: less than half of the exposed communication of top-k: open (one run: did not hold)",
        )


if __name__ == "__main__":
    unittest.main()
