#!/usr/bin/env python3
"""Draws bench/results/<device>/ and writes its README.md, from the JSON files there alone.

  bench/plot.py FOLDER ...

Times are shown as multiples of an arm of the same table, since how fast a shared machine was on that day says nothing.
The plots need matplotlib, of this Python or of another that is found. Where none has it, a page that shows plots stays
as it is, and the exit code is 1; a new one says that it has none.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import plot_goals
import plot_growth
import run_peers

TITLES = {"M": "the machine", "F1": "small tasks", "F2": "large tasks", "F3": "a whole application",
          "F6": "before a list runs", "F7": "sections", "F8": "passes, checkpoints, yields", "K": "kernels on the host",
          "G": "how cost grows", "floor": "what the device takes", "C1": "a replay", "C2": "passes on CUDA",
          "C3": "passes that decide themselves", "C4": "silent checkpoints", "C5": "tasks beside checkpoints",
          "C6": "yield round trip", "C7": "passes, and who has none", "C8": "sections on CUDA",
          "C9": "building", "C10": "a slot bound anew", "C11": "whole applications",
          "C12": "what peers are held against", "P": "what gk chooses between", "C13": "how cost grows on CUDA"}
COLOURS = {"gk": "#3b6ea8", "hand": "#9aa3ad", "peer": "#d08a3e", "floor": "#7d4fa0"}
ROOT = Path(os.path.abspath(__file__)).parent.parent
PYTHONS = [sys.executable, "/usr/bin/python3", str(run_peers.VENV / "bin/python")]
UNITS = {"ns": "ns", "us": "µs", "ms": "ms", "s": "s", "bytes": "bytes"}


def number(value):
    """Three figures, as people write them."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 0.095 else 4}f}"


def beside(value, goal):
    """The same beside a goal, with more of them where three figures would put it on the goal or on its other side."""
    text = number(value)
    if value is None or value == goal:
        return text
    seen = float(text.replace(",", ""))
    return text if seen != goal and (seen > goal) == (value > goal) else f"{value:.4f}"


# ---- what the files say ---------------------------------------------------------------------------------------------

def read_json(path):
    try:
        return json.loads(path.read_text())
    except ValueError as why:
        sys.exit(f"{Path(sys.argv[0]).name}: {path} is no JSON, perhaps cut off ({why}): measure it anew, or delete it")


