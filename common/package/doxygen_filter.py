#!/usr/bin/env python3
"""Prints a page or a public header as Doxygen reads it (FILTER_PATTERNS of docs/Doxyfile), with the same lines.

Pages: each heading gets an anchor that is unique in the site, and links lead to these anchors. Links to docs/examples
lead to the copy beside the site. What the site lacks is named instead.
Headers: a line such as `---- launches ----` in a comment begins a group, which gets a manual page.
"""
import os
import re
import sys
from pathlib import Path

ROOT = Path(os.path.abspath(__file__)).parent.parent.parent  # not resolved, like configure.py's
CODE = re.compile(r"(^```.*?^```$|^    .*?$)", re.M | re.S)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+) (.*)$", re.M)
SECTION = re.compile(r"^/\* ---- (.*?) -+ \*/$", re.M)


def words(heading):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", LINK.sub(r"\2", heading).lower()).replace(" ", "-")


def page_name(path):
    """The name of a page in the site: guide for docs/guide.md, cuda-README for cuda/README.md."""
    return "index" if path == "README.md" else path.removesuffix(".md").removeprefix("docs/").replace("/", "-")


def anchor(path, heading):
    return f"{page_name(path)}--{heading}" if heading else page_name(path)


def link(page, found):
    """A link of a page, with the place in the site that it leads to."""
    mark, text, target = found.groups()
    if "://" in target:
        return found[0]
    name, _, heading = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
    if (ROOT / path / "README.md").exists():
        path += "/README.md"
    if mark and path.startswith("docs/"):
        return f"![{text}]({os.path.basename(path)})"
    if path.endswith(".md"):
        return f"[{text}](#{anchor(path, heading)})"
    if path.startswith("docs/examples/"):
        return f"[{text}](../{path.removeprefix('docs/')})"
    return text if text.strip("`") in path else f"{text} (`{path}`)"


def page_text(page, text):
    """A page's text; its first heading, the title, gets the page's name."""
    text = re.sub(r"^```(\w+) .*$", r"```\1", text, flags=re.M)  # ```c fragment
    parts = CODE.split(text)
    seen = []

    def head(found):
        seen.append(found[2])
        name = anchor(page, words(found[2]) if seen[1:] else "")
        return f"{found[0]} {{#{'mainpage' if name == 'index' else name}}}"

    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(lambda found: link(page, found), HEADING.sub(head, parts[i]))
    return "".join(parts)


def header_text(header, text):
    """A header's text, with a group for each section: gk-launches, gk_vulkan-memory."""
    ends = ""

    def group(found):
        nonlocal ends
        title = re.split(r"[:;,(]", found[1])[0].strip()
        begins = f"/** @defgroup {header.removesuffix('.h')}-{words(title)} {header}: {title} */ /** @{{ */"
        begins, ends = ends + begins, "/** @} */"
        return begins

    return SECTION.sub(group, text) + ends


def main(path):
    text = path.read_text()
    name = Path(os.path.abspath(path)).relative_to(ROOT).as_posix()
    sys.stdout.write(header_text(path.name, text) if path.suffix == ".h" else page_text(name, text))


main(Path(sys.argv[1]))
