"""The tables of skew.md and skew-graphs.md are what the rows of the runs say."""
import re
import statistics
import sys
import unittest

from support import ROOT, run_process

from hearsay_analysis.runs.rows import read_rows

RESULTS = ROOT / "research/results"


class Front(unittest.TestCase):
    def test_the_page_has_the_table_of_graphs(self):
        code, out, err = run_process(sys.executable, "-B", RESULTS / "front.py")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(out, (RESULTS / "skew-graphs.md").read_text(encoding="utf-8"))

    def test_what_is_advised_is_beaten_by_nothing_with_fewer_bytes(self):
        """The bold rows are the front; a method of which a run diverges is not on it."""
        runs = {}
        for run in read_rows(RESULTS / "tables/skew-own-rates.csv"):
            if run.axis["data.partition"]["name"] == "shards":
                runs.setdefault(run.method, []).append(run)
        points = {
            method: [statistics.mean(run.summary[key] for run in of) for key in ("bytes_sent", "accuracy_mean_model")]
            for method, of in runs.items()
            if all(run.finished for run in of)
        }
        front = {
            method
            for method, (sent, accuracy) in points.items()
            if not any(b <= sent and a >= accuracy and (b, a) != (sent, accuracy) for b, a in points.values())
        }
        page = (RESULTS / "skew.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\| \*\*(.*?)\*\* \|", page, flags=re.M)), front)


if __name__ == "__main__":
    unittest.main()
