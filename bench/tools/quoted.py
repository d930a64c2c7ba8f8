#!/usr/bin/env python3
"""Compares the figures that documents quote with bench/results.

  bench/tools/quoted.py [--write] [--root FOLDER]

A quoted figure is a link to the page of results. The link's title names the row by table, measurement, and ratio or
variant:

  [0.55](../bench/results/amd-epyc-2-cores/README.md "F7, two sections n=1: gk, two sections against one chain")

The link's text must be the row's median, rounded to as many digits as are written. Any other time, rate, percentage,
"times as fast", "a third of that" or number with a decimal point outside of code is a figure of unknown origin. --write
replaces the figures by the present results. A part "### Missed" or "### Undecided" of a document must quote each row
with that verdict, and its items must begin with such rows.
Exit code 1: a figure is wrong, has no row, or isn't quoted as above.
"""
import argparse
import json
import re
import sys
from pathlib import Path

LINK = re.compile(r'\[(-?\d[\d,]*(?:\.\d+)?)([^\]\d]*)\]\(([^)"\s]*bench/results/([\w.-]+)/README\.md) "([^"]+)"\)')
WORDS = ("one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|hundred|thousand|"
         "million")
PARTS = "half|(?:a|one) (?:half|third|quarter|fifth|tenth)|two thirds|three quarters"
FIGURE = (rf"\b(?:\d[\d.,]*)\s?(?:ns|µs|us|ms|[GT]i?B/s|(?:nano|micro|milli)seconds?)\b"
          rf"|\b(?:\d[\d.,]*|{WORDS})\s?(?:%|percent\b)"
          rf"|\b(?:\d[\d.,]*|{WORDS}) (?:clock )?cycles?\b"
          rf"|\b(?:[\d.,]+|{WORDS}) times (?:as (?:fast|slow|long|much)|faster|slower|longer|less|that"
          rf"|the time)\b"
          rf"|\b(?:twice|{PARTS}) (?:as (?:fast|slow|long)|the time)\b"
          rf"|\b(?:{PARTS}) of (?:an?|one|it|that|the time|what it|C|serial|OpenMP|by hand|Warp|Quadrants|JAX"
          rf"|CuPy|PyTorch|cuda\.core)\b"
          rf"|(?<![\w.,/-])\d[\d,]*\.\d+(?![\w,.]*\w)")
PARTED = "tenths?|hundredths?|thousandths?"
VAGUE = (rf"\b(?:goal )?(?:{WORDS}|a|few|some|several|many) (?:{PARTED})\b"
         rf"|\b(?:{WORDS}|few|several|many|(?:ten|dozen|hundred|thousand|million)s of) times "
         rf"(?:as|that|what|the|more|less|(?:fast|slow|long|short|cheap)er)\b"
         rf"|\b(?:half|twice|double|triple) (?:the |its |their |that |as )?"
         rf"(?:speed|time|cost|price|rate|bandwidth|much|long|fast|slow)\b"
         rf"|\b(?:doubl|halv|tripl)(?:es|ed|ing) (?:the|its|their|any|each|every|what|that|it)\b"
         rf"|\bby (?:far|half|a third|a quarter)\b|\b(?:far|much) (?:faster|slower|longer|shorter|cheaper)\b")
# Lines end anywhere.
LOOSE, LOOSE_VAGUE = (re.compile(words.replace(" ", r"(?: |\n *)"), re.I) for words in (FIGURE, VAGUE))
PART = re.compile(r"(?:(?!\n *\n|\n[-*] ).)+", re.S)  # a paragraph, an item of a list
SHOWN = re.compile(r"`[^`]*\b(?:build/\w|bench/[\w/]+\.(?:py|sh)\b)[^`]*`")  # a command
# Documents, each with the heading from which on figures in words need a quote, too.
IN_WORDS = {"README.md": "", "CHANGELOG.md": "", "bench/peers/README.md": "", "docs/performance.md": "",
            "docs/measuring.md": "## Why goals are missed"}
VERSIONS = {"11.4", "12.0", "12.3", "12.4", "12.8", "12.9", "13.0", "5.2", "6.4", "7.2"}  # of CUDA and HIP
# Numbers that aren't figures of gk's speed.
EXEMPT = {
    ("docs/coverage.md", "94.5 %"): "branches taken", ("docs/coverage.md", "98.5 %"): "lines run",
    ("docs/coverage.md", "92 %"): "branches taken",
    ("docs/measuring.md", "0.4 ms"): "how long a call is made",
    ("CHANGELOG.md", "1.0"): "gk's version",
    ("README.md", "2.0"): "the licence's version",
    ("docs/vulkan.md", "1.2"): "Vulkan's version",
    ("bench/peers/README.md", "9.0"): "which GPUs",
    ("docs/examples/softbody/README.md", "1.4"): "memory that a mesh took",
    ("docs/examples/softbody/README.md", "1 %"): "what a check allows",
    ("docs/examples/softbody/README.md", "5 %"): "what a check allows",
}


