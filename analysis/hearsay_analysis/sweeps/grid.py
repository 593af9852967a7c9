"""The runs of a sweep."""
import itertools
from dataclasses import dataclass
from pathlib import Path

from hearsay_analysis.sweeps.sweep_file import slug


@dataclass(frozen=True)
class Point:
    """One run to be made. axis: its values of the sweep's axes; settings: all settings, those of the axes too."""

    method: str
    ranks: int
    seed: int
    axis: dict
    settings: dict
    config: Path
    folder: Path

    @property
    def record(self):
        """What is kept beside the run's own files: what it is in its sweep."""
        return {"method": self.method, "ranks": self.ranks, "seed": self.seed, "axis": self.axis}


def points(plan, output=None, overrides=None):
    """[Point] in an order that finishes one seed of everything first. output: instead of the plan's; overrides:
    settings that are stronger than all others."""
    combinations = list(itertools.product(*plan.axes.values()))
    found = []
    for seed, ranks, values in itertools.product(plan.seeds, plan.ranks, combinations):
        axis = dict(zip(plan.axes, values))
        for method in plan.methods:
            if method.ranks is None or ranks in method.ranks:
                settings = {**plan.settings, **axis, **method.settings, "seed": seed, **(overrides or {})}
                parts = [f"p{ranks}", *map(slug, values), slug(method.name), f"seed{seed}"]
                folder = (output or plan.output).joinpath(*parts)
                found.append(Point(method.name, ranks, seed, axis, settings, method.config, folder))
    return found
