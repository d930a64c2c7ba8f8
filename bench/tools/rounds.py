"""Several rounds of a program or a peer as one report: medians of the rounds' medians, and what they say of a goal.

A figure that isn't in the JSON (null) is none in a round that wasn't judged, and beyond all numbers in one that was."""
import math
import statistics


def is_there(figure):
    return figure["median"] is not None or figure.get("verdict", "none") != "none"


def numbers(figures, part):
    return [math.inf if figure[part] is None else figure[part] for figure in figures]


def in_json(value):
    return None if value == math.inf else value


def verdict(medians, verdicts, goal):
    """Of rounds with these medians and verdicts. Those on both sides of the goal don't decide."""
    if verdicts.count("lost") > len(verdicts) / 2:
        return "lost"
    met = {median <= goal for median, each in zip(medians, verdicts) if each != "lost"}
    return "undecided" if len(met) > 1 else "met" if met == {True} else "missed"


def over_rounds(figures):
    """The figures of one arm or ratio in several rounds as those of one, with the median and the verdict of each beside
    them. A round without a ratio that others have, and which is judged there, was lost in noise."""
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
    """Several rounds of one program as one report. Its arms and ratios stand in the same order in each."""
    for lacks in ("missing", "failed"):  # a round that got further says more
        reports = [report for report in reports if lacks not in report] or reports
    most = max(len(report["tables"]) for report in reports)
    reports = [report for report in reports if len(report["tables"]) == most]
    merged = dict(reports[-1], rounds=len(reports), wrong=sum(report["wrong"] for report in reports))
    merged.pop("round", None)
    merged["tables"] = [dict(tables[-1], **{part: rows_over_rounds(tables, part) for part in ("arms", "ratios")})
                        for tables in zip(*(report["tables"] for report in reports))]
    for table, *same in zip(merged["tables"], *(report["tables"] for report in reports)):
        if "floor" in table:
            table["floor"] = dict(table["floor"], least=min(one["floor"]["least"] for one in same))
    if "floor" in merged:
        merged["floor"] = dict(merged["floor"], arms=rows_over_rounds([report["floor"] for report in reports], "arms"))
    if len(reports) > 1:
        merged["machine"] = dict(merged["machine"], **{"each round": [
            {name: report["machine"].get(name) for name in ("date", "stolen")} for report in reports]})
    for what in ("machine", "device"):
        if "clocks before" in reports[0].get(what, {}):
            merged[what] = dict(merged[what], **{"clocks before": reports[0][what]["clocks before"]})
    return merged