def load(folder):
    """Reports by name; those without tables are the peers'."""
    reports = {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
    if not any(report.get("tables") for report in reports.values()):
        sys.exit(f"bench/plot.py: there are no figures in {folder}")
    return reports


def tables_of(reports):
    """Each knows whether a device of its own ran it."""
    tables = [dict(table, on_device="device" in report) for report in reports.values()
              for table in report.get("tables", [])]
    order = list(TITLES)
    return sorted(tables, key=lambda table: order.index(table["id"]) if table["id"] in order else len(order))


def peer_rows(reports):
    """(peer, version, row) of all that was measured or is missing."""
    for peer in reports.get("peers", {}).get("peers", []):
        for row in peer.get("rows", []):
            yield peer["peer"], peer["version"], row


def is_of(row_of_peer, table):
    return (row_of_peer["table"], row_of_peer["what"]) == (table["id"], table["what"])


def ways(row_of_peer):
    """A row where its peer was fastest, and where it wasn't."""
    return [row_of_peer, *row_of_peer.get("others", [])]


def arm_called(table, name):
    return next((arm for arm in table["arms"] if arm["name"] == name),
                {"name": name, "median": None, "missing": "it isn't in the table"})


def measured_of(table):
    return [arm for arm in table["arms"] if "missing" not in arm]


def missing_of(table):
    return [arm for arm in table["arms"] if "missing" in arm]


def against_of(table, ratio):
    """The arm that a ratio is held against: where rounds were against several, the fastest of all rounds."""
    arms = [arm_called(table, name) for name in ratio.get("rounds against", [ratio["against"]])]
    return min((arm for arm in arms if arm.get("median") is not None), key=lambda arm: arm["median"], default=None)


def base_of(table):
    """The arm that is 1: what the first ratio is about, else the first; not one that is lost in noise."""
    arms = [arm for arm in (against_of(table, ratio) for ratio in table["ratios"] if ratio["against"]) if arm]
    arms += measured_of(table)
    none = arms[0] if arms else {"name": "", "median": None}
    return next((arm for arm in arms if (arm["median"] or 0) > 0), none)


def is_absolute(table):
    """A table with a goal in its own unit is shown in that, and one of a device that nobody shares."""
    return table.get("on_device") or any(ratio["goal"] and not ratio["against"] and ratio["median"] is not None
                                         for ratio in table["ratios"])


def floor_of(table):
    """What no arm can be below, on the axis of the bars; or None."""
    floor, scale = table.get("floor", {}).get("least"), 1 if is_absolute(table) else base_of(table)["median"]
    return floor / scale if floor and scale else None


def kind_of(name):
    return "gk" if name.startswith("gk") or name == "kernel" or name.endswith("tasks") else "hand"


def bars_of(table, reports):
    """(name, kind, median, p5, p95) of arms and of peers' rows, as multiples of the base or as they are."""
    scale = 1 if is_absolute(table) else base_of(table)["median"]
    bars = [(arm["name"], kind_of(arm["name"]), arm) for arm in measured_of(table)]
    bars += [(f"{peer}, {way['how']}", "peer", way) for peer, _, one in peer_rows(reports)
             if is_of(one, table) and one.get("unit") == table["unit"] for way in ways(one)]
    return [(name, kind, *(figure[part] / scale for part in ("median", "p5", "p95"))) for name, kind, figure in bars
            if scale and None not in (figure["median"], figure["p5"], figure["p95"])]


def peer_goals(table, reports):
    """Of every goal that names a peer, whether or not it was there: (its report, name, arm of ours, goal, row)."""
    peers = {report["peer"]: report for report in reports.get("peers", {}).get("peers", [])}
    for (ident, what, name), goal in run_peers.GOALS.items():
        if (ident, what) == (table["id"], table["what"]):
            report = peers.get(name, {"missing": "it wasn't asked for"})
            one = next((one for one in report.get("rows", []) if is_of(one, table)), None)
            yield report, name, run_peers.OURS[ident, what][1], goal, one


def verdict_text(ratio, unit=""):
    return f"{beside(ratio['median'], ratio['goal'])}{unit}, goal {ratio['goal']:g}{unit}: {outcome(ratio)}"


def unit_of(figure, scale):
    """What is held against a figure is so many times as much on the axis of the bars; None where it is nothing."""
    return figure["median"] / scale if figure and scale and figure["median"] > 0 else None


def marks_of(table, reports):
    """All that is judged. Where they lie on the axis of the bars is said by what they are held against."""
    scale = 1 if is_absolute(table) else base_of(table)["median"]
    for ratio in table["ratios"]:
        if not ratio["goal"]:
            continue
        arm = against_of(table, ratio) if ratio["against"] else {"median": 1}
        unit = None if "along" in table else unit_of(arm, scale)
        named = "" if ratio["against"] else " " + UNITS.get(table["unit"], table["unit"])
        there = ratio["median"] is not None or ratio["verdict"] != "none"
        text = verdict_text(ratio, named) if there else why_no_ratio(table, ratio)
        label = f"{ratio['of']} against {ratio['against']}" if ratio["what"] == ratio["of"] else ratio["what"]
        yield plot_goals.Mark(label, ratio["of"], ratio["median"], ratio["p5"], ratio["p95"], ratio["goal"],
                              unit, ratio["verdict"], text, not ratio["against"])
    for report, name, arm, goal, one in peer_goals(table, reports):
        ratio, label = (one or {}).get("ratio"), f"{arm} against {name}"
        if ratio:
            yield plot_goals.Mark(label, arm, ratio["median"], ratio["least"], ratio["most"], goal,
                                  unit_of(one, scale), ratio["verdict"], verdict_text(ratio), False)
        else:
            why = why_no_ratio_to(report, one, arm_called(table, arm)).partition(":")[0]
            yield plot_goals.Mark(label, arm, None, None, None, goal, None, "none", why, False)


# ---- plots ----------------------------------------------------------------------------------------------------------

def rows_of(table, reports):
    """(name, bar, mark) of each line of a plot: what is judged is beneath its arm; without both, an arm is missing."""
    marks = list(marks_of(table, reports))
    arms = [(bar[0], bar) for bar in bars_of(table, reports)] + [(arm["name"], None) for arm in missing_of(table)]
    for name, bar in arms:
        yield name, bar, None
        yield from ((mark.label, None, mark) for mark in marks if mark.of == name)


def draw_table(axes, table, reports):
    rows, bound = list(rows_of(table, reports)), floor_of(table)
    bars = [bar for _, bar, _ in rows if bar]
    marks = [mark for _, _, mark in rows if mark and None not in (mark.median, mark.unit)]
    medians, longest = [bar[2] for bar in bars], max(abs(bar[2]) for bar in bars)
    judged = [value * mark.unit for mark in marks for value in (mark.median, mark.goal)]
    most = max([3 * longest, *judged])  # a turn that went wrong is no reason to make all bars short
    ends = [bar[4] for bar in bars] + [mark.high * mark.unit for mark in marks if mark.high is not None]
    last = max([*judged, *medians, bound or 0, *(min(end, most) for end in ends)])
    last = last if last > 0 else 1
    if longest > 12 * min(max(median, 1e-9) for median in medians):
        limits = min(value for value in (*judged, *medians, longest) if value > 0) / 4, last
        axes.set_xscale("log")
        axes.set_xlim(limits[0], last * 4)
    else:
        limits = min([0, *judged, *medians, *(max(bar[3], -most / 10) for bar in bars)]), last
        axes.set_xlim(limits[0], last * 1.15)
    for place, (name, bar, mark) in enumerate(rows):
        if mark:
            plot_goals.draw_mark(axes, place, mark, limits, mark.unit)
        elif bar:
            _, kind, median, low, high = bar
            if axes.get_xscale() == "log":  # where a bar begins at no figure, so that its length means nothing
                axes.plot([limits[0], max(median, limits[0])], [place, place], color=COLOURS[kind], linewidth=0.8)
                axes.plot(max(median, limits[0]), place, marker="o", color=COLOURS[kind], markersize=8)
            else:
                axes.barh(place, median, color=COLOURS[kind], height=0.66, left=0)
            plot_goals.draw_spread(axes, place, low, high, limits, "#222222")
            cut = f" (to {number(high)})" if high > limits[1] else ""
            axes.annotate(number(median) + cut, (max(median, min(high, limits[1]), limits[0]), place), xytext=(6, 0),
                          textcoords="offset points", va="center", fontsize=8)
        else:
            axes.annotate("not measured", (0, place), xycoords=("axes fraction", "data"), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=8, color="#777777")
    if bound:
        axes.axvline(bound, color=COLOURS["floor"], linestyle=":", linewidth=1.6)
        axes.annotate("floor", (bound, -0.55), color=COLOURS["floor"], fontsize=8, ha="right", va="bottom",
                      annotation_clip=False)
    plot_goals.tidy(axes, [name for name, _, _ in rows],
                    [plot_goals.COLOURS[mark.verdict] if mark else "#222222" for _, _, mark in rows])
    unit = UNITS.get(table["unit"], table["unit"])
    axes.set_xlabel(unit if is_absolute(table) else f"times {base_of(table)['name']}", fontsize=8)
    axes.set_title(table["what"], fontsize=9, loc="left", pad=14)


def save(pyplot, figure, folder, ident):
    """The picture's name."""
    path = folder / f"{ident}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text("".join(line.rstrip() + "\n" for line in path.read_text().splitlines()))
    pyplot.close(figure)
    return path.name


def python_that_draws():
    """One that has matplotlib: this one, Debian's, or the peers'; or None."""
    def draws(python):
        try:
            return subprocess.run([python, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False
    return next((python for python in PYTHONS if draws(python)), None)


def judged_together(tables, reports):
    """(name, mark) of all that is judged where it has a plot of its own: goals on one scale, beside curves, or of more
    tables than can be seen at a glance."""
    rows = [(table["what"], mark) for table in tables for mark in marks_of(table, reports)]
    if all(mark.median is None for _, mark in rows) or any(mark.absolute for _, mark in rows):
        return []
    return rows if len(tables) > 3 or all(map(plot_growth.grows, tables)) else []


def draw_tables(pyplot, tables, reports, title):
    heights = [1.0 + 0.3 * len(list(rows_of(table, reports))) for table in tables]
    figure, axes = pyplot.subplots(len(tables), 1, figsize=(8.5, sum(heights) + 0.4), squeeze=False,
                                   gridspec_kw={"height_ratios": heights})
    for table, one in zip(tables, axes[:, 0]):
        draw_table(one, table, reports)
    plot_goals.head(figure, title, plot_goals.LEGEND)
    return figure


def draw(folder, reports):
    """Of each table id the names of its pictures: what is judged, if that has one, and all arms."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gk", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot
    names = {}
    tables = tables_of(reports)
    for ident in dict.fromkeys(table["id"] for table in tables):
        same, title = [table for table in tables if table["id"] == ident], f"{ident}: {TITLES.get(ident, '')}"
        own = [table for table in same if bars_of(table, reports)]
        if not own:
            continue
        judged, grows = judged_together(same, reports), all(plot_growth.grows(table) for table in own)
        if judged:
            axis = "what one more takes, times one more before" if grows else "times what it is held against"
            figure = plot_goals.draw_all(pyplot, judged, f"{title}: what is judged", f"{axis}; less is better")
            names[ident] = [save(pyplot, figure, folder, ident)]
        figure = plot_growth.draw(pyplot, own, title, UNITS) if grows else draw_tables(pyplot, own, reports, title)
        names.setdefault(ident, []).append(save(pyplot, figure, folder, f"{ident}-arms" if judged else ident))
    return names


# ---- README.md ------------------------------------------------------------------------------------------------------

def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def head(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def told_apart(reports, line):
    """A line, if it is of all reports; else each that there is, with the programs that it is of."""
    programs = {}
    for name, report in reports.items():
        programs.setdefault(line(report), []).append(f"`{name}`")
    *few, most = sorted(programs, key=lambda said: len(programs[said]))
    for said in few:
        yield f"- {said} ({', '.join(programs[said])})"
    yield f"- {most}" + (" (all others)" if few else "")


def clock_of(reports):
    """How long readings take varies, so from the least to the greatest."""
    for clock in sorted({re.sub(r"\d+ ns$", "{} ns", report["machine"]["clock"]) for report in reports.values()}):
        took = sorted({int(found[1]) for report in reports.values()
                       if (found := re.search(r"(\d+) ns$", report["machine"]["clock"]))})
        yield "- " + clock.format(" to ".join(map(str, dict.fromkeys((took or [0])[::max(1, len(took) - 1)]))))


def begun(report):
    count = report.get("rounds", 1)  # what a program itself wrote has none, nor what else is asked for here
    rounds = f"{count} round" + ("s" if count != 1 else "")
    load = f"; load average at the end: {report['machine']['load']:.1f}" if "load" in report["machine"] else ""
    return f"begun {report.get('started', 'unknown')}, commit {report.get('commit', 'unknown')}, {rounds}{load}"


def machine_lines(reports):
    own = {name: report for name, report in reports.items() if report.get("tables")}
    timed = {**own, **{name: report for name, report in reports.items()
                      if report.get("peers") and "machine" in report}}
    device = next((one["device"] for one in reports.values() if "device" in one), None)
    if any(one.get("quick") for one in reports.values()):
        yield "- **by `--quick`: all of it ran and was right, and the figures mean nothing**"
    if device:
        yield f"- {device['gpu']}, {device['multiprocessors']} multiprocessors"
        yield f"- driver: {device['driver']}; compiler: {device['toolkit']}"
    yield from told_apart(timed, lambda one: "{cpu}, {cores} cores ({arch}), Linux {kernel}".format(**one["machine"]))
    yield from told_apart(own, lambda one: "{compiler}, {flags}".format(**one["machine"]))
    yield from clock_of(own)
    yield from told_apart(timed, begun)


def outcome(ratio):
    """The verdict in words."""
    if ratio["verdict"] == "undecided":
        verdicts = ratio.get("verdicts") or [  # files of before have none
            "met" if median is not None and median <= ratio["goal"] else "missed" for median in ratio["medians"]]
        return f"undecided: missed in {verdicts.count('missed')} of {len(verdicts)} rounds"
    return {"none": "not judged", "lost": "lost in noise"}.get(ratio["verdict"], ratio["verdict"])


def outcome_by_medians(table, ratio):
    """What is added where the ratio of the arms' medians is on the goal's other side."""
    of, base = arm_called(table, ratio["of"]), against_of(table, ratio) if ratio["against"] else None
    if "along" in table or not base or base["median"] <= 0 or of["median"] is None or \
            ratio["verdict"] not in ("met", "missed", "undecided"):
        return ""
    by_medians = of["median"] / base["median"]
    return "" if (by_medians <= ratio["goal"]) == (ratio["median"] <= ratio["goal"]) else \
        f"; of the arms' medians it is {beside(by_medians, ratio['goal'])}"


def end_of(value):
    """Of a spread."""
    return "∞" if value is None else number(value)


def rounds_of(ratio):
    """The medians of each round; - where one was lost in noise."""
    medians = ratio.get("medians", [])
    return ", ".join(("-" if verdict == "lost" else "∞") if median is None else beside(median, ratio["goal"])
                     for median, verdict in zip(medians, ratio.get("verdicts", ["lost"] * len(medians))))


def why_no_ratio(table, ratio):
    """A ratio is lost in noise where what it is held against came out as nothing."""
    if "along" in table:
        return "not measured" if missing_of(table) else "not judged"
    there = against_of(table, ratio) and "missing" not in arm_called(table, ratio["of"])
    return "lost in noise" if there else "not measured"


def why_no_ratio_to(report, one, arm):
    """Likewise, of a goal that names a peer: its report and its row, or None, and ours."""
    if "missing" in arm:
        return f"not measured: {arm['missing']}"
    if one and "missing" not in one:
        return "lost in noise"
    failed = [failure["why"] for failure in report.get("failed", [])]
    return "not measured: " + ((one or report).get("missing") or "; ".join(failed) or "it has no such row")


def span(ratio):
    """Of the rounds; one has none."""
    return f"{number(ratio['least'])} to {number(ratio['most'])}" if ratio["rounds"] > 1 else "one round"


def peer_verdict_lines(table, reports):
    for report, name, arm, goal, one in peer_goals(table, reports):
        ratio = (one or {}).get("ratio")
        cells = table["id"], f"{table['what']}: {arm}", f"{name} {report.get('version') or ''}".strip()
        if ratio:
            yield row(*cells, beside(ratio["median"], ratio["goal"]), rounds_of(ratio), "", f"{ratio['goal']:g}",
                      outcome(ratio))
        else:
            yield row(*cells, "-", "", "", f"{goal:g}", why_no_ratio_to(report, one, arm_called(table, arm)))


def verdict_lines(reports):
    """Every ratio with a goal, peers' included."""
    yield from head("table", "what", "held against", "ratio", "rounds", "5 % to 95 % of turns", "goal", "")
    for table in tables_of(reports):
        unit = UNITS.get(table["unit"], table["unit"])
        for ratio in table["ratios"]:
            if not ratio["goal"]:
                continue
            if ratio["median"] is None and ratio["verdict"] == "none":
                yield row(table["id"], f"{table['what']}: {ratio['of']}", ratio["what"], "-", "", "",
                          f"{ratio['goal']:g}", why_no_ratio(table, ratio))
                continue
            unit_of = "" if ratio["against"] else " " + unit
            yield row(table["id"], f"{table['what']}: {ratio['of']}", ratio["against"] or "(itself)",
                      beside(ratio["median"], ratio["goal"]) + unit_of, rounds_of(ratio),
                      f"{end_of(ratio['p5'])} to {end_of(ratio['p95'])}", f"{ratio['goal']:g}" + unit_of,
                      outcome(ratio) + outcome_by_medians(table, ratio))
        yield from peer_verdict_lines(table, reports)


def beside_its_own(peer, way, rows):
    """What gk has nothing beside, as so many times the peer's own first row, in the same configuration."""
    first = next(one for other, _, one in rows if other == peer and "missing" not in one)
    base = next((one for one in ways(first) if one["how"] == way["how"]), None)
    if not base or base is way or base["median"] <= 0 or base.get("ratio"):
        return ""
    return f"itself: {number(way['median'] / base['median'])} of \"{first['what']}\""


def peer_lines(reports):
    for peer in reports.get("peers", {}).get("peers", []):
        if "missing" in peer:
            yield f"{peer['peer']}: not measured, {peer['missing']}"
            yield ""
        for failed in peer.get("failed", []):
            yield f"{peer['peer']}, {failed['how']}: failed, {failed['why']}"
            yield ""
    rows = list(peer_rows(reports))
    if not rows:
        return
    yield from head("table", "what", "peer", "gk against it", "lowest to highest round", "how the peer ran")
    for peer, version, one in rows:
        if "missing" in one:
            yield row(one["table"], one["what"], f"{peer} {version}", "-", "", one["missing"])
            continue
        for way in ways(one):
            ratio, spread = way.get("ratio"), ""
            if ratio:
                against = number(ratio["median"]) + (", lost in noise" if ratio.get("noise") else "")
                spread = span(ratio)
            elif one["unit"] == "ratio":
                against, spread = "", f"itself: {number(way['median'])} of one chain"
            elif way["median"] <= 0:
                against = "lost in noise"
            else:
                against, spread = "no counterpart", beside_its_own(peer, way, rows)
            yield row(one["table"], one["what"], f"{peer} {version}", against, spread, way["how"])


def table_lines(table, reports):
    unit = UNITS.get(table["unit"], table["unit"])
    scale = unit if is_absolute(table) else f"times {base_of(table)['name']}"
    yield f"**{table['what']}**: {table['question']}"
    yield ""
    yield from head("arm", scale, "5 % to 95 %")
    for name, _, median, low, high in bars_of(table, reports):
        yield row(name, number(median), f"{number(low)} to {number(high)}")
    for arm in missing_of(table):
        yield row(arm["name"], "not measured", arm["missing"])
    if floor_of(table):
        yield row(f"*floor: {number(table['floor']['times'])} of \"{table['floor']['of']}\"*", number(floor_of(table)),
                  "")
    for ratio in table["ratios"]:
        if not ratio["goal"] and ratio["against"] and ratio["median"] is not None:
            rounds = "; rounds: " + ", ".join(map(number, ratio["medians"])) if "medians" in ratio else ""
            yield row(f"*{ratio['what']}, turn by turn*", number(ratio["median"]),
                      f"{end_of(ratio['p5'])} to {end_of(ratio['p95'])}{rounds}")
    yield ""


def floor_lines(reports):
    """What each program saw of the floor, and of the device's clocks."""
    seen = {name: report for name, report in reports.items() if "floor" in report}
    for unit, names in sorted({(report["floor"]["unit"], tuple(arm["name"] for arm in report["floor"]["arms"]))
                               for report in seen.values()}):
        yield from head("program", *(f"{name}, {UNITS.get(unit, unit)}" for name in names))
        for program, report in seen.items():
            arms = report["floor"]["arms"]
            if report["floor"]["unit"] == unit and tuple(arm["name"] for arm in arms) == names:
                yield row(program, *(f"{number(arm['median'])} ({number(arm['p5'])} to {number(arm['p95'])})"
                                     for arm in arms))
        yield ""
    for whose, what in (("device", "the GPU's"), ("machine", "the CPU's")):
        clocks = {name: report[whose] for name, report in seen.items() if "clocks before" in report.get(whose, {})}
        if not clocks:
            continue
        yield from head("program", f"{what} clocks before", "clocks after")
        for name, device in clocks.items():
            yield row(name, device["clocks before"], device.get("clocks after", "unknown"))
        yield ""


def missing_lines(reports):
    """Programs that measured nothing, by their reason."""
    whys = {}
    for name, report in reports.items():
        if "failed" in report:
            whys.setdefault(f"all behind its last table, as it failed: {report['failed']}", []).append(f"`{name}`")
        if "missing" in report:
            whys.setdefault(report["missing"], []).append(f"`{name}`")
    for why, names in whys.items():
        yield f"- {', '.join(names)}: {why}"


def shows_plots(folder):
    page = folder / "README.md"
    return page.exists() and re.search(r"^!\[.*\.svg\)$", page.read_text(), re.M) is not None


def link_to_docs(folder):
    """From a page that isn't in the repository none leads there."""
    name = "docs/performance.md"
    return f"[{name}]({os.path.relpath(ROOT / name, folder)})" if ROOT in folder.parents else f"`{name}`"


def write_readme(folder, reports, pictures):
    """pictures: their names; None where they can't be drawn."""
    goals = list(verdict_lines(reports))
    lines = [f"# {folder.name}", "",
             "Written by `bench/plot.py` from the JSON files beside it; `./configure.py bench` measures anew. How",
             f"that is done and what each table asks: {link_to_docs(folder)}.", "",
             *machine_lines(reports), *(["- no plots: there was no matplotlib"] if pictures is None else []), "",
             "## Goals", "", plot_goals.tally(goals), "",
             "A ratio is of what something takes to what is held against it, so less is better: the median over",
             "rounds of each round's median over its turns, with each round's beside it. Rounds on both sides of",
             "the goal leave it undecided. Turns go from the lowest 5th to the highest 95th",
             "percentile of a round; against a peer, whose turns are its rounds, there are none. A ratio isn't that",
             "of two medians, which bars of a plot show, and where that one is on the goal's other side, it is said.",
             "What is judged is a diamond beneath its arm there, with its turns (of a peer: its rounds) as its line",
             "and a dashed line at its goal; green is met, red missed, amber undecided, grey lost in noise or not",
             "judged. A line that ends in an arrow goes on.", "",
             *goals, ""]
    floor, missing = list(floor_lines(reports)), list(missing_lines(reports))
    if missing:
        lines += ["## Not measured", "", *missing, ""]
    if floor:
        lines += ["## Floor", "", "What nothing here can be faster than, measured first by each program.", "", *floor]
    peers = list(peer_lines(reports))
    if peers:
        lines += ["## Peers", "", *peers, ""]
    tables = tables_of(reports)
    for ident in dict.fromkeys(table["id"] for table in tables):
        lines += [f"## {ident}: {TITLES.get(ident, '')}", ""]
        if ident in (pictures or {}):
            lines += [line for name in pictures[ident] for line in (f"![{name.removesuffix('.svg')}]({name})", "")]
        own = [table for table in tables if table["id"] == ident]
        lines += plot_growth.lines(filter(plot_growth.grows, own), UNITS, number, row, head)
        for table in own:
            if not plot_growth.grows(table):
                lines += table_lines(table, reports)
    (folder / "README.md").write_text("\n".join(lines).rstrip() + "\n")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folders = [Path(name).resolve() for name in sys.argv[1:]]
    python = python_that_draws()
    if python and python != sys.executable:
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])
    for folder in folders:
        reports = load(folder)
        if not python and shows_plots(folder):
            sys.exit(f"bench/plot.py: {folder}/README.md shows plots and stays as it is: there is no matplotlib "
                     "(apt-get install python3-matplotlib)")
        write_readme(folder, reports, draw(folder, reports) if python else None)
        print(f"{folder}/README.md")


if __name__ == "__main__":
    main()
