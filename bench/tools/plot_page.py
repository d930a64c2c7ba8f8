"""The part of bench/tools/plot.py for README.md: goals, the floor, peers, and each table."""
import os
import re

import plot_goals
import plot_growth
from plot_figures import (NANOSECONDS, ROOT, TITLES, UNITS, against_of, bars_of, base_of, beside, floor_of, is_absolute,
                          missing_of, number, outcome, peer_goals, peer_rows, tables_of, variant_called, verdict_text,
                          ways, why_no_ratio, why_no_ratio_to)

GOALS = """\
A ratio is gk's time divided by the time of what it is compared with. Less is better. It is the median over rounds of
each round's median over its turns; the median of each round is beside it. A goal is undecided if rounds are on both
sides of it. A round is lost in noise if its turns reach from nothing to beyond the goal; it counts on neither side.
If most rounds are lost in noise, so is the ratio. A ratio below nothing is negative: the longer list took less time.
The turns' column goes from the lowest 5th to the highest 95th percentile of a round. It is empty against a peer,
whose turns are its rounds. A ratio differs from the ratio of two medians, which the bars of a plot show. If that one
is on the goal's other side, the last column says so. In a plot, a ratio is a diamond beneath its variant. The line
through it shows its turns (of a peer: its rounds), and a dashed line its goal. Green is met, red missed, amber
undecided, grey lost in noise or not judged. An arrow means that a line goes on."""
FLOOR = """\
No task can be faster than these times. Each program measures them first. A loop that is compiled as a whole has no
tasks, so it can be faster."""


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def head(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def by_program(reports, line):
    """One line if it is the same in all reports; else each different line with its programs."""
    programs = {}
    for name, report in reports.items():
        programs.setdefault(line(report), []).append(f"`{name}`")
    *few, most = sorted(programs, key=lambda text: len(programs[text]))
    for text in few:
        yield f"- {text} ({', '.join(programs[text])})"
    yield f"- {most}" + (" (all others)" if few else "")


def clock_of(reports):
    """The clock, with the range of times that a reading took."""
    for clock in sorted({re.sub(r"\d+ ns$", "{} ns", report["machine"]["clock"]) for report in reports.values()}):
        took = sorted({int(found[1]) for report in reports.values()
                       if (found := re.search(r"(\d+) ns$", report["machine"]["clock"]))})
        yield "- " + clock.format(" to ".join(map(str, dict.fromkeys((took or [0])[::max(1, len(took) - 1)]))))


def begun(report):
    count = report.get("rounds", 1)  # a program's own JSON lacks these
    rounds = f"{count} round" + ("s" if count != 1 else "")
    load = f"; load average at the end: {report['machine']['load']:.1f}" if "load" in report["machine"] else ""
    return f"begun {report.get('started', 'unknown')}, commit {report.get('commit', 'unknown')}, {rounds}{load}"


def machine_lines(reports):
    own = {name: report for name, report in reports.items() if report.get("tables")}
    timed = {**own, **{name: report for name, report in reports.items()
                      if report.get("peers") and "machine" in report}}
    devices = [one["device"] for one in reports.values() if "device" in one]
    if any(one.get("quick") for one in reports.values()):
        yield "- **by `--quick`: all of it ran and was right, and the figures mean nothing**"
    for device in [one for one in devices if "toolkit" in one][:1]:
        yield f"- {device['gpu']}, {device['multiprocessors']} multiprocessors"
        yield f"- driver: {device['driver']}; compiler: {device['toolkit']}"
    for device in [one for one in devices if "core" in one][:1]:
        yield f"- Vulkan: {device.get('vulkan') or device['gpu']}; driver: {device['driver']}; core {device['core']}"
    yield from by_program(timed, lambda one: "{cpu}, {cores} cores ({arch}), Linux {kernel}".format(**one["machine"]))
    yield from by_program(own, lambda one: "{compiler}, {flags}".format(**one["machine"]))
    yield from clock_of(own)
    yield from by_program(timed, begun)


def outcome_by_medians(table, ratio):
    """A note if the ratio of the variants' medians is on the other side of the goal."""
    of, base = variant_called(table, ratio["of"]), against_of(table, ratio) if ratio["against"] else None
    if "along" in table or not base or base["median"] <= 0 or of["median"] is None or \
            ratio["verdict"] not in ("met", "missed", "undecided"):
        return ""
    by_medians = of["median"] / base["median"]
    return "" if (by_medians <= ratio["goal"]) == (ratio["median"] <= ratio["goal"]) else \
        f"; of the variants' medians it is {beside(by_medians, ratio['goal'])}"


def end_of(value):
    """One end of a spread."""
    return "∞" if value is None else number(value)


def rounds_of(ratio):
    """The median of each round; - if it came out as 0."""
    medians = ratio.get("medians", [])
    return ", ".join(("-" if verdict == "lost" else "∞") if median is None else beside(median, ratio["goal"])
                     for median, verdict in zip(medians, ratio.get("verdicts", ["lost"] * len(medians))))


def span(ratio):
    """The range of the rounds; one round has none."""
    return f"{number(ratio['least'])} to {number(ratio['most'])}" if ratio["rounds"] > 1 else "one round"


def peer_verdict_lines(table, reports):
    for report, name, variant, goal, one in peer_goals(table, reports):
        ratio = (one or {}).get("ratio")
        cells = table["id"], f"{table['what']}: {variant}", f"{name} {report.get('version') or ''}".strip()
        if ratio:
            yield row(*cells, beside(ratio["median"], ratio["goal"]), rounds_of(ratio), "", f"{ratio['goal']:g}",
                      outcome(ratio))
        else:
            yield row(*cells, "-", "", "", f"{goal:g}", why_no_ratio_to(report, one, variant_called(table, variant)))


def verdict_lines(reports):
    """Each ratio with a goal, including those to peers."""
    yield from head("table", "what", "compared with", "ratio", "rounds", "5 % to 95 % of turns", "goal", "")
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
    """A row without a counterpart of gk's, as a multiple of the peer's first row in the same configuration."""
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
    # Rows that gk is compared with come first, missing ones last.
    rows.sort(key=lambda one: 2 if "missing" in one[2] else 0 if "ratio" in one[2] else 1)
    yield from head("table", "what", "peer", "gk against it", "lowest to highest round", "how the peer ran")
    for peer, version, one in rows:
        if "missing" in one:
            yield row(one["table"], one["what"], f"{peer} {version}", "-", "", one["missing"])
            continue
        for way in ways(one):
            ratio, spread = way.get("ratio"), ""
            if ratio:
                lost = ratio.get("noise") and ratio.get("verdict", "none") in ("none", "lost")
                against = number(ratio["median"]) + (", lost in noise" if lost else "")
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
    yield from head("variant", scale, "5 % to 95 %")
    for name, _, median, low, high in bars_of(table, reports):
        yield row(name, number(median), f"{number(low)} to {number(high)}")
    for variant in missing_of(table):
        yield row(variant["name"], "not measured", variant["missing"])
    if floor_of(table):
        yield row(f"*floor: {number(table['floor']['times'])} of \"{table['floor']['of']}\"*", number(floor_of(table)),
                  "")
    for ratio in table["ratios"]:
        if not ratio["goal"] and ratio["against"] and ratio["median"] is not None:
            rounds = "; rounds: " + ", ".join(map(number, ratio["medians"])) if "medians" in ratio else ""
            yield row(f"*{ratio['what']}, turn by turn*", number(ratio["median"]),
                      f"{end_of(ratio['p5'])} to {end_of(ratio['p95'])}{rounds}")
    yield ""


STOLEN = "time that the host gave to others, of each round"


def stolen_of(machine):
    """The stolen time from /proc/stat."""
    shares = [one.get("stolen") for one in machine.get("each round", [machine])]
    return ", ".join("unknown" if share is None else f"{share:.1f} %" for share in shares)


# The first questions of readers: (table, what, variant, divisor, in words).
SHORT = [("F1", "one more task n=1", "gk", 1, "one more task of one item"),
         ("F8", "one more pass", "gk", 1, "one more pass of a loop, with its task"),
         ("F8", "silent checkpoint", "gk, the checkpoint alone", 1, "a checkpoint that stays silent"),
         ("F8", "yield and resume", "gk, two launches", 2, "a launch of one task, and the wait for it"),
         ("F8", "yield and resume", "gk, yield and resume", 1, "a launch that yields, its resume, a wait for each"),
         ("F8", "yield and resume", "gk, beyond two launches", 1, "of that, what is beyond two launches"),
         ("C12", "one more pass", "gk", 1, "one more pass of a loop, with its task"),
         ("C12", "silent checkpoint", "gk", 1, "a checkpoint that stays silent"),
         ("C12", "one launch", "gk", 1, "a launch of one task, the host's time"),
         ("C12", "yield and resume", "gk, yield and resume", 1, "a launch that yields, its resume, a wait for each"),
         ("C12", "yield and resume", "gk, beyond two launches", 1, "of that, what is beyond two launches")]


def short_row(report, table, entry):
    """The figure as a multiple of the floor's first variant: a CPU's times mean nothing. For a GPU as a time, too."""
    ident, what, name, count, words = entry
    variant, least = variant_called(table, name), report["floor"]["variants"][0]
    if "missing" in variant:
        return None
    scale = count * least["median"] * NANOSECONDS[report["floor"]["unit"]] / NANOSECONDS[table["unit"]]
    has_gpu = "gpu" in report.get("device", {})
    time = [f"{number(variant['median'] / count)} {UNITS[table['unit']]}"] if has_gpu else []
    return row(ident, words, number(variant["median"] / scale),
               f"{number(variant['p5'] / scale)} to {number(variant['p95'] / scale)}", *time)


def in_short(reports):
    begun = False
    for on_device in (False, True):
        rows, floor = [], None
        for report in reports.values():
            for entry in SHORT if "floor" in report and ("gpu" in report.get("device", {})) == on_device else []:
                for table in report["tables"]:
                    if (table["id"], table["what"]) == entry[:2]:
                        rows.append(short_row(report, table, entry))
                        floor = report["floor"]
        rows = [one for one in rows if one]
        if not rows:
            continue
        yield from [] if begun else ["## In short", ""]
        begun = True
        least = floor["variants"][0]
        unit = f'times "{least["name"]}", {number(least["median"])} {UNITS[floor["unit"]]}'
        yield from head("table", "of what", unit, "5 % to 95 %", *(["time"] if on_device else []))
        yield from rows
        yield ""


def not_linear(tables, why):
    """The ratios that miss their goals, at least in some rounds."""
    for table in tables:
        for ratio in table["ratios"]:
            if ratio["goal"] and ratio["verdict"] in ("missed", "undecided"):
                judged = f"{ratio['what'].capitalize()}: {verdict_text(ratio)}"
                yield f"**Not linear: {table['what']}.** {judged}. Why: {why}"
                yield ""


def floor_lines(reports):
    """The floor and the device's clocks as each program measured them."""
    seen = {name: report for name, report in reports.items() if "floor" in report}
    for unit, names in sorted({(report["floor"]["unit"], tuple(one["name"] for one in report["floor"]["variants"]))
                               for report in seen.values()}):
        yield from head("program", *(f"{name}, {UNITS.get(unit, unit)}" for name in names))
        for program, report in seen.items():
            variants = report["floor"]["variants"]
            if report["floor"]["unit"] == unit and tuple(one["name"] for one in variants) == names:
                yield row(program, *(f"{number(one['median'])} ({number(one['p5'])} to {number(one['p95'])})"
                                     for one in variants))
        yield ""
    for whose, what in (("device", "the GPU's"), ("machine", "the CPU's")):
        clocks = {name: report[whose] for name, report in seen.items() if "clocks before" in report.get(whose, {})}
        if not clocks:
            continue
        stolen = [STOLEN] if whose == "machine" else []
        yield from head("program", f"{what} clocks before", "clocks after", *stolen)
        for name, device in clocks.items():
            yield row(name, device["clocks before"], device.get("clocks after", "unknown"),
                      *(stolen_of(device) for _ in stolen))
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


def link_to_docs(folder, name, part=""):
    """A page outside of the repository gets the name without a link."""
    return f"[{name}]({os.path.relpath(ROOT / name, folder)}{part})" if ROOT in folder.parents else f"`{name}`"


def readme(folder, reports, pictures):
    """The page's text. pictures: their names by table id; None: there is no matplotlib."""
    goals = list(verdict_lines(reports))
    lines = [f"# {folder.name}", "",
             "`bench/tools/plot.py` writes this page from the JSON files beside it. `./configure.py bench` measures",
             f"again. How to read it, and what each table asks: {link_to_docs(folder, 'docs/performance.md')}.", "",
             *machine_lines(reports), *(["- no plots: there was no matplotlib"] if pictures is None else []), "",
             *in_short(reports), "## Goals", "", plot_goals.tally(goals), "",
             GOALS, "",
             *goals, ""]
    floor, missing = list(floor_lines(reports)), list(missing_lines(reports))
    if missing:
        lines += ["## Not measured", "", *missing, ""]
    if floor:
        lines += ["## Floor", "", FLOOR, "", *floor]
    peers = list(peer_lines(reports))
    if peers:
        lines += ["## Peers", "", *peers, ""]
    tables, why = tables_of(reports), link_to_docs(folder, "docs/measuring.md", "#why-goals-are-missed")
    for ident in dict.fromkeys(table["id"] for table in tables):
        lines += [f"## {ident}: {TITLES.get(ident, '')}", ""]
        if ident in (pictures or {}):
            lines += [line for name in pictures[ident] for line in (f"![{name.removesuffix('.svg')}]({name})", "")]
        own = [table for table in tables if table["id"] == ident]
        lines += plot_growth.lines(filter(plot_growth.grows, own), UNITS, number, row, head)
        lines += not_linear(filter(plot_growth.grows, own), why)
        for table in own:
            if not plot_growth.grows(table):
                lines += table_lines(table, reports)
    return "\n".join(lines).rstrip() + "\n"
