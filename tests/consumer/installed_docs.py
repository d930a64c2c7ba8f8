"""The site and the manual pages, as they are installed: links that hold without a network, a page for each function."""
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import tap

MACROS = {"GK_KERNEL", "GK_OWN", "GK_DO_WHILE", "GK_COUNT", "GK_ABI", "gk_atomic_add"}
TYPES = {"gk_task", "gk_status", "gk_result", "gk_backend"}


class Page(HTMLParser):
    """The anchors of a page, and its links, each with its tag."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append((tag, value))


def broken_links(site):
    """Links to files or anchors that aren't there, and parts of a page that are elsewhere than on this machine."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for tag, link in page.links:
            if re.match(r"\w+:", link):
                if tag != "a" and not link.startswith("javascript:"):
                    yield f"{path.name}: its {tag} is on the network: {link}"
                continue
            name, _, anchor = unquote(link).partition("#")
            to = (path.parent / name).resolve() if name else path
            if not to.exists() or anchor and to in pages and anchor not in pages[to].anchors:
                yield f"{path.name}: {link}"


def missing_pages(site):
    """Pages of the repository that aren't in the site."""
    titles = "".join(path.read_text(errors="replace") for path in site.glob("*.html"))
    for page in [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]:
        title = re.search(r"^# (.*)$", page.read_text(), re.M)[1].replace("'", "&#39;")
        if f"<title>gk: {title}</title>" not in titles:
            yield f"{page}: {title}"


def functions():
    """All that the library exports: tests/repo/exports.py compares that with the headers."""
    listing = subprocess.run(["nm", "-D", "--defined-only", "build/libgk.so"], check=True, stdout=subprocess.PIPE,
                             text=True)
    return {line.split()[2].split("@")[0] for line in listing.stdout.splitlines()}


def wrong_manual(man):
    """Functions, macros and types without a manual page, pages of anything else, and links to pages that aren't there;
    man: the folder with man3."""
    pages = {path.name.removesuffix(".3"): path.read_text() for path in (man / "man3").iterdir()}
    for name in sorted((functions() | MACROS | TYPES) - set(pages)):
        yield f"no page for {name}"
    for name, text in pages.items():
        if not name.lower().startswith("gk"):
            yield f"a page for {name}"
        to = re.match(r"\.so man3/(\S+)\n", text)
        if to and not (man / "man3" / to[1]).exists():
            yield f"{name}: there is no {to[1]}"
        elif name not in (pages[to[1].removesuffix(".3")] if to else text):
            yield f"{name} isn't on its page"


def shown(man):
    """What is wrong with a page as it is shown."""
    done = subprocess.run(["man", "-M", man, "gk_launch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wanted = ["gk.h: launches", "gk_result gk_launch (gk_graph *", "May be called on any thread"]
    absent = [words for words in wanted if words not in re.sub(r"\s+", " ", done.stdout)]
    return f"without {absent}:\n{done.stdout}{done.stderr}" if absent or done.stderr else None


def check(share):
    """share: the prefix's folder of that name."""
    site, man = share / "doc/gk/html", share / "man"
    tap.case("links of the installed site", "\n".join(broken_links(site)))
    tap.case("pages of the installed site", "\n".join(missing_pages(site)))
    tap.case("manual pages", "\n".join(wrong_manual(man)))
    if shutil.which("man"):
        tap.case("man gk_launch", shown(man))
    else:
        tap.skip("man gk_launch", "man isn't installed")
