"""The comparison page: its numbers are the folders', whatever state the runs are in; it is sound, closed HTML."""
import json
import os
import re
import shutil
import unittest
import warnings

from run_folders import COUNTERS, SEGMENTS, break_off, make_run, still_in_progress
from support import FolderTest, Page, read_csv, run_analysis

from hearsay_analysis.figures.events import shares
from hearsay_analysis.runs.metrics import read_metrics
from hearsay_analysis.runs.run_folder import names_of, read_run


class Report(FolderTest):
    """One page of two runs, drawn once."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = cls.temporary_folder()
        cls.folders = [cls.shared / "dense", cls.shared / "events"]
        cls.ledgers = [
            make_run(folder, seed=seed, rate=rate, accuracy=accuracy)
            for folder, seed, rate, accuracy in zip(cls.folders, (1, 2), (1.0, 0.3), (0.96875, 0.9375))
        ]
        code, _, err = run_analysis("report", *cls.folders, "-o", cls.shared / "page.html")
        assert code == 0, err
        cls.text = (cls.shared / "page.html").read_text()
        cls.page = Page(cls.text)

    def test_numbers_are_the_folders(self):
        first = self.ledgers[0].total()
        for folder, ledger in zip(self.folders, self.ledgers):
            summary = json.loads((folder / "summary.json").read_text())
            row = self.page.row("consensus distance", folder.name)
            self.assertEqual(float(row["accuracy, averaged"]), summary["accuracy_mean_model"])
            self.assertEqual(float(row["worst rank"]), summary["accuracy_rank_min"])
            self.assertEqual(float(row["time per iteration"]), summary["time_per_iteration_s"])
            self.assertEqual(int(row["messages"]), ledger.total()["messages"])
            self.assertEqual(int(row["bytes"]), ledger.total()["bytes_sent"])
            self.assertEqual(float(row["% of D-PSGD's"]), summary["messages_fraction"])
            self.assertEqual(float(row["% of first's messages"]), ledger.total()["messages"] / first["messages"])
            self.assertEqual(float(row["% of first's bytes"]), ledger.total()["bytes_sent"] / first["bytes_sent"])

    def test_what_a_segment_has_saved_stands_beside_its_events(self):
        folder = self.temporary_folder() / "sizes"
        ledger = make_run(folder, seed=1, rate=1.0, accuracy=0.5)
        iterations = json.loads((folder / "summary.json").read_text())["iterations"]
        self.assertIsNone(shares(read_run(folder, "sizes")))
        rows = ["segment,name,shape,length,events,messages,payload_bytes,index_bytes"]
        for number, (name, _, length) in enumerate(SEGMENTS):
            whole = 4 * length * len(ledger.edges) * iterations
            rows.append(f"{number},{name},x,{length},1,1,{whole // 4},{whole // 4 if number == 0 else 0}")
        (folder / "segments.csv").write_text("\n".join(rows) + "\n")
        parts, sent = zip(*shares(read_run(folder, "sizes")))
        self.assertEqual(list(parts), [length / 16 for _, _, length in SEGMENTS])
        self.assertEqual(list(sent), [0.5, 0.25, 0.25])
        code, _, err = run_analysis("report", folder, "-o", self.shared / "sizes.html")
        self.assertEqual(code, 0, err)
        self.assertIn("37.5 %, 50 %", (self.shared / "sizes.html").read_text())

    def test_bytes_by_kind_sum_to_all_bytes(self):
        for folder in self.folders:
            row = self.page.row("payload", folder.name)
            kinds = sum(int(row[name]) for name in ("payload", "index", "header", "control"))
            self.assertEqual(kinds, int(row["all bytes"]))

    def test_time_of_an_iteration_adds_up_and_encoding_is_not_communication(self):
        # The exposed half of the collectives takes half of their encoding with it.
        times = {"wait_s": 0.5, "communicate_s": 1.0, "communicate_encode_s": 0.25, "encode_s": 0.125}
        folder = self.shared / "times"
        make_run(folder)
        file = folder / "summary.json"
        summary = json.loads(file.read_text()) | times
        file.write_text(json.dumps(summary))
        code, _, err = run_analysis("report", folder, "-o", self.shared / "times.html")
        self.assertEqual(code, 0, err)
        (row,) = read_csv(self.shared / "times_files" / "time.csv")
        iterations = summary["iterations"]
        self.assertAlmostEqual(float(row["encode_s"]) * iterations, 0.125 + 0.125)
        self.assertAlmostEqual(float(row["wait_s"]) * iterations, 0.5 - 0.125)

    def test_data_of_figures_are_the_folders(self):
        dense, events = self.ledgers
        files = self.shared / "page_files"
        last = {row["run"]: row for row in read_csv(files / "loss-bytes.csv")}
        self.assertEqual(int(last["dense"]["bytes_sent"]), dense.total()["bytes_sent"])
        self.assertEqual(int(last["events"]["bytes_sent"]), events.total()["bytes_sent"])
        edges = read_csv(files / "graph-2.csv")
        self.assertEqual(sum(int(edge["bytes_sent"]) for edge in edges), events.total()["bytes_sent"])
        rates = read_csv(files / "events-2.csv")  # a column an iteration: the run is short; the mean over two ranks
        fired = sum(float(rate) for row in rates for key, rate in row.items() if key != "segment")
        self.assertAlmostEqual(2 * fired, events.total()["events"])
        marks = read_csv(files / "norms-2.csv")
        records = [json.loads(line) for line in (self.folders[1] / "metrics.rank0000.jsonl").read_text().splitlines()]
        recorded = [record for record in records if record["record"] == "segments"]
        for position, name in ((0, "conv.weight"), (2, "fc.weight")):
            self.assertEqual([int(row[f"event {name}"]) for row in marks], [r["events"][position] for r in recorded])
            self.assertEqual([float(row[f"norm {name}"]) for row in marks], [r["norms"][position] for r in recorded])

    def test_edges_of_all_runs_have_one_scale(self):
        widths = {}
        for number in (1, 2):
            for edge in read_csv(self.shared / "page_files" / f"graph-{number}.csv"):
                widths[number, edge["sender"]] = float(edge["width_pt"]) / int(edge["bytes_sent"])
        self.assertEqual(len(widths), 4)
        for width in widths.values():
            self.assertAlmostEqual(width / widths[1, "0"], 1)

    def test_every_cell_names_its_column_for_narrow_screens(self):
        self.assertEqual(self.page.unnamed_cells, [])
        self.assertRegex(self.text, r"max-width: 40rem[^@]*td::before { content: attr\(data-head\)")

    def test_staleness_is_in_the_summary(self):
        """make_run: a copy of every edge had a mean age of 0.5 iterations; the metrics' oldest is 0."""
        row = self.page.row("consensus distance", "dense")
        self.assertEqual((float(row["staleness, mean"]), int(row["oldest copy"])), (0.5, 0))
        self.assertNotIn("iterations old", self.text)

    def test_messages_over_time_add_up_to_all_messages(self):
        stretches = [row for row in read_csv(self.shared / "page_files" / "messages.csv") if row["run"] == "events"]
        ends = [int(row["iteration"]) + 1 for row in stretches]
        lengths = [end - start for start, end in zip([0, *ends], ends)]
        sent = sum(float(row["messages_fraction"]) * length for row, length in zip(stretches, lengths)) / ends[-1]
        summary = json.loads((self.folders[1] / "summary.json").read_text())
        self.assertEqual(ends[-1], summary["iterations"])
        self.assertAlmostEqual(sent, summary["messages_fraction"])

    def test_every_figure_has_its_files(self):
        files = [address for address in self.page.addresses if address.startswith("page_files/")]
        self.assertGreater(len(files), 30)
        for address in files:
            self.assertGreater((self.shared / address).stat().st_size, 0, address)

    def test_page_is_sound_and_closed(self):
        self.assertEqual(self.page.faults, [])
        self.assertIsNone(re.search(r"https?:|//[a-z]+\.|<script|@import", self.text))
        self.assertTrue(all(a.startswith(("#", "page_files/", "data:image/png")) for a in self.page.addresses))
        self.assertEqual(len(self.page.identifiers), len(set(self.page.identifiers)), "two elements have the same id")
        references = re.findall(r"url\(#([^)]*)\)", self.text)
        references += [address[1:] for address in self.page.addresses if address.startswith("#")]
        self.assertEqual(set(references) - set(self.page.identifiers), set())
        self.assertNotIn("\0", self.text)

    def test_same_folders_give_the_same_figures(self):
        self.expect(0, "again.html", "report", *self.folders, "-o", self.folder / "again.html", "--no-files")
        again = (self.folder / "again.html").read_text()
        drawings = re.findall(r"<svg.*?</svg>", self.text, flags=re.DOTALL)
        self.assertEqual(drawings, re.findall(r"<svg.*?</svg>", again, flags=re.DOTALL))
        self.assertFalse((self.folder / "again_files").exists())

    def test_differences_of_configurations(self):
        row = self.page.row("key", "seed")
        self.assertEqual((row["dense"], row["events"]), ("1", "2"))
        self.assertNotIn("report.directory", self.text)


