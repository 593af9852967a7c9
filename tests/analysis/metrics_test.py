"""What becomes of the records of several ranks: sums, means and the slowest, at the iterations that all have."""
import itertools
import json
import unittest

from run_folders import COUNTERS, make_run
from support import FolderTest

import pandas as pd
from hearsay_analysis.figures.learning import stretches
from hearsay_analysis.runs.metrics import read_metrics
from hearsay_analysis.runs.run_folder import read_run


def record(rank, k, **fields):
    counters = dict.fromkeys(COUNTERS, 0)
    return json.dumps({"record": "iteration", "rank": rank, "iteration": k, "epoch": 0.5, **counters, **fields}) + "\n"


class Metrics(FolderTest):
    def write(self, *ranks):
        for rank, records in enumerate(ranks):
            (self.folder / f"metrics.rank{rank:04d}.jsonl").write_text("".join(records))
        return read_metrics(self.folder, len(ranks))

    def test_counters_are_summed_losses_averaged_and_the_slowest_rank_is_the_time(self):
        metrics = self.write(
            [record(0, 4, loss=1.0, time_s=2.0, messages=3)], [record(1, 4, loss=4.0, time_s=5.0, messages=10)]
        )
        [row] = metrics.iterations.to_dict("records")
        self.assertEqual((row["messages"], row["loss"], row["time_s"], row["epoch"]), (13, 2.5, 5.0, 0.5))

    def test_an_iteration_that_a_rank_has_not_reached_is_left_out_of_the_table_but_not_of_the_last_totals(self):
        slow, fast = [record(0, 4, loss=1.0, time_s=1.0, puts=2)], []
        for k in (4, 9):
            fast.append(record(1, k, loss=1.0, time_s=1.0, puts=k))
        metrics = self.write(slow, fast)
        self.assertEqual(metrics.iterations["iteration"].tolist(), [4])
        self.assertEqual(metrics.last["puts"], 2 + 9)

    def test_a_rank_without_a_file_and_a_loss_that_is_none(self):
        metrics = self.write([record(0, 4, loss=None, time_s=1.0, puts=2)], [record(1, 4, loss=1.0, time_s=1.0)])
        self.assertTrue(metrics.iterations["loss"].isna().all())
        (self.folder / "metrics.rank0001.jsonl").unlink()
        self.assertEqual(read_metrics(self.folder, 2).iterations["puts"].tolist(), [2])

    def test_a_stretch_has_the_mean_over_all_its_iterations_and_the_last_record(self):
        """A record's loss is the mean since the record before; here record n stands for n iterations of loss n."""
        lengths = list(range(1, 251))
        ends = list(itertools.accumulate(lengths))
        losses = [float(n) for n in lengths]
        table = pd.DataFrame({"iteration": [end - 1 for end in ends], "loss": losses, "puts": ends})
        short = stretches(table)
        self.assertLessEqual(len(short), 100)
        self.assertEqual(int(short["puts"].iloc[-1]), ends[-1])
        covered = [after - before for before, after in zip([0, *short["puts"]], short["puts"])]
        whole = sum(n * n for n in lengths)
        self.assertAlmostEqual(sum(loss * n for loss, n in zip(short["loss"], covered)), whole)
        self.assertEqual(stretches(table.head(3))["loss"].tolist(), [1.0, 2.0, 3.0])
        table.loc[249, "loss"] = None  # the run diverged: its last stretch has no mean
        self.assertEqual(stretches(table)["loss"].isna().tolist(), [False] * (len(short) - 1) + [True])

    def test_totals_of_a_finished_run_are_its_summarys(self):
        make_run(self.folder / "run")
        file = self.folder / "run" / "summary.json"
        values = json.loads(file.read_text())
        file.write_text(json.dumps({**values, "puts": values["puts"] + 7}))
        run = read_run(self.folder / "run", "run")
        self.assertEqual(run.totals["puts"], run.metrics.last["puts"] + 7)


if __name__ == "__main__":
    unittest.main()
