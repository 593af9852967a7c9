"""analysis/hearsay as a process of its own: help, usage, a Python without packages, a real run."""
import os
import re
import statistics
import subprocess
import sys
import unittest

from support import ANALYSIS, ROOT, FolderTest, Page, run_process

from hearsay_analysis.cli import COMMANDS, parser
from hearsay_analysis.runs.metrics import read_metrics

PROGRAM = os.environ.get("HEARSAY")
CONFIG = """
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 256, test_size: 64, batch_size: 16}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}
trigger: {name: adaptive, horizon: 1.0, warmup_iterations: 2}
train: {epochs: 2}
report: {every_iterations: 2, segments: true, trace: true}
"""


class Program(FolderTest):
    def test_help_lists_every_subcommand_in_one_line_each(self):
        code, out, err = run_process(sys.executable, ANALYSIS / "hearsay", "--help")
        self.assertEqual((code, err), (0, ""))
        for name, command in COMMANDS.items():
            self.assertRegex(out, rf"(?m)^    {name} +{re.escape(command.__doc__.splitlines()[0][:-1])}$")

    def test_help_of_every_subcommand_has_an_example_that_it_takes(self):
        for name in COMMANDS:
            code, out, err = run_process(sys.executable, ANALYSIS / "hearsay", name, "--help")
            self.assertEqual((code, err), (0, ""), name)
            example = re.search(rf"^ +(?:\w+=\w+ )?analysis/hearsay ({name} [^[\n#;\\]*)", out, flags=re.MULTILINE)
            self.assertTrue(example, name)
            self.assertEqual(parser().parse_args(example[1].split()).command, name)

    def test_wrong_usage(self):
        for name in [*COMMANDS, "no-such-command"]:
            code, out, err = run_process(sys.executable, ANALYSIS / "hearsay", name, "--no-such-option")
            self.assertEqual((code, out), (2, ""), name)
            self.assertIn("usage:", err)

    def test_every_command_that_a_document_or_a_configuration_names_exists(self):
        files = [ROOT / "README.md"]
        files += [*ROOT.glob("docs/**/*.md"), *ROOT.glob("configs/**/*.yaml"), *ROOT.glob("scripts/*")]
        named = [
            (file.name, word)
            for file in files
            if file.is_file()
            for word in re.findall(r"analysis/hearsay ([\w./-]+)", file.read_text(encoding="utf-8"))
        ]
        self.assertGreater(len(named), 5)
        self.assertEqual([(file, word) for file, word in named if word not in COMMANDS], [])

    def test_a_python_without_packages_finds_one_or_says_what_is_missing(self):
        """-S -E: this Python, but without any installed package."""
        need = "import sys; sys.path.insert(0, sys.argv.pop()); from hearsay_analysis import cli, interpreter; "
        need += "interpreter.DISTRIBUTION = '/nowhere'; sys.exit(cli.main(['sweep', 's.yaml']))"
        code, _, err = run_process(sys.executable, "-S", "-E", "-c", need, ANALYSIS)
        self.assertEqual(code, 3, err)
        self.assertIn("apt-get install python3-yaml", err)



@unittest.skipUnless(PROGRAM, "skipped: no hearsay program in this build")
class RealRuns(FolderTest):
    def train(self, name, *settings):
        """The run folder of two ranks."""
        (self.folder / "a.yaml").write_text(CONFIG)
        launch = [os.environ.get("MPIEXEC", "mpirun"), "--oversubscribe", "--bind-to", "none", "-n", "2"]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(
            [*launch, PROGRAM, "train", "a.yaml", "--output", name, "--progress", "off", *settings],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name

    def test_a_recorded_loss_is_the_mean_since_the_last_record(self):
        """In lockstep both runs are the same; 16 iterations, of which the second records 3, 6, …, 15 and the last."""
        losses = {}
        for every in (1, 3):
            table = read_metrics(self.train(f"every{every}", "--set", f"report.every_iterations={every}"), 2).iterations
            losses[every] = dict(zip(table["iteration"] + 1, table["loss"]))
        ends = list(losses[3])
        self.assertEqual(ends, [3, 6, 9, 12, 15, 16])
        for before, end in zip([0, *ends], ends):
            mean = statistics.mean(losses[1][k] for k in range(before + 1, end + 1))
            self.assertAlmostEqual(losses[3][end], mean, places=6)

    def test_page_and_trace(self):
        self.train("run")
        self.expect(0, "page.html", "report", self.folder / "run", "-o", self.folder / "page.html")
        text = (self.folder / "page.html").read_text()
        self.assertEqual(Page(text).faults, [])
        # Where this holds, the page was read from fields that the program really writes.
        row = Page(text).row("payload", "run")
        self.assertEqual(
            sum(int(row[name]) for name in ("payload", "index", "header", "control")), int(row["all bytes"])
        )
        self.assertGreater(int(row["payload"]), 0)
        said = self.expect(0, "of 32 packets arrive before", "trace", self.folder / "run")
        self.assertIn("clocks ahead of rank 0's: rank 1", said)
        self.assertEqual(sum(text.count(f"not drawn, {reason}") for reason in ("not recorded", "no run has")), 0)


if __name__ == "__main__":
    unittest.main()
