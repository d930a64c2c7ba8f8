"""The part of bench/plot.py for tables along which something grows (tables G and C13): a curve per question instead of
bars, on axes where what is linear has the slope of the dashed lines, and a row per length of list."""
import itertools

COLOURS = ["#3b6ea8", "#d08a3e", "#5f8f4e", "#8d5a97"]


def grows(table):
    return "along" in table


def by_axis(tables):
    """(along, tables) in the order of the report."""
    return [(along, list(own)) for along, own in itertools.groupby(tables, lambda table: table["along"])]


def name_of(table):
    """Without ", by tasks"."""
    return table["what"].removesuffix(f", by {table['along']}")


def points_of(table):
    return [arm for arm in table["arms"] if arm.get("median") is not None]


def one_more(table):
    """What one more takes of the last ones, by the medians; None where too little was measured."""
    points = points_of(table)[-2:]
    if len(points) < 2:
        return None
    return (points[1]["median"] - points[0]["median"]) / (points[1]["x"] - points[0]["x"])


# ---- tables ---------------------------------------------------------------------------------------------------------

def cell(arm, unit, number):
    if "missing" in arm:
        return "not measured"
    return f"{number(arm['median'])} {unit} ({number(arm['p5'])} to {number(arm['p95'])})"


def lines(tables, units, number, row, head):
    """A table for each thing that grows: a line for each list, a column for each question."""
    for along, own in by_axis(tables):
        yield f"**By {along}**: medians, with 5 % to 95 %"
        yield ""
        yield from head("", *(name_of(table) for table in own))
        names = [units.get(table["unit"], table["unit"]) for table in own]
        for arms in zip(*(table["arms"] for table in own)):
            yield row(arms[0]["name"], *(cell(arm, unit, number) for arm, unit in zip(arms, names)))
        yield row("*one more of the last*", *(f"{number(one_more(table))} {unit}" for table, unit in zip(own, names)))
        yield ""
        missing = {arm["missing"] for table in own for arm in table["arms"] if "missing" in arm}
        for why in sorted(missing):
            yield f"Not measured: {why}"
            yield ""


# ---- plots ----------------------------------------------------------------------------------------------------------

def draw_questions(axes, along, tables, units):
    for table, colour in zip(tables, itertools.cycle(COLOURS)):
        points = points_of(table)
        if not points:
            continue
        xs, medians = [arm["x"] for arm in points], [arm["median"] for arm in points]
        axes.plot(xs, medians, color=colour, marker="o", markersize=3, linewidth=1.4, label=name_of(table))
        axes.fill_between(xs, [arm["p5"] for arm in points], [arm["p95"] for arm in points], color=colour, alpha=0.2,
                          linewidth=0)
        end = [(x, medians[-1] * x / xs[-1]) for x in xs if x]
        axes.plot(*zip(*end), color=colour, linestyle="--", linewidth=0.8)
    xs = sorted({arm["x"] for table in tables for arm in table["arms"]})
    axes.set_xscale("symlog" if xs[0] == 0 else "log")
    axes.set_xticks(xs, [f"{x:,.0f}" for x in xs])
    axes.minorticks_off()
    axes.set_yscale("log")
    shown = [arm["median"] for table in tables for arm in points_of(table) if arm["median"] > 0]
    if shown:
        axes.set_ylim(min(shown) / 2, max(shown) * 2)
    axes.set_xlabel(along, fontsize=8)
    axes.set_ylabel(units.get(tables[0]["unit"], tables[0]["unit"]), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(pyplot, tables, title, units):
    """A row for each thing that grows, a plot for each unit in it."""
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
    figure.suptitle(f"{title} (dashed: linear)", fontsize=11, x=0.02, ha="left")
    figure.tight_layout()
    return figure
