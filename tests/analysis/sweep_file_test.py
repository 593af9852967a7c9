"""A sweep file is read strictly: every mistake is named with its line, all at once, and nothing ends in a traceback."""
import random
import unittest

from support import FolderTest

from hearsay_analysis.errors import AnalysisError
from hearsay_analysis.sweeps.grid import points
from hearsay_analysis.sweeps.sweep_file import read_overrides, read_sweep_file

GOOD = """output: here
set: {train.epochs: 2, model: {name: mlp, hidden: [8]}}
ranks: [2, 4]
seeds: [1, 2]
axes: {data.partition.name: [iid, shards], optimizer.learning_rate: [0.1, 0.2]}
methods:
  D-PSGD: {base: dpsgd.yaml}
  "periodic, H = 4": {base: eventgrad.yaml, set: {trigger.period: 4}, ranks: [4]}
"""


class SweepFile(FolderTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "s.yaml"
        for name in ("dpsgd.yaml", "eventgrad.yaml"):
            (self.folder / name).write_text("seed: 1\n")

    def read(self, text):
        self.file.write_text(text)
        return read_sweep_file(self.file)

    def refuse(self, text, *places_and_words):
        """Reading `text` must name every (line:column, words), and nothing else."""
        self.file.write_text(text)
        said = self.expect(2, "", "sweep", self.file, "--list")
        for place, words in places_and_words:
            self.assertRegex(said, rf"(?m)s\.yaml:{place}: .*{words}")
        self.assertEqual(said.count("s.yaml:"), len(places_and_words), said)

    def test_runs_are_every_combination_once_and_one_seed_comes_first(self):
        found = points(self.read(GOOD))
        self.assertEqual(len(found), 2 * 4 * (1 + 2))  # seeds × axes × (P = 2: one method, P = 4: both)
        self.assertEqual(len({point.folder for point in found}), len(found))
        self.assertEqual([point.seed for point in found], sorted(point.seed for point in found))
        last = found[-1]
        self.assertEqual(str(last.folder), "here/p4/shards/0.2/periodic-h-4/seed2")
        self.assertEqual(last.axis, {"data.partition.name": "shards", "optimizer.learning_rate": 0.2})
        self.assertEqual((last.settings["trigger.period"], last.settings["seed"]), (4, 2))
        self.assertEqual(last.settings["model"], {"name": "mlp", "hidden": [8]})
        self.assertEqual(last.config, (self.folder / "eventgrad.yaml").resolve())

    def test_numbers_are_what_the_program_takes_for_numbers(self):
        plan = self.read(GOOD.replace("[0.1, 0.2]", "[1e-3, 2.5E+4, .5e1, 0.2]").replace("epochs: 2", "epochs: 1e"))
        self.assertEqual(plan.axes["optimizer.learning_rate"], [0.001, 25000.0, 5.0, 0.2])
        self.assertEqual(plan.settings["train.epochs"], "1e")
        self.assertEqual(read_overrides(["a.b=1e-3"]), {"a.b": 0.001})

    def test_stronger_settings_win_and_the_output_goes_elsewhere(self):
        point = points(self.read(GOOD), self.folder / "there", {"train.epochs": 9, "trigger.period": 1})[-1]
        self.assertEqual((point.settings["train.epochs"], point.settings["trigger.period"]), (9, 1))
        self.assertEqual(point.folder.parts[-5:], ("there", "p4", "shards", "0.2", "periodic-h-4", "seed2")[-5:])

    def test_unknown_keys_and_the_nearest_known_one(self):
        self.refuse(
            GOOD.replace("seeds:", "seads:").replace("base: dpsgd", "bas: dpsgd").replace("set: {train", "zzz: {train"),
            ("2:1", "unknown key 'zzz', known are output, set, ranks"),
            ("4:1", "unknown key 'seads', did you mean 'seeds'"),
            ("7:12", "unknown key 'bas', did you mean 'base'"),
            ("7:11", "D-PSGD: key 'base' is missing"),
        )

    def test_wrong_types_are_all_named_at_once(self):
        self.refuse(
            "output: [a]\nset: 3\nranks: 4\nseeds: [1, x, true, 1, -2]\naxes: {a.b: 5}\nmethods:\n  m: dpsgd.yaml\n",
            ("1:9", "output: expected a text"),
            ("2:6", "set: expected KEY: VALUE pairs, got '3'"),
            ("3:8", r"ranks: expected a list like \[1, 2\], got '4'"),
            ("4:12", "expected an integer from 0 up, got 'x'"),
            ("4:15", "expected an integer from 0 up, got 'true'"),
            ("4:21", "1 stands there twice"),
            ("4:24", "expected an integer from 0 up, got '-2'"),
            ("5:13", "axes: a.b: expected a list"),
            ("7:6", "methods: m: expected KEY: VALUE pairs"),
        )

    def test_base_files_must_be_there(self):
        self.refuse(
            GOOD.replace("dpsgd.yaml", "dpsg.yaml").replace("eventgrad.yaml", "sub/far-away.yaml"),
            ("7:18", "no file dpsg.yaml; did you mean dpsgd.yaml"),
            ("8:29", "no file sub/far-away.yaml; paths are relative to the sweep file"),
        )

    def test_a_method_that_would_overrule_an_axis(self):
        for setting in ("optimizer.learning_rate: 4", "optimizer: {name: sgd}"):
            self.refuse(
                GOOD.replace("trigger.period: 4", setting),
                ("8:51", f"{setting.partition(':')[0]} is stronger than the axis optimizer.learning_rate"),
            )
        self.read(GOOD.replace("trigger.period: 4", "optimizer.learning_rates: 4"))

    def test_what_would_share_a_folder_or_is_the_sweeps_own(self):
        self.refuse(
            GOOD.replace("[0.1, 0.2]", "[1, -1]").replace('"periodic, H = 4"', "d_psgd"),
            ("5:73", "-1 and 1 would share the run folders '1'"),
            ("8:3", "'d_psgd' and 'D-PSGD' would share"),
        )
        self.refuse(
            GOOD.replace("train.epochs", "seed").replace("trigger.period", "report.directory"),
            ("2:7", "seed is the sweep's own: use `seeds`"),
            ("8:51", "report.directory is the sweep's own: use `output`"),
        )
        self.refuse(GOOD.replace("ranks: [2, 4]", "output: there"), ("3:1", "'output' stands there twice"))

    def test_values_that_no_configuration_can_have(self):
        self.refuse(GOOD.replace("train.epochs: 2", "train.epochs: 2020-01-01"), ("2:21", "expected numbers, texts"))
        self.refuse(GOOD.replace("train.epochs: 2", "train.epochs: !!python/name:os 1"), ("2:21", "constructor"))
        self.refuse(GOOD.replace("train.epochs: 2", "train epochs: 2"), ("2:7", "a key like train.epochs"))

    def test_no_sweep_file_at_all(self):
        self.expect(2, "is empty", "sweep", self.written(""), "--list")
        self.refuse("a: [1\nb: 2\n", ("2:2", "no YAML"))
        self.refuse("- 1\n", ("1:1", "the sweep: expected KEY: VALUE pairs, got a list"))
        self.expect(2, "methods: there is none", "sweep", self.written("output: here\nmethods: {}\n"), "--list")
        self.expect(3, "cannot be read", "sweep", self.folder / "nowhere.yaml", "--list")
        self.file.write_bytes(b"output: \xff\xfe\n")
        self.expect(2, "no YAML text", "sweep", self.file, "--list")

    def written(self, text):
        self.file.write_text(text)
        return self.file

    def test_settings_of_the_command_line(self):
        self.file.write_text(GOOD)
        for setting, words in (
            ("train.iterations", "--set train.iterations: needs KEY=VALUE"),
            ("seed=3", "own: use `seeds`"),
            ("a.b=[1", "'[1' is no YAML value"),
        ):
            self.expect(2, words, "sweep", self.file, "--list", "--set", setting)

    def test_damaged_files_are_refused_or_read_but_never_end_in_a_traceback(self):
        dice = random.Random(5)
        refused = 0
        for _ in range(600):
            text = list(GOOD)
            for _ in range(dice.randrange(1, 5)):
                place = dice.randrange(len(text))
                text[place : place + dice.randrange(3)] = dice.choice("{}[]:,&*!|>'\"\t\n -#%@`x1")
            try:
                points(self.read("".join(text)))
            except AnalysisError:
                refused += 1
        self.assertGreater(refused, 300)


if __name__ == "__main__":
    unittest.main()
