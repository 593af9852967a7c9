"""Draw how far ranks have come over time.

    analysis/hearsay progress runs/straggler runs/straggler-lockstep -o straggler.svg
    analysis/hearsay progress runs/slow/even runs/slow/link --ranks 0,1 -o slow.png

It shows who waits for a slow host, and who does not. A panel a folder, which is a run folder or the output folder of a
sweep; in it a line a rank. Of sweeps a method has a colour, and a rank a line style. A CSV file beside the picture has
the points, and the iterations per second of every run's slowest and fastest rank are printed as Markdown.
"""
from pathlib import Path

PACKAGES = ("numpy", "pandas", "matplotlib", "yaml")


def ranks(words):
    """[rank] of 0,1. Throws ValueError, which argparse reports as wrong usage."""
    return [int(word) for word in words.split(",")]


def arguments(parser):
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="run folders or sweeps' output folders")
    parser.add_argument("--ranks", type=ranks, metavar="N,…", help="which ranks (default: all)")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the picture: .svg, .pdf or .png"
    )


def run(options):
    """Writes the picture and its data, prints the table."""
    from hearsay_analysis.drawing import output, style
    from hearsay_analysis.figures import progress

    output.require_picture(options.output)
    style.apply()
    data = progress.points(options.folders, options.ranks)
    output.write_picture(options.output, progress.draw(data))
    data.to_csv(options.output.with_suffix(".csv"), index=False)
    print(progress.paces(data), end="")
    print(options.output)
