"""The part of bench/tools/plot.py that reads the files: tables, variants, peers, and all judged ratios, in words."""
import json
import os
import sys
from pathlib import Path

import plot_goals
import run_peers

TITLES = {"M": "the machine", "F1": "small tasks", "F2": "large tasks", "F3": "a whole application",
          "F4": "tasks on Vulkan", "F5": "round trips on Vulkan", "F6": "before a list runs", "F7": "sections",
          "F8": "passes, checkpoints, yields", "F9": "passes, checkpoints, yields on Vulkan",
          "F11": "ranks of MPI", "F12": "codelets of StarPU", "K": "kernels on the host", "G": "how cost grows",
          "floor": "what the device takes", "C1": "a replay", "C2": "passes on CUDA",
          "C2a": "passes between reads of a flag on CUDA",
          "C3": "passes that decide themselves", "C4": "silent checkpoints", "C5": "tasks beside checkpoints",
          "C6": "yield round trip", "C7": "passes, with and without loops in graphs", "C8": "sections on CUDA",
          "C9": "building", "C10": "a slot bound anew", "C11": "whole applications",
          "C12": "what peers are held against", "P": "what gk chooses between", "C13": "how cost grows on CUDA"}
ROOT = Path(os.path.abspath(__file__)).parents[2]
UNITS = {"ns": "ns", "us": "µs", "ms": "ms", "s": "s", "bytes": "bytes"}
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def number(value):
    """The number with three digits."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 0.095 else 4}f}"


def beside(value, goal):
    """The same beside a goal, with more digits if three would put it on the goal or on its other side."""
    text = number(value)
    if value is None or value == goal:
        return text
    seen = float(text.replace(",", ""))
    return text if seen != goal and (seen > goal) == (value > goal) else f"{value:.4f}"


def read_json(path):
    try:
        return json.loads(path.read_text())
    except ValueError as why:
        sys.exit(f"{Path(sys.argv[0]).name}: {path} is no JSON, perhaps cut off ({why}): measure it anew, or delete it")


def load(folder):
    """Reports by name; those without tables are the peers'."""
    reports = {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
    if not any(report.get("tables") for report in reports.values()):
        sys.exit(f"bench/tools/plot.py: there are no figures in {folder}")
    return reports


def tables_of(reports):
    """All tables. Each has a mark whether it ran on a device of its own."""
    tables = [dict(table, on_device="gpu" in report.get("device", {})) for report in reports.values()
              for table in report.get("tables", [])]
    order = list(TITLES)
    return sorted(tables, key=lambda table: order.index(table["id"]) if table["id"] in order else len(order))


def peer_rows(reports):
    """(peer, version, row) of all rows, measured or missing."""
    for peer in reports.get("peers", {}).get("peers", []):
        for row in peer.get("rows", []):
            yield peer["peer"], peer["version"], row


def is_of(row_of_peer, table):
    return (row_of_peer["table"], row_of_peer["what"]) == (table["id"], table["what"])


def ways(row_of_peer):
    """A row of the peer's fastest configuration, and of the others."""
    return [row_of_peer, *row_of_peer.get("others", [])]


def variant_called(table, name):
    return next((variant for variant in table["variants"] if variant["name"] == name),
                {"name": name, "median": None, "missing": "it isn't in the table"})


def measured_of(table):
    return [variant for variant in table["variants"] if "missing" not in variant]


def missing_of(table):
    return [variant for variant in table["variants"] if "missing" in variant]


def against_of(table, ratio):
    """The variant that a ratio is taken against. If rounds have different ones: the fastest over all rounds."""
    variants = [variant_called(table, name) for name in ratio.get("rounds against", [ratio["against"]])]
    return min((one for one in variants if one.get("median") is not None), key=lambda one: one["median"], default=None)


def base_of(table):
    """The variant that is 1: that of the first ratio, else the first one; never a variant that is lost in noise."""
    variants = [one for one in (against_of(table, ratio) for ratio in table["ratios"] if ratio["against"]) if one]
    variants += measured_of(table)
    none = variants[0] if variants else {"name": "", "median": None}
    return next((variant for variant in variants if (variant["median"] or 0) > 0), none)


def is_absolute(table):
    """Whether the table is shown in its own unit: it has a goal in this unit, or ran on a device that isn't shared."""
    return table.get("on_device") or any(ratio["goal"] and not ratio["against"] and ratio["median"] is not None
                                         for ratio in table["ratios"])


def floor_of(table):
    """The floor on the axis of the bars, or None."""
    floor, scale = table.get("floor", {}).get("least"), 1 if is_absolute(table) else base_of(table)["median"]
    return floor / scale if floor and scale else None


def kind_of(name):
    return "gk" if name.startswith("gk") or name == "kernel" or name.endswith("tasks") else "hand"


def bars_of(table, reports):
    """(name, kind, median, p5, p95) of variants and of peers' rows, as multiples of the base or as they are."""
    scale = 1 if is_absolute(table) else base_of(table)["median"]
    bars = [(variant["name"], kind_of(variant["name"]), variant) for variant in measured_of(table)]
    bars += [(f"{peer}, {way['how']}", "peer", way) for peer, _, one in peer_rows(reports)
             if is_of(one, table) and one.get("unit") == table["unit"] for way in ways(one)]
    return [(name, kind, *(figure[part] / scale for part in ("median", "p5", "p95"))) for name, kind, figure in bars
            if scale and None not in (figure["median"], figure["p5"], figure["p95"])]


def peer_goals(table, reports):
    """(its report, name, variant of ours, goal, row) of every goal that names a peer, installed or not."""
    peers = {report["peer"]: report for report in reports.get("peers", {}).get("peers", [])}
    for (ident, what, name), goal in run_peers.GOALS.items():
        if (ident, what) == (table["id"], table["what"]):
            report = peers.get(name, {"missing": "it wasn't asked for"})
            one = next((one for one in report.get("rows", []) if is_of(one, table)), None)
            yield report, name, run_peers.OURS[ident, what][1], goal, one


def outcome(ratio):
    """The verdict in words. If some rounds had none, with their number."""
    lost = ratio.get("verdicts", []).count("lost")
    rest = f"; {lost} of {len(ratio['verdicts'])} rounds lost in noise" if lost and ratio["verdict"] != "lost" else ""
    return verdict_in_words(ratio) + rest


def verdict_in_words(ratio):
    if ratio["verdict"] == "undecided":
        return f"undecided: missed in {ratio['verdicts'].count('missed')} of {len(ratio['verdicts'])} rounds"
    if ratio["verdict"] == "met" and ratio["median"] is not None and ratio["median"] <= 0:
        return "below nothing"
    return {"none": "not judged", "lost": "lost in noise"}.get(ratio["verdict"], ratio["verdict"])


def why_no_ratio(table, ratio):
    """The reason for a missing ratio: it is lost in noise if the variant that it is taken against came out as 0."""
    if "along" in table:
        return "not measured" if missing_of(table) else "not judged"
    there = against_of(table, ratio) and "missing" not in variant_called(table, ratio["of"])
    return "lost in noise" if there else "not measured"


def why_no_ratio_to(report, one, variant):
    """The same for a goal that names a peer. It gets the peer's report and row, or None, and our figure."""
    if "missing" in variant:
        return f"not measured: {variant['missing']}"
    if one and "missing" not in one:
        return "lost in noise"
    failed = [failure["why"] for failure in report.get("failed", [])]
    return "not measured: " + ((one or report).get("missing") or "; ".join(failed) or "it has no such row")


def verdict_text(ratio, unit=""):
    return f"{beside(ratio['median'], ratio['goal'])}{unit}, goal {ratio['goal']:g}{unit}: {outcome(ratio)}"


def unit_of(figure, scale):
    """The factor from a ratio against this figure to the axis of the bars; None if the figure is 0."""
    return figure["median"] / scale if figure and scale and figure["median"] > 0 else None


def marks_of(table, reports):
    """All judged ratios. The figure that a ratio is taken against gives its place on the axis of the bars."""
    scale = 1 if is_absolute(table) else base_of(table)["median"]
    for ratio in table["ratios"]:
        if not ratio["goal"]:
            continue
        variant = against_of(table, ratio) if ratio["against"] else {"median": 1}
        unit = None if "along" in table else unit_of(variant, scale)
        named = "" if ratio["against"] else " " + UNITS.get(table["unit"], table["unit"])
        there = ratio["median"] is not None or ratio["verdict"] != "none"
        text = verdict_text(ratio, named) if there else why_no_ratio(table, ratio)
        label = f"{ratio['of']} against {ratio['against']}" if ratio["what"] == ratio["of"] else ratio["what"]
        yield plot_goals.Mark(label, ratio["of"], ratio["median"], ratio["p5"], ratio["p95"], ratio["goal"],
                              unit, ratio["verdict"], text, not ratio["against"])
    for report, name, variant, goal, one in peer_goals(table, reports):
        ratio, label = (one or {}).get("ratio"), f"{variant} against {name}"
        if ratio:
            yield plot_goals.Mark(label, variant, ratio["median"], ratio["least"], ratio["most"], goal,
                                  unit_of(one, scale), ratio["verdict"], verdict_text(ratio), False)
        else:
            why = why_no_ratio_to(report, one, variant_called(table, variant)).partition(":")[0]
            yield plot_goals.Mark(label, variant, None, None, None, goal, None, "none", why, False)
