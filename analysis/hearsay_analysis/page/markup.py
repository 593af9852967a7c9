"""HTML of a page: escaped, self-contained, without scripts."""
import html
import re
from pathlib import Path

from hearsay_analysis.drawing import style
from hearsay_analysis.drawing.figure import Absent
from hearsay_analysis.text import listed, shown

_OBEYED = re.compile(r"[^\t\n]+")  # what `shown` may change: a page's own line breaks stay


def escaped(text):
    """For content and attributes; control characters, which HTML forbids, and what is no character are shown."""
    return html.escape(_OBEYED.sub(lambda match: shown(match[0]), str(text)), quote=True)


def element(tag, content, css_class=""):
    """content is HTML."""
    return f'<{tag} class="{css_class}">{content}</{tag}>' if css_class else f"<{tag}>{content}</{tag}>"


def value(number, words):
    """A number as people read it, with the number itself for programs; HTML."""
    return escaped(words) if number is None else f'<data value="{escaped(number)}">{escaped(words)}</data>'


def swatch(number):
    return f'<span class="swatch" style="background: {style.var(style.colour(number))}"></span>'


def table(heads, rows, css_class="", row_classes=()):
    """heads: plain text; rows: lists of HTML cells. Wide tables scroll by themselves; on a narrow screen every row is
    folded into a list of head and cell, for which cells have their heads as data-head."""
    head = "".join(element("th", escaped(h)) for h in heads)
    body = []
    for number, row in enumerate(rows):
        row_class = row_classes[number] if number < len(row_classes) else ""
        cells = [f'<td data-head="{escaped(name)}">{cell}</td>' for name, cell in zip(heads, row)]
        body.append(element("tr", "".join(cells), row_class))
    inner = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    return f'<div class="scroll">{element("table", inner, css_class)}</div>'


def notes(lines):
    return "".join(element("p", escaped(line), "note") for line in lines)


def _figure_html(figure, links):
    if isinstance(figure, Absent):
        return ""
    caption = escaped(figure.caption)
    if links:
        caption += " " + " · ".join(f'<a href="{escaped(target)}">{kind}</a>' for kind, target in links)
    drawing = style.inline_svg(figure.svg, figure.name, escaped(figure.title))
    return f"<figure><h3>{escaped(figure.title)}</h3>{drawing}<figcaption>{caption}</figcaption></figure>"


def _absences(absent):
    """A sentence a title and reason, whichever runs it is true of."""
    runs = {}
    for figure in absent:
        runs.setdefault((figure.title, figure.reason), []).append(figure.run)
    return [
        f"{title}{' of ' + listed(names) if any(names) else ''}: not drawn, {reason}."
        for (title, reason), names in runs.items()
    ]


def figures(drawn, links_of):
    """Figures side by side where there is room, then what could not be drawn and why.

    links_of(figure) → [(kind, target)] are the files that the caption links to."""
    there = [figure for figure in drawn if not isinstance(figure, Absent)]
    absent = [figure for figure in drawn if isinstance(figure, Absent)]
    shown = (
        element("div", "".join(_figure_html(figure, links_of(figure)) for figure in there), "figures") if there else ""
    )
    return shown + "".join(element("p", escaped(line), "quiet") for line in _absences(absent))


def document(title, body):
    """A whole page. body is HTML."""
    css = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    themes = (
        f":root {{ {style.css_variables(False)} }}\n@media screen and (prefers-color-scheme: dark) "
        f"{{ :root {{ {style.css_variables(True)} }} }}\n"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{themes}{css}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
