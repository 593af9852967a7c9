"""Run folders: finished, broken off, still in progress. The format: docs/guide/report-format.md."""
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from hearsay_analysis.errors import DataError
from hearsay_analysis.runs.json_files import read_object, read_text
from hearsay_analysis.runs.metrics import COUNTERS, Metrics, read_metrics
from hearsay_analysis.runs.quality import ACCURACY, Quality, metric_of, quality_of, value_in
from hearsay_analysis.text import shown

SCHEMA_VERSION = 1
MOST_RANKS = 1_000_000
IN_PROGRESS = "in progress or killed"


@dataclass(frozen=True)
class Run:
    """One run folder. summary is None while the run goes on, or if it was killed."""

    folder: Path
    name: str
    manifest: dict
    config: dict
    summary: dict | None
    metrics: Metrics

    @property
    def status(self):
        return self.summary["status"] if self.summary else IN_PROGRESS

    @property
    def ranks(self):
        return self.manifest["ranks"]

    @property
    def segment_names(self):
        return [segment["name"] for segment in self.manifest["segments"]]

    @property
    def counted_by_summary(self):
        """False for a run that was broken off by one rank alone: its summary counts 0, its metrics hold the counts."""
        return bool(self.summary and self.summary["replica_hash"])

    @property
    def totals(self):
        """Counters over all ranks, by name: the summary's, else the last recorded ones."""
        return {name: self.summary[name] for name in COUNTERS} if self.counted_by_summary else self.metrics.last

    @property
    def iterations(self):
        if self.summary:
            return self.summary["iterations"]
        recorded = self.metrics.iterations["iteration"]
        return 0 if recorded.empty else int(recorded.iloc[-1]) + 1

    @property
    def counted_iterations(self):
        """The iterations that the totals are of: those of the last records where a run broke off."""
        recorded = self.metrics.iterations["iteration"]
        return self.iterations if self.counted_by_summary or recorded.empty else int(recorded.iloc[-1]) + 1

    @property
    def messages_per_iteration(self):
        """What D-PSGD sends at every iteration: segments × directed edges; 0 on the global path."""
        if self.summary and self.summary["messages_possible"] == 0:
            return 0
        return len(self.manifest["segments"]) * self.manifest.get("topology", {}).get("directed_edges", 0)

    @property
    def oldest_copy(self):
        """The age in iterations of the oldest copy that was mixed; None on the global path, where nothing is mixed."""
        return self.metrics.oldest if self.messages_per_iteration else None

    @property
    def mean_staleness(self):
        """The mean age in iterations of the copies that were mixed; None while staleness.csv has none."""
        table = self.table("staleness.csv")
        if table is None or table.empty or not table["samples"].sum():
            return None
        return float((table["mean_iterations"] * table["samples"]).sum() / table["samples"].sum())

    def number(self, key):
        """A number of the summary, or of the last evaluation while there is no summary; None where there is none."""
        if self.summary:
            return self.summary.get(key)
        evaluations = self.metrics.evaluations
        if evaluations.empty or key not in evaluations:
            return None
        value = evaluations[key].iloc[-1]
        return None if pd.isna(value) else float(value)

    @property
    def quality(self):
        """What the run is judged by, and what it reached: the summary's, else the last evaluation's."""
        if self.summary:
            return quality_of(self.summary)
        evaluations = self.metrics.evaluations
        if evaluations.empty:
            return Quality(ACCURACY)
        last = evaluations.iloc[-1]
        metric = metric_of(last)
        value = value_in(last, metric)
        return Quality(metric, None if pd.isna(value) else float(value))

    def table(self, file_name):
        """A CSV file of the run, or None where the run did not get to write it. Throws DataError."""
        path = self.folder / file_name
        if not path.exists():
            return None
        try:
            return pd.read_csv(io.StringIO(read_text(path)))
        except ValueError as error:
            raise DataError(f"{path} is no table ({error}); train again") from None


def _read_config(folder):
    path = folder / "config.yaml"
    try:
        config = yaml.safe_load(read_text(path)) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: {error}") from None
    if not isinstance(config, dict):
        raise DataError(f"{path} holds no KEY: VALUE pairs: not a configuration")
    return config


def _check(path, values, keys):
    if values.get("schema_version") != SCHEMA_VERSION:
        raise DataError(
            f"{path} has schema_version {values.get('schema_version')!r}, this program reads {SCHEMA_VERSION}; "
            "use the analysis/ of the version that trained it"
        )
    absent = [key for key in keys if key not in values]
    if absent:
        raise DataError(f"{path} has no {absent[0]!r}: it was edited or damaged; train again")


def _run_ids(folder):
    """(file, its run's name for itself) of the files that have one; those of older versions have none."""
    pattern = re.compile(r"hearsay-[0-9a-f]{16}")
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.jsonl"), *folder.glob("*.csv")]):
        if path.name.startswith("trace."):
            continue  # long; the other files say it
        if found := pattern.search(read_text(path, errors="replace")):
            yield path, found[0]


def _check_one_run(folder):
    ids = list(_run_ids(folder))
    for path, run_id in ids:
        if run_id != ids[0][1]:
            raise DataError(
                f"{folder}: files of two runs are mixed: {ids[0][0].name} is of {ids[0][1]}, {path.name} of {run_id}; "
                "train again with --overwrite"
            )


def read_run(folder, name):
    """Reads a run folder. Throws DataError for a folder that is missing, no run, or damaged; one whose run is still in
    progress is fine."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"no run folder {folder}; name the folder that a run has written (report.directory)")
    if not (folder / "manifest.json").exists():
        raise DataError(f"{folder} holds no manifest.json, so it is no run folder, or its run has not started yet")
    _check_one_run(folder)
    manifest = read_object(folder / "manifest.json")
    _check(folder / "manifest.json", manifest, ["command", "ranks", "segments", "exchange", "model", "dataset"])
    ranks = manifest["ranks"]
    if not isinstance(ranks, int) or not 1 <= ranks <= MOST_RANKS:
        raise DataError(f"{folder / 'manifest.json'}: a run does not have {ranks!r} ranks: it was edited or damaged")
    summary = None
    if (folder / "summary.json").exists():
        summary = read_object(folder / "summary.json")
        _check(
            folder / "summary.json", summary, ["status", "iterations", "messages_possible", "replica_hash", *COUNTERS]
        )
    return Run(folder, name, manifest, _read_config(folder), summary, read_metrics(folder, ranks))


def names_of(folders):
    """The last part of each path; where two would be called the same, the parts that are not common to all paths."""
    paths = [Path(folder).resolve().parts for folder in folders]
    if len({path[-1] for path in paths}) == len(paths):
        return [path[-1] for path in paths]
    while len({path[-1] for path in paths}) == 1 and len(set(paths)) > 1:
        paths = [path[:-1] for path in paths]
    while len({path[0] for path in paths}) == 1 and min(map(len, paths)) > 1:
        paths = [path[1:] for path in paths]
    return ["/".join(path) for path in paths]


def read_runs(folders):
    return [read_run(folder, shown(name)) for folder, name in zip(folders, names_of(folders))]


def _flat(value, prefix):
    if not isinstance(value, dict):
        return {prefix: value}
    flat = {}
    for key, inner in value.items():
        flat.update(_flat(inner, f"{prefix}.{key}" if prefix else str(key)))
    return flat


def flat_config(run):
    """{dotted key: value} of the run's complete configuration."""
    return _flat(run.config, "")
