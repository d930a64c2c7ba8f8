#!/usr/bin/env python3
"""Compares two folders of results: what got slower, what got faster, and what is noise.

  bench/compare.py BEFORE AFTER [--times]

Held together are the ratios of each table, since they were taken turn by turn and so say the same on a fast day and on
a slow one; --times does it for the arms' own times, which say something only if machine and day are the same. A change
counts if it is larger than the noise: half of the quartiles' distance on each side, relative to the median, both
together as independent errors are, and never less than two percent. A ratio to a peer has instead how far its rounds
are apart, or of one round what our arm and the peer's have together. Where that isn't known, nothing counts; nor does
a difference that came out at 0 or below, which no factor is said of. Exit code 1: something got slower.
"""
import argparse
import json
import math
import sys
from collections import namedtuple
from pathlib import Path

LEAST = 0.02

Figure = namedtuple("Figure", "median noise")  # noise: relative


def noise_of(figure, low="p25", high="p75"):
    """Half of the distance between the quartiles, relative."""
    if not figure or None in (figure.get(low), figure.get(high)) or not figure["median"]:
        return math.inf
    return abs(figure[high] - figure[low]) / 2 / abs(figure["median"])


def noise_to_peer(row, ours):
    """Of the ratio in a peer's row. One round is no distance apart from itself, but each side has its turns."""
    if row["ratio"]["rounds"] > 1:
        return noise_of(row["ratio"], "least", "most")
    return math.hypot(noise_of(row), noise_of(ours))


def reports_of(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def about(reports):
    """What was measured, when, of which commit."""
    report = next((one for one in reports if one.get("tables")), {})
    machine = report.get("machine", {})
    name = report.get("device", {}).get("gpu") or f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores"
    return name, f"commit {report.get('commit', 'unknown')}, {report.get('started', 'no date')}"


def absent(reports):
    """Why what isn't there wasn't measured, by program or (table, what, arm)."""
    found = {(report["program"],): report["missing"] for report in reports if "missing" in report}
    for report in reports:
        found.update({(table["id"], table["what"], arm["name"]): arm["missing"] for table in report.get("tables", [])
                      for arm in table["arms"] if "missing" in arm})
        found.update({(peer["peer"],): peer["missing"] for peer in report.get("peers", []) if "missing" in peer})
    return found


def figures_of(reports, times):
    """Figures by (table, what, which)."""
    found = {}
    tables = [table for report in reports for table in report.get("tables", [])]
    arms = {(table["id"], table["what"], arm["name"]): arm for table in tables for arm in table["arms"]}

    def add(figure, noise, *key):
        if figure.get("median") is not None:
            found[key] = Figure(figure["median"], noise)
    for report in reports if times else []:
        for arm in report.get("floor", {}).get("arms", []):
            add(arm, noise_of(arm), "floor", report["program"], arm["name"])
    for table in tables:
        for figure in table["arms" if times else "ratios"]:
            add(figure, noise_of(figure), table["id"], table["what"], figure["name" if times else "what"])
    for peer in [peer for report in reports for peer in report.get("peers", [])]:
        for row in peer.get("rows", []):
            key = row["table"], row["what"]
            if times:
                add(row, noise_of(row), *key, peer["peer"])
            elif "ratio" in row:
                noise = noise_to_peer(row, arms.get((*key, row["ratio"]["of"])))
                add(row["ratio"], noise, *key, f"gk against {peer['peer']}")
    return found


def changes(before, after):
    """(how many times as much, noise, key) of what both have above 0."""
    for key in set(before) & set(after):
        old, new = before[key], after[key]
        if min(old.median, new.median) > 0:
            yield new.median / old.median, max(LEAST, math.hypot(old.noise, new.noise)), key


def below(before, after):
    """(key, before, after) of what both have where one is 0 or below: no factor says how much."""
    for key in sorted(set(before) & set(after)):
        old, new = before[key].median, after[key].median
        if min(old, new) <= 0:
            yield key, old, new


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("before", type=Path)
    usage.add_argument("after", type=Path)
    usage.add_argument("--times", action="store_true", help="the arms' own times")
    options = usage.parse_args()
    both = [reports_of(folder) for folder in (options.before, options.after)]
    before, after = (figures_of(reports, options.times) for reports in both)
    for folder, figures in ((options.before, before), (options.after, after)):
        if not figures:
            sys.exit(f"bench/compare.py: there are no figures in {folder}")
    machines = [about(reports) for reports in both]
    for when, (machine, rest) in zip(("before", "after"), machines):
        print(f"{when}: {machine}, {rest}")
    if machines[0][0] != machines[1][0]:
        print("not the same machine: " + ("times of the one say nothing about the other" if options.times else
                                          "ratios may differ for that alone"))
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
    for when, reports in zip(("before", "after"), both):
        for key, why in sorted(absent(reports).items()):
            print(f"not measured {when}: {', '.join(key)}: {why}")
    unknown = sum(noise == math.inf for _, noise, _ in known)
    print(f"{len(known) + len(lost)} figures in both: {len(slower)} slower, {len(faster)} faster, "
          f"{len(known) - len(slower) - len(faster) - unknown} within the noise" +
          (f", {unknown} of unknown noise" if unknown else "") + (f", {len(lost)} at 0 or below" if lost else ""))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
