"""Small run folders after docs/guide/report-format.md, counted from random events: what the tests of analysis/ read."""
import json
import random

SEGMENTS = [("conv.weight", [2, 3], 6), ("conv.bias", [2], 2), ("fc.weight", [4, 2], 8)]
COUNTERS = [
    "events",
    "messages",
    "deferred",
    "packets",
    "puts",
    "bytes_sent",
    "payload_bytes",
    "index_bytes",
    "header_bytes",
    "control_bytes",
]
PHASES = [
    "compute_s",
    "trigger_s",
    "select_s",
    "encode_s",
    "wait_s",
    "mix_s",
    "optimizer_s",
    "evaluate_s",
    "communicate_s",
    "communicate_encode_s",
    "communicate_hidden_s",
]


class Ledger:
    """Counts of one run on a ring; every rank has two neighbours, or one where there are two ranks."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.edges = {
            (i, j): dict.fromkeys(COUNTERS, 0)
            for i in range(ranks)
            for j in sorted({(i - 1) % ranks, (i + 1) % ranks} - {i})
        }
        self.events = [0] * ranks

    def iteration(self, rank, events):
        self.events[rank] += sum(events)
        for (sender, _), edge in self.edges.items():
            if sender == rank:
                payload = 4 * sum(length for (_, _, length), fired in zip(SEGMENTS, events) if fired)
                edge["messages"] += sum(events)
                edge["packets"] += 1
                edge["puts"] += 2
                edge["payload_bytes"] += payload
                edge["index_bytes"] += 3 * sum(events)
                edge["header_bytes"] += 32 + 8 * sum(events)
                edge["control_bytes"] += 16
                edge["bytes_sent"] += payload + 3 * sum(events) + 32 + 8 * sum(events) + 16

    def of_rank(self, rank):
        own = [edge for (sender, _), edge in self.edges.items() if sender == rank]
        return {**{name: sum(edge[name] for edge in own) for name in COUNTERS}, "events": self.events[rank]}

    def total(self):
        ranks = [self.of_rank(rank) for rank in range(self.ranks)]
        return {name: sum(counts[name] for counts in ranks) for name in COUNTERS}


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def manifest(ranks):
    offset, segments = 0, []
    for name, shape, length in SEGMENTS:
        segments.append({"name": name, "shape": shape, "offset": offset, "length": length})
        offset += length
    return {
        "schema_version": 1,
        "command": 'hearsay train a.yaml --set data.partition={"name": "iid"}',
        "started_utc": "2025-01-31T12:00:00Z",
        "ranks": ranks,
        "hosts": ["here"] * ranks,
        "versions": {"hearsay": "0.1.0", "mpi": "Open MPI\0"},
        "seed": 7,
        "model": "tiny",
        "dataset": "drawn",
        "exchange": "eventgrad",
        "parameters": offset,
        "segments": segments,
        "topology": {"graph": "ring", "directed_edges": len(Ledger(ranks).edges)},
    }


def summary(ledger, iterations, status, accuracy):
    counts = ledger.total()
    possible = len(SEGMENTS) * len(ledger.edges) * iterations
    return {
        "schema_version": 1,
        "status": status,
        "message": "" if status == "finished" else "the loss is not a number",
        "model": "tiny",
        "dataset": "drawn",
        "exchange": "eventgrad",
        "schedule": "lockstep",
        "ranks": ledger.ranks,
        "iterations": iterations,
        "epochs": 2.0,
        "parameters": 16,
        "segments": len(SEGMENTS),
        "edges": len(ledger.edges),
        "spectral_gap": 0.5,
        "accuracy_mean_model": accuracy,
        "accuracy_rank_min": accuracy - 0.01,
        "accuracy_rank_mean": accuracy,
        "loss_mean_model": 0.25,
        "consensus_distance": 0.125,
        "messages_possible": possible,
        "dense_payload_bytes": 64 * len(ledger.edges) * iterations,
        "messages_fraction": counts["messages"] / possible if possible else 0.0,
        "bytes_fraction": 0.5,
        **counts,
        "wall_time_s": 2.5,
        "time_per_iteration_s": 0.05,
        **dict.fromkeys(PHASES, 0.25),
        "shares": {},
        "replica_hash": ["0123456789abcdef"] * ledger.ranks,
    }


def write_tables(folder, ledger):
    names = [name for name in COUNTERS if name != "events"]
    rows = [[i, j, 0.5, *(edge[name] for name in names)] for (i, j), edge in ledger.edges.items()]
    write_csv(folder / "communication.csv", ["sender", "receiver", "weight", *names], rows)
    bins = [f"samples_{age}" for age in range(63)] + ["samples_63_or_more"]
    write_csv(
        folder / "staleness.csv",
        ["rank", "neighbour", "samples", "mean_iterations", "maximum_iterations", *bins],
        [[j, i, 10, 0.5, 1, 5, 5, *([0] * 62)] for i, j in ledger.edges],
    )


def write_csv(path, heads, rows):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [heads, *rows]))


def make_run(folder, ranks=2, iterations=40, every=5, seed=1, rate=0.5, accuracy=0.9, status="finished", segments=True):
    """Writes a whole run folder and returns its Ledger."""
    folder.mkdir(parents=True)
    dice, ledger = random.Random(seed), Ledger(ranks)
    records = [[] for _ in range(ranks)]
    for k in range(iterations):
        for rank in range(ranks):
            events = [int(dice.random() < rate) for _ in SEGMENTS]
            ledger.iteration(rank, events)
            if segments:
                norms = [1 + 0.01 * k + 0.1 * number for number in range(len(SEGMENTS))]
                records[rank].append(
                    {
                        "record": "segments",
                        "rank": rank,
                        "iteration": k,
                        "norms": norms,
                        "thresholds": [None if k == 0 else 0.01] * len(SEGMENTS),
                        "events": events,
                    }
                )
            if k % every == every - 1 or k == iterations - 1:
                records[rank].append(
                    {
                        "record": "iteration",
                        "rank": rank,
                        "iteration": k,
                        "epoch": 2 * (k + 1) / iterations,
                        "time_s": 0.05 * (k + 1),
                        "loss": 2.0 / (k + 1),
                        **ledger.of_rank(rank),
                        "staleness_max_iterations": 0,
                    }
                )
    for done in (iterations // 2, iterations):
        records[0].append(
            {
                "record": "evaluation",
                "rank": 0,
                "iteration": done,
                "epoch": 2 * done / iterations,
                "time_s": 0.05 * done,
                "accuracy_mean_model": accuracy if done == iterations else accuracy - 0.1,
                "loss_mean_model": 0.25,
                "consensus_distance": 0.125,
            }
        )
    for rank in range(ranks):
        (folder / f"metrics.rank{rank:04d}.jsonl").write_text(lines(records[rank]))
    (folder / "manifest.json").write_text(json.dumps(manifest(ranks)))
    (folder / "config.yaml").write_text(
        f"seed: {seed}\nexchange: {{name: eventgrad, schedule: lockstep}}\n" f"report: {{directory: {folder}}}\n"
    )
    (folder / "summary.json").write_text(json.dumps(summary(ledger, iterations, status, accuracy)))
    write_tables(folder, ledger)
    return ledger


def judge_by(folder, metric, value):
    """Makes a run one whose task has this metric: {name, better, fraction}; its accuracies go."""
    def judged(record, **more):
        record["accuracy_mean_model"] = None
        record["metrics"] = [{**metric, "mean_model": value, **more}]

    summary = json.loads((folder / "summary.json").read_text())
    judged(summary, rank_worst=value * 1.25, rank_mean=value)
    summary.update(accuracy_rank_min=None, accuracy_rank_mean=None)
    (folder / "summary.json").write_text(json.dumps(summary))
    file = folder / "metrics.rank0000.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    for record in records:
        if record["record"] == "evaluation":
            judged(record)
    file.write_text(lines(records))


def break_off(folder):
    """What a run leaves that one rank broke off: no accuracies, no counts."""
    values = json.loads((folder / "summary.json").read_text())
    missing = {name: None for name in values if name.startswith(("accuracy", "loss", "consensus"))}
    values.update(
        missing,
        status="diverged",
        iterations=values["iterations"] + 3,  # the last of them were not recorded
        message="rank 1 diverged at iteration 9",
        replica_hash=[],
        **dict.fromkeys(COUNTERS, 0),
    )
    (folder / "summary.json").write_text(json.dumps(values))
    (folder / "communication.csv").unlink()
    (folder / "staleness.csv").unlink()


def still_in_progress(folder, characters=2000):
    """What a run that goes on has so far: the last line of every rank is half written."""
    for name in ("summary.json", "communication.csv", "staleness.csv"):
        (folder / name).unlink()
    for file in folder.glob("metrics.*.jsonl"):
        file.write_text(file.read_text()[:characters])


def make_sweep(folder, points):
    """points: [(method, seed, accuracy, event rate)]."""
    for method, seed, accuracy, rate in points:
        run = folder / method.replace(" ", "-") / f"seed{seed}"
        make_run(run, seed=seed, accuracy=accuracy, rate=rate, segments=False)
        (run / "point.json").write_text(
            json.dumps({"method": method, "ranks": 2, "seed": seed, "axis": {"data": "iid"}})
        )
