"""The table of skew.md is what the rows of the runs say."""
import sys
import unittest

from support import ROOT, run_process

FRONT = ROOT / "research/results/front.py"


class Front(unittest.TestCase):
    def test_the_page_has_the_table(self):
        code, out, err = run_process(sys.executable, "-B", FRONT)
        self.assertEqual((code, err), (0, ""))
        self.assertIn(out, (ROOT / "research/results/skew.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
