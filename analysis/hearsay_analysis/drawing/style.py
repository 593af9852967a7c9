"""How figures look: one palette for light, dark and paper.

A figure is drawn in the light colours. In a page they are replaced by CSS variables, so that it follows the reader's
theme. Series colours are Okabe and Ito's, which colour-blind readers can tell apart; the dark ones are the same hues,
lighter.
"""
import io
import re

import matplotlib

INK, MUTED, GRID, PAPER = "#1b1c1e", "#686d75", "#dddfe3", "#fefefe"
SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7d6a00", "#56b4e9", "#767b84"]
_DARK = {
    INK: "#e8e9eb",
    MUTED: "#a3a8b0",
    GRID: "#3a3d43",
    PAPER: "#17181b",
    "#0072b2": "#58a9e0",
    "#d55e00": "#ff8f52",
    "#009e73": "#3ccb9f",
    "#cc79a7": "#e6a3c8",
    "#7d6a00": "#e0c34a",
    "#56b4e9": "#a5dbfa",
    "#767b84": "#b9bdc4",
}
_DASHES = ["-", (0, (5, 2)), (0, (1.5, 1.5))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

WIDTH_IN = 4.2  # drawn as wide as a phone shows it, so that its letters stay readable there


def apply():
    """Sets matplotlib up for all figures."""
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "pdf.fonttype": 42,
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.titlesize": 9,
            "axes.labelsize": 9,
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "axes.edgecolor": MUTED,
            "grid.color": GRID,
            "grid.linewidth": 0.6,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "lines.linewidth": 1.5,
            "savefig.facecolor": "none",
            "hatch.color": PAPER,
            "hatch.linewidth": 1.0,
        }
    )


def colour(number):
    """The colour of series `number`, from 0."""
    return SERIES[number % len(SERIES)]


def dashes(number):
    """A line style: it changes once the colours repeat."""
    return _DASHES[number // len(SERIES) % len(_DASHES)]


def marker(number):
    return MARKERS[number % len(MARKERS)]


def _variable(hex_colour):
    return f"--c{hex_colour[1:]}"


def css_variables(dark):
    """The CSS declarations of one theme."""
    return " ".join(f"{_variable(light)}: {dark_colour if dark else light};" for light, dark_colour in _DARK.items())


def var(hex_colour):
    return f"var({_variable(hex_colour)})"


def svg(figure, name):
    """The figure as a stand-alone SVG document; the same bytes for the same data."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", dpi=200, metadata={"Date": None})
    return buffer.getvalue()


def inline_svg(text, name, description):
    """A document that `svg` made as an element of a page: themed, with identifiers of its own, without references."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    for light in _DARK:
        text = re.sub(light, var(light), text, flags=re.IGNORECASE)
    text = re.sub(
        r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>",
        lambda match: f'<svg viewBox="{match[1]}" role="img" aria-label="{description}">',
        text,
        count=1,
    )
    text = re.sub(r"base64,\s*", "base64,", text)
    return re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
