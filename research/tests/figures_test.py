"""Every figure that a page quotes is its table's, and a page that quotes another is found."""
import re
import sys
import unittest

from support import ROOT, FolderTest, run_process

FIGURES = ROOT / "research/results/figures.py"


def compare(*words):
    return run_process(sys.executable, "-B", FIGURES, *words)


class Figures(FolderTest):
    def page(self, text):
        path = self.folder / "page.md"
        path.write_text(text, encoding="utf-8")
        return path

    def test_pages_have_what_their_tables_have(self):
        code, out, err = compare()
        self.assertEqual((code, err), (0, ""), out)
        self.assertGreater(int(re.search(r"(\d+) figures: all", out)[1]), 400)

    def test_another_figure_is_found_and_mended(self):
        marker = "<!-- from skew-own-rates.csv; shards -->It has <!--= fp4, always: accuracy_mean_model -->"
        page = self.page(f"{marker}97.80 %.\n")
        code, out, _ = compare(page)
        self.assertEqual(code, 1)
        self.assertIn("97.79 %", out)
        self.assertEqual(compare("--write", page)[0], 0)
        self.assertEqual(page.read_text(encoding="utf-8"), f"{marker}97.79 %.\n")
        self.assertEqual(compare(page)[0], 0)

    def test_what_no_table_has_is_refused(self):
        for text, words in (
            ("It has 12 % more.", "12 % has no marker"),
            ("<!-- from none.csv -->It has <!--= x: y -->1 %.", "there is no tables/none.csv"),
            ("<!-- from words.csv -->It has <!--= sparse: loss -->1.", "has no row with sparse"),
            ("<!-- from words.csv -->It has <!--= dense: speed -->1.", "nothing in column 'speed'"),
            ("<!--= dense: loss -->1 begins a line.", "begin it with a word"),
        ):
            code, out, _ = compare(self.page(text))
            self.assertEqual(code, 1, text)
            self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main()
