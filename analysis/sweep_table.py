#!/usr/bin/env python3
"""Print the results of a sweep as Markdown tables: one a combination of ranks and axes, one row a method.

    analysis/sweep_table.py runs/sweeps/mnist
    analysis/sweep_table.py runs/sweeps/gtopk-residual --best optimizer.learning_rate

Every number is read from the run folders (summary.json). Accuracies are mean ± sample standard deviation over seeds.
With --best every method has the value of that axis, in brackets, with which its mean accuracy is highest; a run that
diverged counts as 0.
"""
import argparse
import json
import statistics
import sys
from pathlib import Path


def load(folder):
    """All finished points below `folder`, grouped: {(ranks, axis values): {method: [summary, …]}}."""
    groups = {}
    for file in sorted(folder.glob("**/point.json")):
        try:
            point = json.loads(file.read_text())
            summary = json.loads((file.parent / "summary.json").read_text())
        except (OSError, ValueError):
            print(f"{file.parent}: no whole summary, left out", file=sys.stderr)
            continue
        key = (point["ranks"], *(f"{k} {v}" for k, v in point["axis"].items()))
        groups.setdefault(key, {}).setdefault(point["method"], []).append(summary)
    return groups


def accuracy(summaries):
    return statistics.mean(s["accuracy_mean_model"] if s["status"] == "finished" else 0.0 for s in summaries)


def best_of(groups, axis):
    """The groups without `axis`, every method with its best value of it."""
    choices = {}
    for key, methods in groups.items():
        value = next((part.removeprefix(f"{axis} ") for part in key[1:] if part.startswith(f"{axis} ")), None)
        rest = tuple(part for part in key if not str(part).startswith(f"{axis} "))
        for method, summaries in methods.items():
            choices.setdefault(rest, {}).setdefault(method, []).append((accuracy(summaries), value, summaries))
    best = {}
    for key, methods in choices.items():
        for method, candidates in methods.items():
            _, value, summaries = max(candidates, key=lambda candidate: candidate[0])
            best.setdefault(key, {})[method if value is None else f"{method} ({value})"] = summaries
    return best


def spread(values, scale=100.0, digits=2):
    values = [scale * v for v in values if v is not None]
    if not values:
        return "–"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def share_names(methods):
    """Fractions that algorithms report of themselves, e.g. gTop-k's lost mass."""
    return sorted({name for summaries in methods.values() for s in summaries for name in s.get("shares", {})})


def row(method, summaries, shares):
    good = [s for s in summaries if s["status"] == "finished"]
    if not good:
        return f"| {method} | {summaries[0]['status']} | | | | {'| ' * len(shares)}| {len(summaries)} |"
    def get(key):
        return [s.get(key) for s in good]
    lost = f" ({len(summaries) - len(good)} diverged)" if len(good) < len(summaries) else ""
    own = "".join(f"{spread([s.get('shares', {}).get(name) for s in good], digits=1)} | " for name in shares)
    return (f"| {method} | {spread(get('accuracy_mean_model'))} | {spread(get('accuracy_rank_min'))} | "
            f"{spread(get('messages_fraction'), digits=1)} | {spread(get('bytes_fraction'), digits=1)} | "
            f"{spread(get('consensus_distance'), scale=1.0)} | {own}{len(good)}{lost} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the sweep's output folder")
    parser.add_argument("--best", metavar="AXIS", help="one row a method: with the best value of this axis")
    options = parser.parse_args()
    groups = load(options.folder)
    if not groups:
        print(f"sweep_table: no finished runs below {options.folder}; run scripts/sweep first", file=sys.stderr)
        sys.exit(3)
    if options.best:
        axes = sorted({part.rsplit(" ", 1)[0] for key in groups for part in key[1:]})
        if options.best not in axes:
            print(f"sweep_table: no axis {options.best!r} in this sweep; there are: {', '.join(axes) or 'none'}",
                  file=sys.stderr)
            sys.exit(2)
        groups = best_of(groups, options.best)
    for key in sorted(groups):
        print(f"\n**P = {key[0]}{''.join(', ' + part for part in key[1:])}**\n")
        shares = share_names(groups[key])
        own = "".join(f"{name.removesuffix('_fraction').replace('_', ' ')}, % | " for name in shares)
        print("| method | accuracy of the mean model, % | worst rank, % | messages, % | bytes, % | consensus distance | "
              f"{own}seeds |")
        print("|---|---|---|---|---|---|" + "---|" * (len(shares) + 1))
        for method, summaries in groups[key].items():
            print(row(method, summaries, shares))


if __name__ == "__main__":
    main()
