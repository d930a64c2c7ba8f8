"""The part of bench/tools/plot.py for tables along which something grows (G and C13): in place of bars a curve per
question, with the steepest course that its goal allows, and a row per length of list."""
import itertools

import plot_goals

COLOURS = ["#3b6ea8", "#d08a3e", "#5f8f4e", "#8d5a97"]


def grows(table):
    return "along" in table


def by_axis(tables):
    """(along, tables) in the order of the report."""
    return [(along, list(own)) for along, own in itertools.groupby(tables, lambda table: table["along"])]


def name_of(table):
    """The table's name without ", by tasks"."""
    return table["what"].removesuffix(f", by {table['along']}")


def points_of(table):
    return [variant for variant in table["variants"] if variant.get("median") is not None]


def slope(one, other):
    return (other["median"] - one["median"]) / (other["x"] - one["x"])


def one_more(table):
    """The time of one more at the end of the curve, by the medians; None if too little was measured."""
    points = points_of(table)[-2:]
    return slope(*points) if len(points) == 2 else None


def goal_line(table):
    """The curve's course if one more takes as much as the goal allows: (x, cost) from the variant in the ratio's
    denominator to the end. None if one more took no time before."""
    points = [variant for variant in points_of(table) if variant["x"] > 0]  # the first of a kind has a cost of its own
    ratio = next((ratio for ratio in table["ratios"] if ratio["goal"]), {"against": None})
    middle = next((variant for variant in points if variant["name"] == ratio["against"]), None)
    if not middle or middle is points[0] or slope(points[0], middle) <= 0:
        return None
    each = ratio["goal"] * slope(points[0], middle)
    most = points[-1]["x"]  # in steps, since a straight line is curved on logarithmic axes
    xs = [middle["x"] * (most / middle["x"]) ** (step / 20) for step in range(21)]
    return [(x, middle["median"] + each * (x - middle["x"])) for x in xs]


# ---- tables ---------------------------------------------------------------------------------------------------------

def cell(variant, unit, number):
    if "missing" in variant:
        return "not measured"
    return f"{number(variant['median'])} {unit} ({number(variant['p5'])} to {number(variant['p95'])})"


def lines(tables, units, number, row, head):
    """A table per growing thing, with a line per list and a column per question."""
    for along, own in by_axis(tables):
        yield f"**By {along}**: medians, with 5 % to 95 %"
        yield ""
        yield from head("", *(name_of(table) for table in own))
        names = [units.get(table["unit"], table["unit"]) for table in own]
        for variants in zip(*(table["variants"] for table in own)):
            yield row(variants[0]["name"], *(cell(variant, unit, number) for variant, unit in zip(variants, names)))
        yield row("*one more of the last*", *(f"{number(one_more(table))} {unit}" for table, unit in zip(own, names)))
        yield ""
        missing = {variant["missing"] for table in own for variant in table["variants"] if "missing" in variant}
        for why in sorted(missing):
            yield f"Not measured: {why}"
            yield ""


# ---- plots ----------------------------------------------------------------------------------------------------------

def draw_questions(axes, along, tables, units):
    tops = []
    for table, colour in zip(tables, itertools.cycle(COLOURS)):
        points = points_of(table)
        if not points:
            continue
        xs, medians = [variant["x"] for variant in points], [variant["median"] for variant in points]
        axes.plot(xs, medians, color=colour, marker="o", markersize=3, linewidth=1.4, label=name_of(table))
        axes.fill_between(xs, [one["p5"] for one in points], [one["p95"] for one in points], color=colour, alpha=0.2,
                          linewidth=0)
        goal = goal_line(table)
        if goal:
            axes.plot(*zip(*goal), color=colour, linestyle=(0, (3, 1.5)), linewidth=1)
            tops.append(goal[-1][1])
    xs = sorted({variant["x"] for table in tables for variant in table["variants"]})
    axes.set_xscale("symlog" if xs[0] == 0 else "log")
    axes.set_xticks(xs, [f"{x:,.0f}" for x in xs])
    axes.minorticks_off()
    axes.set_yscale("log")
    shown = [variant["median"] for table in tables for variant in points_of(table) if variant["median"] > 0]
    if shown:
        axes.set_ylim(min(shown) / 2, max([*shown, *tops]) * 2)
    axes.set_xlabel(along, fontsize=8)
    axes.set_ylabel(units.get(tables[0]["unit"], tables[0]["unit"]), fontsize=8)
    axes.tick_params(which="both", labelsize=8)
    axes.legend(fontsize=7, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(pyplot, tables, title, units):
    """Draws a row per growing thing, with a plot per unit."""
    kinds = list(dict.fromkeys(table["unit"] for table in tables))
    axes_of = by_axis(tables)
    figure, places = pyplot.subplots(len(axes_of), len(kinds), figsize=(5 * len(kinds), 2.8 * len(axes_of)),
                                     squeeze=False)
    for line, (along, own) in zip(places, axes_of):
        for place, unit in zip(line, kinds):
            same = [table for table in own if table["unit"] == unit]
            if same:
                draw_questions(place, along, same, units)
            else:
                place.set_axis_off()
    plot_goals.head(figure, title, "band: 5 % to 95 % of turns; dashed: where the curve would be if from there on each "
                    "took as many times what one took before as the goal allows")
    return figure
