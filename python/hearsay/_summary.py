"""What a run was: the numbers of summary.json."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, Iterator


def _bytes(n):
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.3g} {unit}" if unit != "B" else f"{n} B"
        n /= 1000


class Summary(Mapping[str, Any]):
    """summary.json as a mapping, the same on every rank: `summary["messages"]`, `summary["bytes_sent"]`,
    `summary["staleness_mean_iterations"]` … (docs/guide/report-format.md has all keys, with units).

    `str(summary)` is a few lines about the job on rank 0, and one line about the rank itself elsewhere, so that every
    rank may print it.
    """

    rank: int
    counts: Dict[str, int]
    directory: str

    def __init__(self, numbers, rank, counts, directory):
        self._numbers, self.rank, self.counts, self.directory = numbers, rank, counts, directory

    def __getitem__(self, key: str) -> Any:
        return self._numbers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<hearsay.Summary of {self.directory}>"

    def __str__(self) -> str:
        own = self.counts
        if self.rank != 0:
            return f"rank {self.rank} sent {own['messages']:,} messages, {_bytes(own['bytes_sent'])}"
        n = self._numbers
        made = n["iterations"]
        steps = max(1, made)
        lines = [f"{n['exchange']} ({n['schedule']}) on {n['ranks']} ranks: {made:,} steps, {self.directory}"]
        possible = f" ({100 * n['messages_fraction']:.1f} % of D-PSGD's)" if n["messages_possible"] else ""
        lines.append(f"  messages  {n['messages']:,}{possible}")
        lines.append(f"  bytes     {_bytes(n['bytes_sent'])} ({100 * n['bytes_fraction']:.2f} % of the dense ones)")
        if n["staleness_max_iterations"] is not None:
            mean, most = n["staleness_mean_iterations"], n["staleness_max_iterations"]
            lines.append(f"  staleness {mean:.1f} iterations, {most:.0f} at most")
        step, wait = 1e3 * n["time_per_iteration_s"], 1e3 * n["wait_s"] / steps
        lines.append(f"  time      {step:.2f} ms a step, {wait:.2f} ms of it waiting")
        if n["accuracy_mean_model"] is not None:
            worst = n["accuracy_rank_min"]  # None where it is no number
            words = "" if worst is None else f", {100 * worst:.2f} % worst rank"
            lines.append(f"  accuracy  {100 * n['accuracy_mean_model']:.2f} % averaged{words}")
        if n["message"]:
            lines.append(f"  {n['message']}")
        return "\n".join(lines)
