"""Combines several rounds of a program or a peer into one report: the medians of the rounds' medians, and verdicts.

A figure that is null in the JSON is missing in a round without a verdict, and infinite in a round with one."""
import math
import statistics


def is_there(figure):
    return figure["median"] is not None or figure.get("verdict", "none") != "none"


def numbers(figures, part):
    return [math.inf if figure[part] is None else figure[part] for figure in figures]


def in_json(value):
    return None if value == math.inf else value


def verdict(medians, verdicts, goal):
    """The verdict of rounds with these medians and verdicts. Rounds on both sides of the goal leave it undecided."""
    if verdicts.count("lost") > len(verdicts) / 2:
        return "lost"
    met = {median <= goal for median, each in zip(medians, verdicts) if each != "lost"}
    return "undecided" if len(met) > 1 else "met" if met == {True} else "missed"


def over_rounds(figures):
    """Combines the figures of one variant or ratio in several rounds, and adds each round's median and verdict. A round
    without a ratio that has a verdict in other rounds was lost in noise."""
    missing = next((one for one in figures if "missing" in one), None)
    if missing:
        return missing
    there = [one for one in figures if is_there(one)]
    merged = dict((there or figures)[-1])
    if "correct" in merged:
        merged["correct"] = all(one["correct"] for one in figures)
    if not there:
        return merged
    merged.update(median=in_json(statistics.median(numbers(there, "median"))), p5=in_json(min(numbers(there, "p5"))),
                  p95=in_json(max(numbers(there, "p95"))))
    if "p25" in merged:
        merged.update({part: in_json(statistics.median(numbers(there, part))) for part in ("p25", "p75")})
    if len(figures) > 1:
        merged["medians"] = [one["median"] for one in figures]
    against = list(dict.fromkeys(one["against"] for one in there if one.get("against")))
    if len(against) > 1:
        merged.update({"against": "the better of each round", "rounds against": against})
    elif against:
        merged["against"] = against[0]
    if merged.get("goal") and any(one["verdict"] != "none" for one in there):
        verdicts = [one["verdict"] if one["verdict"] != "none" else "lost" for one in figures]
        merged["verdict"] = verdict(numbers(figures, "median"), verdicts, merged["goal"])
        if len(figures) > 1:
            merged["verdicts"] = verdicts
    return merged


def rows_over_rounds(reports, part):
    return [over_rounds(list(same)) for same in zip(*(one[part] for one in reports))]


def merge(reports):
    """Combines several rounds of one program. Variants and ratios have the same order in each."""
    for lacks in ("missing", "failed"):  # rounds that got further count
        reports = [report for report in reports if lacks not in report] or reports
    most = max(len(report["tables"]) for report in reports)
    reports = [report for report in reports if len(report["tables"]) == most]
    merged = dict(reports[-1], rounds=len(reports), wrong=sum(report["wrong"] for report in reports))
    merged.pop("round", None)
    merged["tables"] = [dict(tables[-1], **{part: rows_over_rounds(tables, part) for part in ("variants", "ratios")})
                        for tables in zip(*(report["tables"] for report in reports))]
    for table, *same in zip(merged["tables"], *(report["tables"] for report in reports)):
        if "floor" in table:
            table["floor"] = dict(table["floor"], least=min(one["floor"]["least"] for one in same))
    if "floor" in merged:
        floors = [report["floor"] for report in reports]
        merged["floor"] = dict(merged["floor"], variants=rows_over_rounds(floors, "variants"))
    if len(reports) > 1:
        merged["machine"] = dict(merged["machine"], **{"each round": [
            {name: report["machine"].get(name) for name in ("date", "stolen")} for report in reports]})
    for what in ("machine", "device"):
        if "clocks before" in reports[0].get(what, {}):
            merged[what] = dict(merged[what], **{"clocks before": reports[0][what]["clocks before"]})
    return merged
