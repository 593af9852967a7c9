"""A Python user reads of Python: configurations of the program, messages, commands."""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import hearsay
from hearsay import _core, errors
from support import JobCase, have, needs_mpi4py, needs_program

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
EVIL, SHOWN = "o\x1b]0;X\x07\udcff", r"o\x1b]0;X\x07\xff"
PROGRAMS_WORDS = ("--set", "--resume", "--overwrite", "--output", "ParticipantOptions", "Participant::", "segment")


def plan(file=None, text="", **settings):
    """As `join` reads a configuration; needs no MPI."""
    set_of = [(f"{key}={json.dumps(value)}", f"set={key}") for key, value in settings.items()]
    return _core.Plan(file=file and str(file), text=text, set=set_of, model="Net", data="python")


def hearsay_command(*words, **options):
    command = [sys.executable, "-m", "hearsay", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


class ConfigurationTest(unittest.TestCase):
    def test_every_configuration_of_the_program_is_one_of_python_and_comes_back_the_same(self):
        read = 0
        for file in sorted(CONFIGS.glob("*/**/*.yaml")):
            text = file.read_text(encoding="utf-8")
            if not any(line.startswith("exchange:") for line in text.splitlines()):
                continue  # a sweep, or a network
            with self.subTest(file=file.name):
                yaml = plan(file).yaml
                self.assertNotRegex(yaml, "(?m)^(optimizer|simulate):|save_model|batch_size|hidden|epochs")
                self.assertEqual(plan(text=yaml).yaml, yaml)
                read += 1
        self.assertGreater(read, 25)

    def test_what_is_the_loops_own_business_is_noted_and_all_else_is_strict(self):
        own = "model: {name: mlp, hidden: [8]}\ntrain: {epochs: 3}\nreport: {save_model: false}\n"
        (note,) = plan(text=own).notes
        self.assertRegex(note, "loop's own business.*does not use model.hidden, train, report.save_model$")
        self.assertEqual(plan(text="model: {name: net}\ndata: {name: mine}").notes, [])
        with self.assertRaises(errors.ConfigError) as refused:
            plan(text=own + "tirgger: {}\nexchange: {name: eventgrad, delai: 1}\n")
        for words in ("tirgger: unknown key, did you mean 'trigger'?", "exchange.delai: unknown key, did you mean"):
            self.assertIn(words, str(refused.exception))

    def test_another_exchange_drops_what_it_does_not_know(self):
        gossip = "exchange: {name: eventgrad}\ntopology: {graph: {name: ring}}\ntrigger: {name: adaptive}\n"
        for settings in ({"exchange.name": "allreduce"}, {"exchange": {"name": "allreduce"}}):
            there = plan(text=gossip, **settings)
            self.assertEqual(there.exchange, "allreduce")
            self.assertEqual(len(there.notes), 2)
            for note, section in zip(there.notes, ("topology", "trigger")):
                self.assertRegex(note, f"{section} is left out: ")
        with self.assertRaisesRegex(errors.ConfigError, "exchange 'allreduce' does not use this section: leave it out"):
            plan(text=gossip.replace("eventgrad", "allreduce"))

    def test_what_is_set_is_named_as_it_was_set(self):
        for arguments, problem in (
            ({"set": {"trigger.horizon": -1}}, "set={'trigger.horizon': -1}: trigger.horizon: must be"),
            ({"config": {"exchange": {"name": "allreduce"}}, "trigger": lambda o: 1.0}, "trigger=…: trigger: exchange"),
            ({"set": {"report.directory": {1, 2}}}, "numbers, texts, lists and dictionaries, not {1, 2}"),
        ):
            with self.assertRaises(errors.ConfigError) as refused:
                hearsay.join(**{"config": {}, "model": [], **arguments})
            self.assertIn(problem, str(refused.exception))
            self.assertFalse([word for word in PROGRAMS_WORDS if word in str(refused.exception)], refused.exception)

    def test_an_argument_of_another_type_is_named(self):
        array = np.zeros(3, np.float32)
        for arguments, kind, words in (
            ({"iterations_per_epoch": 2.5}, TypeError, "iterations_per_epoch is a whole number, not 2.5"),
            ({"iterations_per_epoch": "3"}, TypeError, "iterations_per_epoch is a whole number, not '3'"),
            ({"iterations_per_epoch": -5}, ValueError, "iterations_per_epoch is a whole number from 1 to .*, not -5"),
            ({"iterations_per_epoch": 0}, ValueError, "iterations_per_epoch is a whole number from 1 to .*, not 0"),
            ({"iterations": 1e3}, TypeError, "iterations is a whole number, not 1000.0"),
            ({"iterations": None}, TypeError, "iterations is a whole number, not None"),
            ({"iterations": 2**63}, ValueError, f"iterations is a whole number from 0 to {2**63 - 1}, not {2**63}"),
            ({"trigger": 5}, TypeError, "trigger is a function, not 5"),
            ({"graph": [(0, 1)]}, TypeError, r"graph is a function, not \[\(0, 1\)\]"),
            ({"log": "wandb"}, TypeError, "log is a function, not 'wandb'"),
            ({"model": {1: array}}, errors.ConfigError, "the name of an array is a text, such as '1', not 1"),
        ):
            with self.assertRaisesRegex(kind, f"^.*{words}$") as refused:
                hearsay.join(**{"config": {}, "model": [array], **arguments})
            self.assertNotIn("incompatible", str(refused.exception))

    def test_a_page_of_no_runs_is_refused_in_python(self):
        with self.assertRaisesRegex((ValueError, ImportError), "hearsay.report needs"):
            hearsay.report([])


    def test_a_summary_without_a_worst_rank_is_printed(self):
        known = {"exchange": "dpsgd", "schedule": "lockstep", "ranks": 2, "iterations": 3, "messages": 6, "message": "",
                 "messages_possible": 6, "messages_fraction": 1.0, "bytes_sent": 900, "bytes_fraction": 0.5,
                 "staleness_max_iterations": None, "time_per_iteration_s": 0.001, "wait_s": 0.0}
        for accuracies, said in (((0.5, None), "50.00 % averaged$"), ((0.5, 0.25), "50.00 % averaged, 25.00 % worst")):
            numbers = {**known, **dict(zip(("accuracy_mean_model", "accuracy_rank_min"), accuracies))}
            self.assertRegex(str(hearsay.Summary(numbers, 0, {}, "run")), said)


class WordsTest(JobCase):
    def test_a_parameter_that_is_ready_has_a_name_or_a_number(self):
        self.good_job(
            """
            import sys, numpy as np, hearsay
            arrays = {name: np.zeros(3, np.float32) for name in "ab"}
            member = hearsay.join({"report": {"directory": "run"}}, arrays, iterations_per_epoch=np.int64(2))
            wrong = {1.5: TypeError, -1: ValueError, 2: ValueError, None: TypeError, "c": KeyError}
            with member.step():
                for parameter, kind in wrong.items():
                    try: member.gradient_ready(parameter)
                    except kind as error: said = str(error)
                    else: assert False, parameter
                    assert str(parameter) in said and "incompatible" not in said, said
                member.gradient_ready("b"); member.gradient_ready(np.int64(0))
            """,
            "\udcff",  # in the command that the run folder has
            ranks=None,
        )
        self.assertIn(r"\xff", json.loads((self.folder / "run/manifest.json").read_text(encoding="utf-8"))["command"])

    def test_a_second_start_says_what_to_do_in_python(self):
        """Also numbers of numpy and paths in a configuration."""
        self.good_job(
            """
            from pathlib import Path
            import numpy as np, hearsay
            assert (hearsay.rank(), hearsay.size()) == (0, 1)
            def join(**report):
                return hearsay.join({"exchange": {"name": "eventgrad"}, "trigger": {"horizon": np.float64(0.5)},
                                     "report": {"directory": Path("run"), **report}}, {"x": np.zeros(3, np.float32)})
            member = join()
            for again in ("being written by", "already holds a run"):
                try:
                    join()
                except hearsay.errors.ConfigError as error:
                    said = str(error)
                assert again in said, said
                assert not any(word in said for word in ("--set", "--resume", "--overwrite", "--output")), said
                if not member._left: member.leave()
            assert "report: {overwrite: true}" in said and "load_state_dict" in said and "directory" in said, said
            join(overwrite=True)
            """,
            ranks=None,
        )

    def test_rank_and_size_before_join(self):
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            before = hearsay.rank(), hearsay.size()
            member = hearsay.join({"report": {"directory": "run"}}, {"x": np.zeros(3, np.float32)})
            assert before == (member.rank, member.ranks)
            print(json.dumps({"before": before}))
            """,
            ranks=3,
        )
        self.assertEqual(sorted(said["before"] for said in job.said), [[0, 3], [1, 3], [2, 3]])

    @needs_mpi4py
    def test_rank_and_size_under_mpi4py(self):
        self.good_job(
            """
            from mpi4py import MPI
            import hearsay
            assert (hearsay.rank(), hearsay.size()) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
            assert hearsay.size() == 2
            """
        )

    def test_any_metric_and_shares_of_the_test_set(self):
        """Five examples, of which ranks have 2, 2, 1 and 0: their mean is that of all, to the bit."""
        job = self.good_job(
            """
            import json
            import numpy as np, hearsay
            member = hearsay.join({"exchange": {"name": "dpsgd"}, "report": {"directory": "run"}},
                                  {"x": np.zeros(1, np.float32)})
            x = member.parameters["x"]
            x[0] = 4 * member.rank
            examples = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
            mine = examples[2 * member.rank : 2 * member.rank + 2]
            def all_of(those): return {"loss": float(x[0]), "bleu": float((those + x[0]).sum()) / max(1, len(those)),
                                       "rmse": float(x[0])}
            whole = member.evaluate(lambda: all_of(examples))
            shared = member.evaluate(lambda: (all_of(mine), len(mine)), lower_is_better=["bleu"])
            for wrong in (lambda: {}, lambda: 3, lambda: ({"bleu": 1}, -1)):
                try: member.evaluate(wrong)
                except TypeError as error: assert "names with numbers" in str(error) or "examples" in str(error), error
                else: assert False
            if member.rank > 1: score = lambda: {"bleu": 1.0}
            else: score = lambda: {"blue": 1.0}
            try: member.evaluate(score)
            except hearsay.errors.ConfigError as error: assert "same names" in str(error), error
            else: assert False
            try: member.evaluate(lambda: ({"bleu": 1.0}, 0))
            except hearsay.errors.ConfigError as error: assert "no example" in str(error), error
            else: assert False
            member.evaluate(lambda: (all_of(mine), len(mine)))
            member.summary()
            print(json.dumps({"whole": whole, "shared": shared}))
            """,
            ranks=4,
        )
        for said in job.said:
            whole, shared = said["whole"], said["shared"]
            for name in ("bleu_mean_model", "loss_mean_model", "rmse_mean_model"):
                self.assertEqual(whole[name], shared[name], name)
            self.assertEqual(whole["bleu_mean_model"], 31 / 5 + 6)
            self.assertEqual((whole["bleu_rank_worst"], whole["bleu_rank_mean"]), (31 / 5, 31 / 5 + 6))
            self.assertEqual(whole["rmse_rank_worst"], 12, "of which less is better")
            self.assertEqual(shared["rmse_rank_worst"], 8, "of those that have examples")
            self.assertEqual(shared["bleu_rank_worst"], 24, "less of it is better now")
        summary = self.summary()
        self.assertEqual([metric["name"] for metric in summary["metrics"]], ["bleu", "rmse", "loss"])
        self.assertEqual([metric["better"] for metric in summary["metrics"]], ["higher", "lower", "lower"])
        self.assertEqual(summary["metrics"][0]["mean_model"], 31 / 5 + 6)
        self.assertEqual((summary["loss_mean_model"], summary["accuracy_mean_model"]), (6, None))
        lines = (self.folder / "run/metrics.rank0000.jsonl").read_text(encoding="utf-8").splitlines()
        (last,) = [record for record in map(json.loads, lines) if record["record"] == "evaluation"][-1:]
        self.assertEqual([metric["name"] for metric in last["metrics"]], ["bleu", "rmse", "loss"])


class CommandsTest(JobCase):
    def test_commands_work_without_the_program(self):
        self.good_job(
            """
            import numpy as np, hearsay
            for name in ("dpsgd", "allreduce"):
                member = hearsay.join({"exchange": {"name": name}, "report": {"directory": name}},
                                      {"x": np.zeros(9, np.float32)})
                for k in range(60):
                    with member.step() as step: step.loss = 1 / (k + 1)
                member.leave()
            """
        )
        environment = {**os.environ, "PATH": "/nowhere"}
        for words, expected in (
            (["--help"], "launch .*list .*describe .*compare .*report .*watch .*version"),
            (["list"], r"graph \(topology.graph.name\).*exchange \(exchange.name\).*a Python loop's own"),
            (["list", "triggers"], "^trigger .*adaptive"),
            (["describe", "adaptive", "report"], r"horizon: .*report \(section\).*directory: runs/EXCHANGE-MODEL\n"),
            (["compare", "dpsgd", "allreduce"], "dpsgd .*allreduce "),
            (["watch", "--once", "dpsgd"], "finished"),
            (["version"], f"^hearsay +{hearsay.__version__} .*MPI +.*Python +{sys.version_info[0]}.*compiler"),
        ):
            done = hearsay_command(*words, cwd=self.folder, env=environment)
            self.assertEqual(done.returncode, 0, done)
            self.assertRegex(done.stdout, f"(?s){expected}")
        runs = json.loads(hearsay_command("compare", "--json", "dpsgd", "allreduce", cwd=self.folder).stdout)
        self.assertEqual([run["run"] for run in runs["runs"]], ["dpsgd", "allreduce"])

    def test_commands_say_what_is_wrong(self):
        for words, code, expected in (
            ([], 2, "COMMAND"),
            (["list", "trigers"], 2, "did you mean 'trigger'"),
            (["list", "model"], 2, "a Python loop's own"),
            (["describe", "adaptiv"], 2, "did you mean 'adaptive'"),
            (["compare", "nowhere"], 3, "not a run folder"),
            (["watch", "--once", "nowhere"], 3, "nowhere"),
            (["watch", "--every", "0", "nowhere"], 2, "0.1 seconds"),
            (["watch", "--every", "inf", "nowhere"], 2, "a day (86400) at most"),
            (["watch", "--every", "1e300", "nowhere"], 2, "a day (86400) at most"),
            (["watch", "--every", "nan", "nowhere"], 2, "a day (86400) at most"),
            (["list", "r\udcff"], 2, r"'r\xff'"),
            (["describe", "r\udcff"], 2, r"'r\xff'"),
            (["describe", "--markdown", "r\udcff"], 2, r"'r\xff'"),
            (["compare", EVIL], 3, SHOWN),
            (["watch", "--once", EVIL], 3, SHOWN),
            (["report", EVIL], 3, SHOWN),
            (["list", "trigger", EVIL], 2, SHOWN),
            (["watch", "--every", EVIL, "nowhere"], 2, r"o\x1b]0;X\x07"),
            (["report", "nowhere"], 3, "nowhere"),
            (["launch", "-n", "2"], 2, "-n P PROGRAM"),
        ):
            done = hearsay_command(*words, cwd=self.folder)
            self.assertEqual(done.returncode, code, done)
            self.assertIn(expected, done.stderr)
            self.assertFalse("Traceback" in done.stderr or "\x1b" in done.stderr, done)
        for words, name in ((["list"], "hearsay list"), (["list", "--help"], "hearsay list"), (["--help"], "hearsay"),
                            (["launch", "--help"], "hearsay launch")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                command = [sys.executable, "-m", "hearsay", *words]
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 3, done)
            self.assertEqual(done.stderr, f"{name}: the output cannot be written: No space left on device\n")

    @unittest.skipUnless(all(map(have, ("pandas", "matplotlib", "yaml"))), "pandas, matplotlib or yaml is missing")
    def test_a_page_whose_name_is_no_utf_8(self):
        self.good_job(
            """
            import numpy as np, hearsay
            hearsay.join({"report": {"directory": "r\x1b"}}, {"x": np.zeros(9, np.float32)}).leave()
            """,
            ranks=None,
        )
        (self.folder / "r\x1b").rename(self.folder / "r\x1b\udcff")
        done = hearsay_command("report", "r\x1b\udcff", "-o", "p\udcff.html", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout.splitlines()[-1], r"p\xff.html")
        self.assertIn(r"Hearsay: r\x1b\xff", (self.folder / "p\udcff.html").read_text(encoding="utf-8"))

    def test_launch_starts_ranks_and_hands_on_their_exit_code(self):
        program = self.folder / "program.py"
        line = "print(f'{hearsay.rank()} {hearsay.size()}\\n', end='')"
        program.write_text(f"import hearsay, sys\n{line}\nsys.exit(hearsay.rank() * 7)\n")
        done = hearsay_command("launch", "-n", 2, program)
        self.assertEqual(done.returncode, 7, done)
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "0 2", "1 2"])

    @needs_program
    def test_the_program_says_the_same_version_and_reads_what_python_has_written(self):
        program = os.environ["HEARSAY"]
        ours = hearsay_command("version").stdout.splitlines()[0]
        self.assertEqual(ours, self.command(program, "--version").out.splitlines()[0])
        (self.folder / "config.yaml").write_text(plan(text="exchange: {name: eventgrad}").yaml, encoding="utf-8")
        refused = self.command(program, "train", "config.yaml", "--dry-run", "-n", "2")
        self.assertEqual(refused.code, 2)
        self.assertRegex(refused.err, "model.name: unknown 'Net'.*a Python loop.*say `model`, `data`, `optimizer`")
        more = ["--set", "model={name: mlp}", "--set", "data={name: synthetic_digits}"]
        self.assertEqual(self.command(program, "train", "config.yaml", "--dry-run", "-n", "2", *more).code, 0)
        for file in ("digits/eventgrad.yaml", "text/gossip-outer.yaml"):
            dumped = self.command(program, "train", CONFIGS / file, "--dump-config").out
            self.assertEqual(len(plan(text=dumped).notes), 1)


if __name__ == "__main__":
    unittest.main()
