#!/usr/bin/env python3
"""Draw one page that compares training runs, or all runs of a sweep.

    analysis/report.py runs/digits-dpsgd runs/digits-eventgrad -o report.html
    analysis/report.py --sweep runs/sweeps/mnist -o sweep.html

The page is one self-contained HTML file: tables, figures, the differences of the configurations, the commands to
reproduce. Its figures also go, as SVG and PDF, and their data as CSV, into a folder beside it. Every number is read
from the run folders (docs/guide/report-format.md). A run still in progress is shown as far as it has come. Norms,
thresholds and events are there for runs that were trained with --set report.segments=true.

Exit codes: 0 done, 2 wrong usage, 3 a run folder is missing or damaged, or a Python package is missing.
"""
import argparse
from pathlib import Path

from hearsay_analysis.errors import UsageError, run_script
from hearsay_analysis.interpreter import need


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders; the first is the baseline")
    parser.add_argument(
        "--sweep",
        type=Path,
        metavar="FOLDER",
        help="instead of RUNs: accuracy against bytes of all runs of a sweep (scripts/sweep)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), help="the page (default: report.html)"
    )
    parser.add_argument(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="where the figures' SVG, PDF and CSV go (default: the page's name with _files at its end)",
    )
    parser.add_argument("--no-files", action="store_true", help="the page only")
    parser.add_argument("--rank", type=int, default=0, help="whose norms and thresholds are drawn (default: 0)")
    parser.add_argument(
        "--segments",
        type=lambda names: names.split(","),
        default=[],
        metavar="NAME,…",
        help="whose norms and thresholds (default: the largest, the most silent and the most talkative)",
    )
    return parser.parse_args()


def main():
    options = arguments()
    if bool(options.runs) == bool(options.sweep):
        raise UsageError("name run folders, or --sweep FOLDER, one of the two; see --help")
    need("numpy", "pandas", "matplotlib", "yaml")
    from hearsay_analysis import output, report_page, runs, style, sweep_page

    style.apply()
    folder = output.figure_folder(options.output, "" if options.no_files else options.files)
    if options.sweep:
        text = sweep_page.report(options.sweep, folder)
    else:
        text = report_page.report(runs.read_runs(options.runs), options, folder)
    output.write_page(options.output, text)
    print(f"{options.output} ({options.output.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    run_script("report", main)