def documents(root):
    found = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md")),
             root / "bench/README.md", root / "bench/peers/README.md"]
    return [path for path in found if path.exists()]


def rows(folder, verdict=None):
    """The medians by title, of all rows or of those with that verdict."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text())
        for table in report.get("tables", []):
            begin = f"{table['id']}, {table['what']}: "
            found.update({begin + variant["name"]: variant for variant in table["variants"]})
            found.update({begin + ratio["what"]: ratio for ratio in table["ratios"]})
        for peer in report.get("peers", []):
            found.update({f"{row['table']}, {row['what']}: gk against {peer['peer']}": row["ratio"]
                          for row in peer.get("rows", []) if "ratio" in row})
    return {title: figure["median"] for title, figure in found.items()
            if figure.get("median") is not None and verdict in (None, figure.get("verdict"))}


def unnamed(root, text):
    """(part, title) of missed or undecided rows of quoted results that their part doesn't quote."""
    parts = {verdict: re.search(rf"^### {verdict}$(.*?)(?=^#|\Z)", text, re.I | re.M | re.S)
             for verdict in ("missed", "undecided")}
    for verdict, part in parts.items() if any(parts.values()) else []:
        there = {found[5] for found in LINK.finditer(part[1])} if part else set()
        for device in sorted({found[4] for found in LINK.finditer(text)}):
            for title in rows(root / "bench/results" / device, verdict):
                if title not in there:
                    yield verdict.capitalize(), title


def misplaced(root, text):
    """(part, title) of items in such a part that begin with a row which isn't missed or undecided any more."""
    for part in re.finditer(r"^### (Missed|Undecided)$(.*?)(?=^#|\Z)", text, re.M | re.S):
        for item in re.findall(r"^- .*?(?=^- |\Z)", part[2], re.M | re.S):
            first = LINK.search(item)
            if first and first[5] not in rows(root / "bench/results" / first[4], part[1].lower()):
                yield part[1], first[5]


def as_written(text, median):
    """The median with as many decimals as the text has."""
    return f"{median:,.{len(text.partition('.')[2])}f}"


def prose(text):
    """The text without code, links, and rows of tables, which state questions and goals. It has as many lines."""
    text = re.sub(r"^(```.*?^```|    .*?)$", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    text = LINK.sub("", text)
    text = re.sub(r"`[^`\n]*(?:\n[^`\n]+)?`", lambda found: "\n" * found[0].count("\n"), text)
    return re.sub(r"^\|.*$", "", text, flags=re.M)


def vague(name, text):
    """(line, figure) of figures in words without a quote or command beside them. Goals don't count."""
    begin = text.find(IN_WORDS[name]) if name in IN_WORDS else -1
    for part in PART.finditer(text, begin) if begin >= 0 else []:
        if LINK.search(part[0]) or SHOWN.search(part[0]):
            continue
        words, line = prose(part[0]), text.count("\n", 0, part.start()) + 1
        for found in LOOSE_VAGUE.finditer(words):
            if not found[0].lower().startswith("goal"):
                yield line + words.count("\n", 0, found.start()), " ".join(found[0].split())


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--write", action="store_true")
    usage.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], metavar="FOLDER")
    options = usage.parse_args()
    trouble, exempt = [], set()
    for path in documents(options.root):
        name, text = path.relative_to(options.root).as_posix(), path.read_text(encoding="utf-8")

        def checked(found):
            value, unit, target, device, title = found.groups()
            median = rows(options.root / "bench/results" / device).get(title)
            right = None if median is None else as_written(value, median)
            if right is None:
                trouble.append(f'{name}: bench/results/{device} has no row "{title}"')
            elif right != value and not options.write:
                trouble.append(f'{name}: "{title}" is {right}, not {value}')
            return f'[{right or value}{unit}]({target} "{title}")'
        written = LINK.sub(checked, text)
        if options.write and written != text:
            path.write_text(written, encoding="utf-8")
        trouble += [f'{name}: "{title}" isn\'t in "{part}"' for part, title in unnamed(options.root, written)]
        trouble += [f'{name}: "{title}" is in "{part}"' for part, title in misplaced(options.root, written)]
        if IN_WORDS.get(name, "") not in written:
            trouble.append(f'{name}: no "{IN_WORDS[name]}" any more')
        trouble += [f'{name}:{number}: "{figure}" is a figure with neither a quote nor a command beside it'
                    for number, figure in vague(name, text)]
        text = prose(text)
        for found in LOOSE.finditer(text):
            figure, number = " ".join(found[0].split()), text.count("\n", 0, found.start()) + 1
            exempt.add((name, figure))
            if (name, figure) not in EXEMPT and figure not in VERSIONS:
                trouble.append(f'{name}:{number}: "{figure}" is a figure that isn\'t quoted from bench/results')
    if options.root == Path(__file__).resolve().parents[2]:
        trouble += [f'bench/tools/quoted.py: {name} has no "{figure}" any more'
                    for name, figure in sorted(set(EXEMPT) - exempt)]
    print("\n".join(trouble), file=sys.stderr)
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
