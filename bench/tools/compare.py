#!/usr/bin/env python3
"""Compares two folders of results: what got slower, what got faster, and what is noise.

  bench/tools/compare.py BEFORE AFTER [--times]

It compares bytes and the ratios of each table. Ratios are taken turn by turn, so they are the same on a fast day and on
a slow one. --times also compares the variants' own times, and goals that are times, which is useful only on the same
machine and day. A change counts if it is larger than the noise. The noise of one side is half of the distance between
quartiles, or half of the distance between rounds if that is more, relative to the median. Two sides add up like
independent errors, and the noise is at least two percent. For a ratio to a peer it is the distance between rounds, or
with one round the noise of both variants. Nothing counts if the noise is unknown or the figure was lost in noise. A
difference of 0 or less has no factor and doesn't count. The noise of one machine doesn't cover differences between two
machines, so these are printed: names, Linux, compiler, flags, and the measured floor. Exit code 1: something got
slower.
"""
import argparse
import math
import statistics
import sys
from collections import namedtuple
from pathlib import Path

import plot_figures

LEAST = 0.02
FLOOR = 1.25  # times as much: quiet runs of one machine, hours apart, differed by less

Figure = namedtuple("Figure", "median noise")  # noise: relative


def noise_of(figure, low="p25", high="p75"):
    """Half of the distance between the quartiles, relative."""
    if not figure or None in (figure.get(low), figure.get(high)) or not figure["median"]:
        return math.inf
    return abs(figure[high] - figure[low]) / 2 / abs(figure["median"])


def apart(medians, median):
    """Half of the distance between rounds, relative."""
    if None in (medians or []):
        return math.inf
    if len(medians or []) < 2 or not median:
        return 0
    return (max(medians) - min(medians)) / 2 / abs(median)


def noise_in_all(figure):
    if figure.get("median") is None or figure.get("verdict") == "lost":
        return math.inf
    return max(noise_of(figure), apart(figure.get("medians"), figure["median"]))


def noise_to_peer(row, ours):
    """The noise of the ratio in a peer's row. One round has no distance between rounds, but each side has turns."""
    if row["ratio"].get("noise"):
        return math.inf
    if row["ratio"]["rounds"] > 1:
        return noise_of(row["ratio"], "least", "most")
    return math.hypot(noise_of(row), noise_of(ours))


def reports_of(folder):
    return [plot_figures.read_json(path) for path in sorted(folder.glob("*.json"))]


def names_of(reports):
    """The names of the GPUs, or else of the CPUs."""
    gpus = [report["device"]["gpu"] for report in reports if "gpu" in report.get("device", {})]
    machines = [report["machine"] for report in reports if report.get("tables") and "machine" in report]
    cpus = [f"{one.get('cpu', 'unknown')}, {one.get('cores', '?')} cores" for one in machines]
    return list(dict.fromkeys(gpus or cpus or ["unknown"]))


def runs_of(reports):
    """The dates and commits of the runs."""
    return list(dict.fromkeys(f"commit {one.get('commit', 'unknown')}, {one.get('started', 'no date')}"
                              for one in reports if one.get("tables")))


def facts_of(reports, *names):
    """The facts with these names about the machines."""
    return sorted({", ".join(report["machine"][name] for name in names) for report in reports
                   if report.get("tables") and set(names) <= set(report.get("machine", {}))})


def floors_of(reports):
    """Medians over all programs by name."""
    found = {}
    for report in reports:
        for variant in report.get("floor", {}).get("variants", []):
            found.setdefault(variant["name"], []).append(variant["median"])
    return {name: statistics.median(medians) for name, medians in found.items() if None not in medians}


def differences(before, after, times):
    """The differences between the two machines, in words."""
    if names_of(before) != names_of(after):
        yield "not the same machine: " + ("times of the one say nothing about the other" if times else
                                          "ratios may differ for that alone")
    for what, names in (("kernel", ["kernel"]), ("compiler or flags", ["compiler", "flags"])):
        each = facts_of(before, *names), facts_of(after, *names)
        if all(each) and each[0] != each[1]:
            yield f"not the same {what}: {'; '.join(each[0])} before, {'; '.join(each[1])} after"
    floors = floors_of(before), floors_of(after)
    for name in floors[0]:
        old, new = floors[0][name], floors[1].get(name)
        if new and old and not 1 / FLOOR <= new / old <= FLOOR:
            yield f"not as fast a machine, or not as quiet: {name} took {new / old:.2f} times as much after"


def absent(reports):
    """The reasons for missing figures, by program or (table, what, variant)."""
    found = {(report["program"],): report["missing"] for report in reports if "missing" in report}
    for report in reports:
        found.update({(table["id"], table["what"], one["name"]): one["missing"] for table in report.get("tables", [])
                      for one in table["variants"] if "missing" in one})
        found.update({(peer["peer"],): peer["missing"] for peer in report.get("peers", []) if "missing" in peer})
    return found


