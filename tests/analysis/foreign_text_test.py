"""Text of others commands a terminal nothing, marks that nobody sees change nothing, and a full disk is said."""
import json
import os
import subprocess
import sys
import unittest
import urllib.parse

from run_folders import make_run, make_sweep
from support import PROGRAM, FolderTest, Page, run_process

from hearsay_analysis.text import shown, shown_lines

EVIL = "\x1b]0;X\x07\x1b[2J"


class ForeignText(FolderTest):
    def change(self, name, **values):
        file = self.folder / "run" / name
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    def test_what_is_shown(self):
        self.assertEqual(shown(EVIL + "a\nb"), r"\x1b]0;X\x07\x1b[2Ja\nb")
        self.assertEqual(shown("Größe – 🙂"), "Größe – 🙂")
        self.assertEqual(shown("\x9b\u202e\udcff\ud800"), r"\xc2\x9b\xe2\x80\xae\xff\xed\xa0\x80")
        self.assertEqual(shown_lines("a\n\x1bb\n"), "a\n\\x1bb\n")

    def test_a_table_and_a_message_obey_nothing(self):
        make_sweep(self.folder, [("a", 1, 0.5, 0.5), (f"b{EVIL}\nhearsay: fine", 1, 0.5, 0.5)])
        said = self.expect(0, r"b\x1b]0;X\x07\x1b[2J\nhearsay: fine", "table", self.folder)
        self.assertNotIn("\x1b", said)
        said = self.expect(3, r"no sweep folder", "table", self.folder / EVIL)
        self.assertNotIn("\x1b", said)
        self.assertIn(r"\x1b[2J", said)

    def test_a_name_that_is_no_utf_8_is_shown_byte_by_byte(self):
        done = subprocess.run([sys.executable, PROGRAM, "table", b"/none/\xff"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(rb"/none/\xff", done.stderr)

    def test_a_byte_order_mark_changes_nothing(self):
        make_run(self.folder / "run")
        make_sweep(self.folder / "sweep", [("a", 1, 0.5, 0.5)])
        for file in [*self.folder.glob("**/*.json"), *self.folder.glob("**/*.jsonl"), *self.folder.glob("**/*.yaml")]:
            file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
        self.expect(0, "report.html", "report", self.folder / "run", "-o", self.folder / "report.html", "--no-files")
        self.expect(0, "| a |", "table", self.folder / "sweep")

    def test_files_that_are_no_records_are_named(self):
        make_run(self.folder / "run")
        for name, text in (("config.yaml", b"\xff\xfe"), ("config.yaml", b"[1]"), ("config.yaml", b"[" * 100_000),
                           ("metrics.rank0000.jsonl", b"[1]\n{}\n"), ("manifest.json", b"[" * 100_000)):
            file = self.folder / "run" / name
            before = file.read_bytes()
            file.write_bytes(text)
            self.expect(3, str(file), "report", self.folder / "run", "-o", self.folder / "report.html")
            file.write_bytes(before)

    def test_a_page_of_what_is_no_character(self):
        """Names of files that are no UTF-8, and half a pair in JSON, are shown; nothing unfinished is left."""
        make_run(self.folder / "run")
        run = (self.folder / "run").rename(self.folder / "r\udcff\x1b")
        for name in ("manifest.json", "summary.json", "metrics.rank0000.jsonl"):
            text = (run / name).read_text()
            for word in ("conv.weight", "tiny"):
                text = text.replace(f'"{word}', f'"\\ud800{word}')
            (run / name).write_text(text)
        page = self.folder / "p\udcff.html"
        self.expect(0, r"p\xff.html", "report", run, "-o", page)
        read = Page(page.read_text(encoding="utf-8"))
        self.assertEqual(read.faults, [])
        self.assertIn(r"r\xff\x1b", read.row("run", r"r\xff\x1b")["run"])
        self.assertIn(r"\xed\xa0\x80", page.read_text(encoding="utf-8"))
        links = [address for address in read.addresses if address.endswith(".csv")]
        self.assertTrue(links)
        for link in links:
            file = os.path.join(os.fsencode(self.folder), urllib.parse.unquote_to_bytes(link))
            self.assertTrue(os.path.isfile(file), link)
        self.assertEqual(list(self.folder.glob("*.unfinished")), [])

    def test_a_page_that_cannot_be_written_leaves_nothing(self):
        make_run(self.folder / "run")
        limit = ["sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh", sys.executable, PROGRAM]
        words = ["report", self.folder / "run", "-o", self.folder / "page.html", "--no-files"]
        code, _, err = run_process(*limit, *words)
        self.assertEqual((code, "page.html: File too large" in err), (3, True), err)
        self.assertEqual(list(self.folder.glob("page*")), [])

    def test_as_many_ranks_as_a_job_can_have(self):
        make_run(self.folder / "run")
        for ranks in (10**15, 0, -1, "2"):
            self.change("manifest.json", ranks=ranks)
            self.expect(3, "a run does not have", "report", self.folder / "run", "-o", self.folder / "report.html")
        self.change("manifest.json", ranks=1_000_000)
        self.expect(0, "report.html", "report", self.folder / "run", "-o", self.folder / "report.html", "--no-files")

    def test_a_full_disk_is_an_error(self):
        make_sweep(self.folder, [("a", 1, 0.5, 0.5)])
        for words in (["table", self.folder], ["table", "--csv", self.folder], ["--help"], ["table", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                command = list(map(str, [sys.executable, PROGRAM, *words]))
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 3, words)
            self.assertIn("standard output cannot be written", done.stderr)
            self.assertNotIn("Exception", done.stderr)


if __name__ == "__main__":
    unittest.main()