class States(FolderTest):
    def setUp(self):
        super().setUp()
        self.run = self.folder / "run"
        self.ledger = make_run(self.run)

    def report(self, code, words, *arguments):
        self.expect(code, words, "report", self.run, "-o", self.folder / "page.html", "--no-files", *arguments)
        return (self.folder / "page.html").read_text() if code == 0 else ""

    def test_in_progress_shows_the_last_records(self):
        last = {}
        still_in_progress(self.run)
        for file in self.run.glob("metrics.*.jsonl"):
            whole = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
            last[file.name] = [record for record in whole if record["record"] == "iteration"][-1]
        text = self.report(0, "page.html")
        self.assertIn("still in progress, or it was killed", text)
        row = Page(text).row("payload", "run")
        for column, name in (("all bytes", "bytes_sent"), ("puts", "puts"), ("payload", "payload_bytes")):
            self.assertEqual(int(row[column]), sum(record[name] for record in last.values()))

    def test_in_progress_without_records(self):
        still_in_progress(self.run, characters=20)
        text = self.report(0, "page.html")
        self.assertIn("no run has recorded any yet", text)
        self.assertNotIn("value", Page(text).row("payload", "run"))

    def test_diverged_by_one_rank_counts_its_last_records(self):
        break_off(self.run)
        text = self.report(0, "page.html")
        self.assertIn("rank 1 diverged at iteration 9", text)
        row = Page(text).row("payload", "run")
        self.assertEqual(int(row["all bytes"]), self.ledger.total()["bytes_sent"])
        fraction = float(Page(text).row("consensus distance", "run")["% of D-PSGD's"])
        self.assertEqual(fraction, self.ledger.total()["messages"] / (40 * len(SEGMENTS) * len(self.ledger.edges)))
        self.assertEqual(Page(text).row("consensus distance", "run")["accuracy, averaged"], "–")

    def test_copies_that_are_old_for_the_run_are_warned_of(self):
        def with_oldest(age):
            for file in self.run.glob("metrics.*.jsonl"):
                records = [json.loads(line) for line in file.read_text().splitlines()]
                last = [record for record in records if record["record"] == "iteration"][-1]
                last["staleness_max_iterations"] = age if file.name == "metrics.rank0001.jsonl" else 0
                file.write_text("".join(json.dumps(record) + "\n" for record in records))
            text = self.report(0, "page.html")
            self.assertEqual(Page(text).row("consensus distance", "run")["oldest copy"], str(age))
            return text

        self.assertNotIn("iterations old", with_oldest(4))  # of 40
        self.assertIn("run mixed copies that were up to 5 iterations old, 12 % of its run", with_oldest(5))

    def test_who_died_and_who_came_is_said(self):
        def with_losses(lost, joined):
            summary = json.loads((self.run / "summary.json").read_text())
            (self.run / "summary.json").write_text(json.dumps({**summary, "ranks_lost": lost, "ranks_joined": joined}))
            return self.report(0, "page.html")

        dead = {"rank": 1, "process": 1, "at_s": 12.0, "iterations": 3}
        came = {"rank": 1, "process": 4, "at_s": 13.0, "iterations": 9}
        self.assertNotIn("run lost", with_losses([], []))
        self.assertIn("run lost rank 1 after 12.0 s.", with_losses([dead], []))
        both = with_losses([dead, {**dead, "rank": None, "process": 5}], [came])
        self.assertIn("run lost rank 1 after 12.0 s, a spare after 12.0 s; in the places of dead ranks came", both)
        self.assertIn("process 4 (rank 1) after 13.0 s.", both)
        self.assertIn("run lost 5 ranks.", with_losses([dead] * 5, []))

    def test_a_run_that_mixes_nothing_has_no_staleness(self):
        for name in ("summary.json", "staleness.csv"):
            values = (self.run / name).read_text()
            (self.run / name).write_text(
                json.dumps({**json.loads(values), "messages_possible": 0})
                if name == "summary.json"
                else values.splitlines()[0] + "\n"
            )
        row = Page(self.report(0, "page.html")).row("consensus distance", "run")
        self.assertEqual((row["staleness, mean"], row["oldest copy"]), ("–", "–"))

    def test_one_rank_sends_nothing_and_is_drawn_without_a_warning(self):
        make_run(self.folder / "alone", ranks=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code, _, err = run_analysis("report", self.folder / "alone", "-o", self.folder / "alone.html")
        self.assertEqual((code, err), (0, ""))

    def test_without_segment_records(self):
        for file in self.run.glob("metrics.*.jsonl"):
            kept = [line for line in file.read_text().splitlines() if '"segments"' not in line]
            file.write_text("\n".join(kept) + "\n")
        self.assertIn("not recorded; train with --set report.segments=true", self.report(0, "page.html"))

    def test_missing(self):
        self.expect(3, "no run folder", "report", self.folder / "nowhere", "-o", self.folder / "page.html")
        self.expect(3, "no manifest.json", "report", self.folder, "-o", self.folder / "page.html")

    def test_files_of_two_runs(self):
        files = {"metrics.rank0000.jsonl": "a", "metrics.rank0001.jsonl": "a", "communication.csv": "b"}
        for name, digit in files.items():
            file = self.run / name
            file.write_text(f'{{"record": "run", "run_id": "hearsay-{16 * digit}"}}\n' + file.read_text())
        self.report(3, "files of two runs are mixed: communication.csv is of hearsay-b")

    def test_half_written(self):
        for name in ("manifest.json", "summary.json"):
            whole = (self.run / name).read_text()
            (self.run / name).write_text(whole[: len(whole) // 2])
            self.report(3, f"{name} is not whole JSON")
            (self.run / name).write_text(whole)

    def test_what_is_no_file_is_named_and_not_waited_for(self):
        for name in ("manifest.json", "config.yaml", "summary.json", "metrics.rank0001.jsonl", "communication.csv"):
            file = self.run / name
            kept = file.read_text()
            file.unlink()
            os.mkfifo(file)
            self.report(3, f"{name}: is a FIFO, a file was expected")
            file.unlink()
            file.write_text(kept)

    def test_only_files_that_are_there_are_looked_at(self):
        """Whatever the numbers in manifest and names say."""
        for name in ("99999999", "9" * 30, "x"):
            shutil.copy(self.run / "metrics.rank0001.jsonl", self.run / f"metrics.rank{name}.jsonl")
        self.assertEqual(set(read_metrics(self.run, 10**12).segments), {0, 1, 99999999})
        manifest = json.loads((self.run / "manifest.json").read_text())
        (self.run / "manifest.json").write_text(json.dumps({**manifest, "ranks": 900_000_000}))
        self.report(3, "a run does not have 900000000 ranks")

    def test_damaged_line_names_its_place(self):
        file = self.run / "metrics.rank0001.jsonl"
        damaged = file.read_text().splitlines()
        damaged[2] = damaged[2][:30]
        file.write_text("\n".join(damaged) + "\n")
        self.report(3, "metrics.rank0001.jsonl:3")

    def test_other_schema_version(self):
        values = json.loads((self.run / "summary.json").read_text())
        (self.run / "summary.json").write_text(json.dumps({**values, "schema_version": 2}))
        self.report(3, "schema_version 2")

    def test_usage(self):
        self.expect(2, "--sweep FOLDER", "report")
        self.expect(
            2,
            "no segment 'fc9.weight'; it has: conv.weight",
            "report",
            self.run,
            "--segments",
            "fc9.weight",
            "-o",
            self.folder / "page.html",
        )
        self.report(2, "--rank 5", "--rank", "5")
        self.expect(2, "is a folder", "report", self.run, "--no-files", "-o", self.folder)


class Reading(FolderTest):
    def test_names_tell_runs_apart_with_the_fewest_parts(self):
        self.assertEqual(names_of(["runs/a", "runs/b"]), ["a", "b"])
        self.assertEqual(names_of(["s/p4/dense/seed1", "s/p4/sparse/seed1"]), ["dense", "sparse"])
        self.assertEqual(
            names_of(["s/p4/dense/seed1", "s/p8/dense/seed2", "s/p4/dense/seed2"]),
            ["p4/dense/seed1", "p8/dense/seed2", "p4/dense/seed2"],
        )
        self.assertEqual(names_of(["runs/a", "runs/a"]), ["a", "a"])

    def test_recorded_totals_are_the_summarys(self):
        """In a run that ended well, the last records of the metrics and the summary count the same."""
        ledger = make_run(self.folder / "run", ranks=4)
        run = read_run(self.folder / "run", "run")
        self.assertEqual(run.metrics.last, ledger.total())
        self.assertEqual({name: run.totals[name] for name in COUNTERS}, ledger.total())


if __name__ == "__main__":
    unittest.main()
