#!/usr/bin/env python3
"""Writes common/base/costs.h, the costs that gk chooses by, from the results that are checked in.

  bench/tools/costs.py [--results FOLDER] [--out FILE] [--check]

Each number has a rule that derives it from table P of bench/cuda/choices.c, for each folder of bench/results with that
table. The least number of all devices counts, so that no device becomes slower through another's number. If no device
was measured yet, the number is assumed, and the header says so. --check writes nothing; exit code 1: the file differs
from what would be written.
"""
import argparse
import json
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


# ---- rules: what a report's tables say, or None --------------------------------------------------------------------

def pairs(report, *whats):
    """{x: (median of the first way, of the second)} of tables with pairs of variants."""
    found = {}
    for table in report["tables"]:
        if table["id"] == "P" and table["what"].startswith(whats):
            variants = [variant for variant in table["variants"] if variant.get("median") is not None]
            for variant in variants:
                found.setdefault(variant["x"], []).append(variant["median"])
    return {x: tuple(both) for x, both in sorted(found.items()) if len(both) == 2}


def greatest(pairs_by_x, holds):
    """The last x up to which `holds` is true for every x; 0: it is false for the first."""
    last = 0
    for x in pairs_by_x:
        if not holds(x):
            break
        last = int(x)
    return last


def most_guarded(report):
    """A launch without a yield finds each segment open. A launch that yields and the one that resumes find it open once
    and closed once. In both cases guards must not cost more than an IF node."""
    opened, closed = pairs(report, "an open gate"), pairs(report, "a closed gate")
    if not opened or set(opened) != set(closed):
        return None

    def holds(x):
        by_guard, by_node = (opened[x][way] + closed[x][way] for way in (0, 1))
        return opened[x][0] <= opened[x][1] and by_guard <= by_node
    return greatest(opened, holds)


def small_bytes(report):
    copies = pairs(report, "a small copy")
    return greatest(copies, lambda x: copies[x][0] <= 1.05 * copies[x][1]) if copies else None


def spin_ns(report):
    """A thread that spins for as long as a wake-up takes waits at most twice as long as with the best choice."""
    for table in report["tables"]:
        if (table["id"], table["what"]) == ("P", "a wait that sleeps"):
            median = next((one.get("median") for one in table["variants"] if one["name"] == "the waking alone"), None)
            return None if median is None else max(0, int(round(median, -2)))
    return None


# Name, meaning, rule, the figure's name, the value until one is measured, and the reason for that value.
NUMBERS = [
    ("GKI_COST_MOST_GUARDED", "So many tasks of a segment read a guard themselves; more go behind one IF node.",
     most_guarded, "open and closed gates", 8,
     "an IF node is taken to cost as much as a few kernels that find their guard closed"),
    ("GKI_COST_SMALL_BYTES", "So many bytes are copied or filled by one warp as fast as by a grid.", small_bytes,
     "small copies", 256, "eight bytes per thread of a warp"),
    ("GKI_COST_SPIN_NS", "So long a wait looks at a status or an event before it asks the driver to sleep.", spin_ns,
     "a wait that sleeps", 20000, "waking a thread is taken to cost some tens of microseconds"),
]


# ---- writing --------------------------------------------------------------------------------------------------------

def reports(folder):
    """(file, report) of the runs without --quick."""
    for path in sorted(folder.glob("*/cuda_choices.json")):
        report = json.loads(path.read_text())
        if report.get("tables") and not report.get("quick"):
            yield path, report


def chosen(rule, found):
    """(value, file, report) of the device with the least, or None."""
    values = [(rule(report), path, report) for path, report in found]
    values = [one for one in values if one[0] is not None]
    return min(values, key=lambda one: (one[0], str(one[1]))) if values else None


def header(folder):
    found = list(reports(folder))
    lines = ["/* Written by bench/tools/costs.py from bench/results: what gk chooses by, and each number's source. */",
             "#ifndef GKI_BASE_COSTS_H", "#define GKI_BASE_COSTS_H", "", "enum {"]
    for name, what, rule, figure, assumed, why in NUMBERS:
        best = chosen(rule, found)
        value, source = assumed, f"Assumed, as no device was measured yet: {why}."
        if best:
            value, path, report = best
            device = report["device"]
            source = (f"Measured: {path.parent.name}/{path.name}, table P, {figure}; {device['gpu']}, "
                      f"{device['driver']}, commit {report['commit']}, {report['started'][:10]}.")
        lines += textwrap.wrap(f"/* {what} {source} */", 118, initial_indent="  ", subsequent_indent="   * ")
        lines += [f"  {name} = {value},"]
    return "\n".join([*lines, "};", "#endif", ""])


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--results", type=Path, default=ROOT / "bench/results", metavar="FOLDER")
    usage.add_argument("--out", type=Path, default=ROOT / "common/base/costs.h", metavar="FILE")
    usage.add_argument("--check", action="store_true")
    options = usage.parse_args()
    text = header(options.results)
    if options.check:
        same = options.out.exists() and options.out.read_text() == text
        return 0 if same else f"{options.out} isn't what bench/tools/costs.py makes of {options.results}"
    options.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
