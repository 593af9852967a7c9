"""Draw one page that compares runs, or all runs of a sweep.

    analysis/hearsay report runs/digits-dpsgd runs/digits-eventgrad -o report.html
    analysis/hearsay report --sweep runs/sweeps/mnist -o sweep.html

The page is one self-contained HTML file: tables, figures, the differences of the configurations, the commands to
reproduce. Its figures also go, as SVG and PDF, and their data as CSV, into a folder beside it. Every number is read
from the run folders (docs/guide/report-format.md). A run still in progress is shown as far as it has come. Norms,
thresholds and events are there for runs that were trained with --set report.segments=true.
"""
from pathlib import Path

from hearsay_analysis.errors import UsageError
from hearsay_analysis.text import shown

PACKAGES = ("numpy", "pandas", "matplotlib", "yaml")


def arguments(parser):
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders; the first is the baseline")
    parser.add_argument(
        "--sweep",
        type=Path,
        metavar="FOLDER",
        help="instead of RUNs: accuracy against bytes of all runs of a sweep",
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


def run(options):
    """Writes the page."""
    if bool(options.runs) == bool(options.sweep):
        raise UsageError("name run folders, or --sweep FOLDER, one of the two; see --help")
    from hearsay_analysis.drawing import output, style
    from hearsay_analysis.page import report_page, sweep_page
    from hearsay_analysis.runs import run_folder

    style.apply()
    folder = output.figure_folder(options.output, "" if options.no_files else options.files)
    if options.sweep:
        text = sweep_page.report(options.sweep, folder)
    else:
        text = report_page.report(run_folder.read_runs(options.runs), options, folder)
    output.write_page(options.output, text)
    print(f"{shown(options.output)} ({options.output.stat().st_size / 1e6:.1f} MB)")
