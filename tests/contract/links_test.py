#!/usr/bin/env python3
"""Pages and comments point to what is there: relative links and anchors of all Markdown files, paths of the repository
that they name in backticks and in commands, the pages that sources name, and the paths that their comments name.

Usage: links_test.py [ROOT]. Exit status 0: all is there; 1: each complaint on a line.
"""
import functools
import os
import re
import sys

TOPS = "analysis|apps|base|cmake|configs|docs|hearsay|python|research|runtime|scripts|sparsify|tests|topology|trigger"
SOURCES = (".cpp", ".hpp", ".cu", ".cuh", ".py", ".sh", ".yaml", ".cmake", ".txt")
NOT_OURS = {".git", "build", "runs", "__pycache__"}
# A path of this repository: a folder of the top, then more. What begins before it (build/release/apps/…) is another.
PATH = re.compile(rf"(?<![\w/.$~-])(?:{TOPS})/[\w./-]*[\w/](?!/?[\w*{{…-])")
PLACEHOLDER = re.compile(r"(^|/)(x|x_\w+|[A-Z]{3,})(\.\w+)?(/|$)")  # trigger/policies/x.cpp, configs/mnist/NAME.yaml
COMMENT = {True: re.compile(r"//(.*)"), False: re.compile(r"(?:^|\s)#(.*)")}  # by whether it is C++
PAGE = re.compile(r"(?<![\w/.-])(?:docs|research)/[\w./-]+\.(?:md|svg|png|bib|csv)\b")


def files(suffixes):
    for folder, folders, names in os.walk("."):
        folders[:] = sorted(set(folders) - NOT_OURS)
        yield from (os.path.join(folder, name)[2:] for name in sorted(names) if name.endswith(suffixes))


def numbered(path):
    """(line number, line, whether it is code) of a page."""
    code = False
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            fence = line.lstrip().startswith("```")
            code ^= fence
            yield number, line, code or fence


@functools.cache
def anchors(path):
    """What headings of a page are called in links, as GitHub does it."""
    seen = {}
    for _, line, code in numbered(path):
        if not code and (heading := re.match(r"#+ (.*)", line)):
            slug = re.sub(r"[^\w\- ]", "", heading[1].strip().lower()).replace(" ", "-")
            seen[slug] = seen.get(slug, -1) + 1
    return {f"{slug}-{n}" if n else slug for slug, most in seen.items() for n in range(most + 1)}


def missing(paths):
    return [path for path in paths if not PLACEHOLDER.search(path) and not os.path.exists(path)]


def wrong_link(page, target):
    file, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), file)) if file else page
    if not os.path.exists(path):
        return f"no file {path}"
    if anchor and path.endswith(".md") and anchor not in anchors(path):
        return f"{path} has no heading #{anchor}"
    return None


def wrong_on(page):
    for number, line, code in numbered(page):
        targets = [] if code else re.findall(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"', re.sub(r"`[^`]*`", "", line))
        for target in (a or b for a, b in targets):
            if not re.match(r"[a-z]+:", target) and (wrong := wrong_link(page, target)):
                yield f"{page}:{number}: {target}: {wrong}"
        for text in [line] if code else re.findall(r"`([^`]+)`", line):
            for path in missing(PATH.findall(text)):
                yield f"{page}:{number}: there is no {path}"


def wrong_pages(source):
    """Only sources that can be read as text; a path in a string may be cut in two, which nobody can follow."""
    with open(source, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            for path in missing(PAGE.findall(line)):
                yield f"{source}:{number}: there is no page {path}"


def wrong_comments(source):
    """What comments call by a path from the top, files and folders. In code such words may be anything."""
    comment = COMMENT[source.endswith((".cpp", ".hpp", ".cu", ".cuh"))]
    with open(source, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            for path in missing(PATH.findall(found[1])) if (found := comment.search(line)) else []:
                yield f"{source}:{number}: there is no {path}"


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    pages = list(files((".md",)))
    programs = (path for path in files(("",)) if re.match(r"(scripts|analysis|research)/[\w-]+$", path))
    sources = [*files(SOURCES), *programs]
    complaints = [c for page in pages for c in wrong_on(page)]
    complaints += [c for source in [*pages, *sources] for c in wrong_pages(source)]
    complaints += [c for source in sources for c in wrong_comments(source)]
    if len(pages) < 10 or len(sources) < 300:
        complaints.append(f"only {len(pages)} pages and {len(sources)} sources: this test does not see them")
    found = f"{len(pages)} pages, {len(sources)} sources: all they name is there"
    print("\n".join(complaints) if complaints else found)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
