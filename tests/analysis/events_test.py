"""`report.tensorboard` end to end: TensorBoard's event files of a real run hold what its metrics hold."""
import json
import math
import os
import subprocess
import unittest

from event_files import Damaged, crc32c, read_events, records
from support import FolderTest

PROGRAM = os.environ.get("HEARSAY")
RANKS = 2
CONFIG = """
seed: 3
model: {name: mlp, hidden: [8]}
data: {name: synthetic_digits, train_size: 256, test_size: 64, batch_size: 16}
topology: {graph: {name: ring}, weights: {name: uniform}}
exchange: {name: eventgrad, schedule: lockstep, mixing: {name: arrival}}
trigger: {name: adaptive, horizon: 1.0, warmup_iterations: 2}
optimizer: {name: sgd, learning_rate: 0.1, schedule: {name: cosine}}
train: {epochs: 2}
report: {every_iterations: 2, segments: true}
"""
LEARNING = {
    "training/loss": "loss",
    "training/learning_rate": "learning_rate",
    "training/epoch": "epoch",
    "communication/bytes_sent": "bytes_sent",
    "communication/staleness_max_iterations": "staleness_max_iterations",
}
EVALUATION = ("accuracy_mean_model", "loss_mean_model", "consensus_distance")


@unittest.skipUnless(PROGRAM, "skipped: no hearsay program in this build")
class EventFiles(FolderTest):
    def train(self, name, *settings):
        """The run folder. Skips where the program was built without Protobuf."""
        (self.folder / "a.yaml").write_text(CONFIG)
        launch = [os.environ.get("MPIEXEC", "mpirun"), "--oversubscribe", "--bind-to", "none", "-n", str(RANKS)]
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
        if done.returncode == 2 and "libprotobuf-dev" in done.stderr:
            self.skipTest("skipped: this hearsay was built without Protobuf")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name

    def test_they_hold_what_the_metrics_hold_and_change_nothing(self):
        run = self.train("with", "--set", "report.tensorboard=true")
        for rank in range(RANKS):
            [file] = (run / f"tensorboard/rank{rank:04d}").iterdir()
            self.assertRegex(file.name, r"^events\.out\.tfevents\.\d{10}\..+")
            first, *events = read_events(file)
            self.assertEqual(first.file_version, "brain.Event:2")
            metrics = (run / f"metrics.rank{rank:04d}.jsonl").read_text().splitlines()
            self.compare(events, [json.loads(line) for line in metrics])
        without = self.train("without")
        self.assertFalse((without / "tensorboard").exists())
        hashes = [json.loads((folder / "summary.json").read_text())["replica_hash"] for folder in (run, without)]
        self.assertEqual(hashes[0], hashes[1])
        self.damage(file)

    def compare(self, events, metrics):
        """Every number of an event is that of its record, rounded to a float, and every record has its event."""

        def same(event, tag, value):
            self.assertTrue(math.isclose(event.scalars[tag], value, rel_tol=1e-6), (tag, event.step, value))

        of = {
            kind: [record for record in metrics if record["record"] == kind]
            for kind in ("iteration", "evaluation", "segments")
        }
        learning = [event for event in events if "training/loss" in event.scalars]
        self.assertGreater(len(learning), 5)
        self.assertEqual([event.step for event in learning], [record["iteration"] for record in of["iteration"]])
        for event, record in zip(learning, of["iteration"]):
            for tag, name in LEARNING.items():
                same(event, tag, record[name])
            same(event, "communication/messages_fraction", record["messages"] / record["messages_possible"])
            after_s, expected_s = (
                event.wall_time - learning[0].wall_time,
                record["time_s"] - of["iteration"][0]["time_s"],
            )
            self.assertAlmostEqual(after_s, expected_s, places=3)
        evaluations = [event for event in events if "evaluation/accuracy_mean_model" in event.scalars]
        self.assertEqual(len(evaluations), len(of["evaluation"]))
        for event, record in zip(evaluations, of["evaluation"]):
            self.assertEqual(event.step, record["iteration"])
            for name in EVALUATION:
                same(event, f"evaluation/{name}", record[name])
        by_iteration = {record["iteration"]: record for record in of["segments"]}
        trigger = [event for event in events if any(tag.startswith("norms/") for tag in event.scalars)]
        self.assertEqual(len(trigger), len(learning))
        for event in trigger:
            norms = [value for tag, value in event.scalars.items() if tag.startswith("norms/")]
            for ours, theirs in zip(norms, by_iteration[event.step]["norms"], strict=True):
                self.assertTrue(math.isclose(ours, theirs, rel_tol=1e-6))
        self.assertEqual(len(events), len(learning) + len(evaluations) + len(trigger))

    def damage(self, file):
        whole = file.read_bytes()
        for at in (0, 9, 20, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with self.assertRaises(Damaged, msg=f"byte {at}"):
                read_events(file)
        file.write_bytes(whole[:-3])
        with self.assertRaises(Damaged):
            read_events(file)


class Reader(unittest.TestCase):
    def test_known_checksum_and_record(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(records(b""), [])
        with self.assertRaises(Damaged):
            records(b"\0" * 16)


if __name__ == "__main__":
    unittest.main()