def absent_lines(before, after):
    """A line for each reason, with the figures that are missing before, after, or in both."""
    lines = {}
    for key in sorted({*before, *after}):
        for whys, when in (({before.get(key)} & {after.get(key)}, "before and after"),
                           ({before.get(key)} - {after.get(key)}, "before"),
                           ({after.get(key)} - {before.get(key)}, "after")):
            for why in whys - {None}:
                lines.setdefault((when, why), []).append(", ".join(key))
    return [f"not measured {when}: {'; '.join(names)}: {why}" for (when, why), names in lines.items()]


def is_relative(table, ratio):
    """Whether the figure is a ratio, or no time."""
    return bool(ratio.get("against", "?")) or table.get("unit") == "bytes"


def figures_of(reports, times):
    """Figures by (table, what, which)."""
    found = {}
    tables = [table for report in reports for table in report.get("tables", [])]
    variants = {(table["id"], table["what"], one["name"]): one for table in tables for one in table["variants"]}

    def add(figure, noise, *key):
        if figure.get("median") is not None:
            found[key] = Figure(figure["median"], noise)
    for report in reports if times else []:
        for variant in report.get("floor", {}).get("variants", []):
            add(variant, noise_in_all(variant), "floor", report["program"], variant["name"])
    for table in tables:
        if times:
            for figure in table["variants"]:
                add(figure, noise_in_all(figure), table["id"], table["what"], figure["name"])
        for figure in table["ratios"]:
            if times != is_relative(table, figure):
                add(figure, noise_in_all(figure), table["id"], table["what"], figure["what"])
    for peer in [peer for report in reports for peer in report.get("peers", [])]:
        for row in peer.get("rows", []):
            key = row["table"], row["what"]
            if times:
                add(row, noise_in_all(row), *key, peer["peer"])
            elif "ratio" in row:
                noise = noise_to_peer(row, variants.get((*key, row["ratio"]["of"])))
                add(row["ratio"], noise, *key, f"gk against {peer['peer']}")
    return found


def changes(before, after):
    """(factor, noise, key) of the figures that are above 0 in both."""
    for key in set(before) & set(after):
        old, new = before[key], after[key]
        if min(old.median, new.median) > 0:
            yield new.median / old.median, max(LEAST, math.hypot(old.noise, new.noise)), key


def below(before, after):
    """(key, before, after) of the figures in both of which one is 0 or less, and which so have no factor."""
    for key in sorted(set(before) & set(after)):
        old, new = before[key].median, after[key].median
        if min(old, new) <= 0:
            yield key, old, new


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("before", type=Path)
    usage.add_argument("after", type=Path)
    usage.add_argument("--times", action="store_true", help="times instead of ratios")
    options = usage.parse_args()
    both = [reports_of(folder) for folder in (options.before, options.after)]
    before, after = (figures_of(reports, options.times) for reports in both)
    for folder, figures in ((options.before, before), (options.after, after)):
        if not figures:
            sys.exit(f"bench/tools/compare.py: there are no figures in {folder}")
    for when, reports in zip(("before", "after"), both):
        print(f"{when}: {'; '.join(names_of(reports))}, {'; '.join(runs_of(reports))}")
    for line in differences(*both, options.times):
        print(line)
    for when, reports in zip(("before", "after"), both):
        if any(report.get("quick") for report in reports):
            print(f"{when} is by --quick: its figures mean nothing")
    known = sorted(changes(before, after), reverse=True)
    slower = [change for change in known if change[0] > 1 + change[1]]
    faster = [change for change in reversed(known) if change[0] < 1 / (1 + change[1])]
    for title, group in (("slower", slower), ("faster", faster)):
        for times, noise, key in group:
            print(f"{title}: {', '.join(key)}: {times:.3f} times as much (noise {100 * noise:.0f} %)")
    lost = list(below(before, after))
    for key, old, new in lost:
        if max(old, new) > 0:
            print(f"from {old:g} to {new:g}: {', '.join(key)}")
        elif old != new:
            print(f"lost in noise: {', '.join(key)}: {old:g} before, {new:g} after")
    missing = [*(set(before) - set(after)), *(set(after) - set(before))]
    for key in sorted(missing):
        print(f"only {'before' if key in before else 'after'}: {', '.join(key)}")
    for line in absent_lines(*map(absent, both)):
        print(line)
    unknown = sum(noise == math.inf for _, noise, _ in known)
    print(f"{len(known) + len(lost)} figures in both: {len(slower)} slower, {len(faster)} faster, "
          f"{len(known) - len(slower) - len(faster) - unknown} within the noise" +
          (f", {unknown} of unknown noise" if unknown else "") + (f", {len(lost)} at 0 or below" if lost else ""))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
