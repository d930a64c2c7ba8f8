#!/usr/bin/env python3
"""docs/conformance.md names every case and chapter of the conformance suite, and nothing else; docs/from-quadrants.md
names cases that exist, and what it says of Quadrants is tried where that is installed. The table that the suite prints
wants chapters in one piece."""
import itertools
import re
import subprocess
import sys

from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

QUADRANTS = "1.3.3"


def cases():
    """(chapter, name) of all."""
    text = (tap.ROOT / "tests" / "conformance" / "cases.def").read_text()
    return re.findall(r"^CASE\((\w+), (\w+),", text, re.M)


def column(page, heading, index):
    """Words in backquotes in a column of the tables under a heading; 0 is the first, -1 the last."""
    text = (tap.ROOT / "docs" / page).read_text()
    part = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [word for row in rows for word in re.findall(r"`(\w+)`", row[index])]


def differences(named, known):
    lines = [f"{name} isn't a case" for name in sorted(named - known)]
    return "\n".join(lines + [f"{name} isn't named" for name in sorted(known - named)])


def quadrants():
    """A Python that has it, or None."""
    own = tap.ROOT / "build" / "peers" / "bin" / "python"
    for python in ([str(own)] if own.exists() else []) + [sys.executable]:
        found = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('quadrants'))"],
                               capture_output=True, text=True)
        if found.stdout.strip() == QUADRANTS:
            return python
    return None


def main():
    known = cases()
    names = {name for _, name in known}
    named = set(column("conformance.md", "Rule by rule", -1))
    tap.case("docs/conformance.md has every case", differences(named, names))
    twice = sorted(name for name in names if sum(name == one for _, one in known) > 1)
    tap.case("each case stands once in cases.def", "\n".join(twice))
    parts = [chapter for chapter, _ in itertools.groupby(chapter for chapter, _ in known)]
    tap.case("the cases of a chapter stand together",
             "\n".join(f"{part} comes again" for part in sorted(set(parts)) if parts.count(part) > 1))
    chapters = set(column("conformance.md", "What it proves", 0))
    tap.case("and every chapter", differences(chapters, {chapter for chapter, _ in known}))
    unknown = differences(set(column("from-quadrants.md", "Where backends there disagree.*?", -1)),
                          {name for chapter, name in known if chapter == "elsewhere"})
    tap.case("docs/from-quadrants.md has the cases of its chapter", unknown)
    python = quadrants()
    if python:
        script = tap.ROOT / "bench" / "peers" / "quadrants_differences.py"
        tap.case("what it says of Quadrants", tap.run(python, script))
    else:
        tap.skip("what it says of Quadrants", f"quadrants {QUADRANTS} isn't installed")
    tap.finish()


main()
