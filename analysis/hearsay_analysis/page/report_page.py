"""The page that compares runs."""
from hearsay_analysis.page import comparison, markup
from hearsay_analysis.figures import SECTIONS


def _section(title, content):
    return f"<section>\n<h2>{markup.escaped(title)}</h2>\n{content}\n</section>\n"


def _heading(runs):
    names = [run.name for run in runs]
    title = (
        names[0]
        if len(names) == 1
        else f"{names[0]} and {len(names) - 1} more"
        if len(names) > 4
        else " · ".join(names)
    )
    first = runs[0].manifest
    about = f"{first['model']} on {first['dataset']}, {runs[0].ranks} ranks. The first run is the baseline."
    return title, f"<h1>{markup.escaped(title)}</h1>\n<p>{markup.escaped(about)}</p>\n"


_REPEATABLE = (
    "A run's config.yaml is complete, defaults included: in lockstep it gives the same run, bit for bit, on the same "
    "number of ranks, with the same program on the same kind of processor."
)


def _reproduction(runs):
    lines = markup.element("pre", markup.escaped("\n".join(comparison.commands(runs))))
    return lines + markup.element("p", markup.escaped(_REPEATABLE)) + comparison.origins(runs)


def report(runs, options, folder):
    """The page's HTML; the figures' files go into the FigureFolder."""
    title, heading = _heading(runs)
    parts = [
        heading,
        markup.notes(comparison.comparison_notes(runs)),
        _section("Comparison", comparison.comparison_table(runs)),
    ]
    for name, draws in SECTIONS:
        figures = [figure for draw in draws for figure in draw(runs, options)]
        folder.save(figures)
        parts.append(_section(name, markup.figures(figures, folder.links)))
    parts += [
        _section("Bytes by kind", comparison.bytes_table(runs)),
        _section("Differences of the configurations", comparison.configuration_table(runs)),
        _section("To reproduce", _reproduction(runs)),
    ]
    return markup.document(f"Hearsay: {title}", "".join(parts))
