"""The part of bench/tools/plot.py that draws judged ratios: each is a diamond with the spread of its turns, a dashed
line for its goal, and the verdict in words, in a row beneath its variant. All ratios of a table id have one scale."""
import textwrap
from collections import namedtuple

COLOURS = {"met": "#2e7d4f", "missed": "#b03a2e", "undecided": "#b9770e", "lost": "#8a8a8a", "none": "#8a8a8a"}
JUDGED = "diamond: what is judged, the median of the ratios of turns, with 5 % to 95 % of them; dashed: its goal"
LEGEND = "bar, on a logarithmic axis a dot: median, with 5 % to 95 % of turns\n" + JUDGED

# of: a variant. median: None if there is no ratio. low, high: None if they are infinite. unit: the factor to the axis
# of the table's bars, or None. absolute: the figure itself is judged, not a ratio.
Mark = namedtuple("Mark", "label of median low high goal unit verdict text absolute")


def draw_spread(axes, place, low, high, limits, colour, width=1.2):
    """Draws a line. An end that the limits cut off is an arrow."""
    least, most = limits
    ends = [least if low is None or low < least else low, most if high is None or high > most else high]
    ends = [min(max(end, least), most) for end in ends]
    axes.plot(ends, [place, place], color=colour, linewidth=width, solid_capstyle="butt", zorder=3)
    if low is None or low < least:
        axes.plot(least, place, marker="<", color=colour, markersize=5, clip_on=False, zorder=3)
    if high is None or high > most:
        axes.plot(most, place, marker=">", color=colour, markersize=5, clip_on=False, zorder=3)


def draw_mark(axes, place, mark, limits, unit=1):
    colour = COLOURS[mark.verdict]
    axes.annotate(mark.text, (1, place), xycoords=("axes fraction", "data"), xytext=(10, 0), fontsize=8, color=colour,
                  textcoords="offset points", va="center", annotation_clip=False)
    if unit is None:
        return
    axes.plot([mark.goal * unit] * 2, [place - 0.5, place + 0.5], color="#222222", linestyle=(0, (3, 1.5)),
              linewidth=1.2, zorder=2)
    if mark.median is None:
        return
    low, high = (None if end is None else end * unit for end in (mark.low, mark.high))
    draw_spread(axes, place, low, high, limits, colour)
    if limits[0] <= mark.median * unit <= limits[1]:
        axes.plot(mark.median * unit, place, marker="D", color=colour, markersize=5, clip_on=False, zorder=4)


def tidy(axes, names, colours):
    axes.set_yticks(range(len(names)), [textwrap.fill(name, 46) for name in names], fontsize=8)
    for label, colour in zip(axes.get_yticklabels(), colours):
        label.set_color(colour)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.invert_yaxis()
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0, pad=7)  # room for an arrow to the left
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw_all(pyplot, rows, title, axis):
    """Draws ratios on one scale. rows: (name, mark)."""
    figure, axes = pyplot.subplots(figsize=(8.5, 1.3 + 0.25 * len(rows)))
    medians = [mark.median for _, mark in rows if mark.median is not None]
    goal = max(mark.goal for _, mark in rows)
    most = max(1.6 * goal, min(1.15 * max(medians, default=0), 4 * goal))
    limits = max(min([0, *medians]), -goal), most  # far below 0 is as good as a little below
    for place, (_, mark) in enumerate(rows):
        draw_mark(axes, place, mark, limits)
    axes.set_xlim(limits)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    tidy(axes, [name for name, _ in rows], ["#222222"] * len(rows))
    axes.set_xlabel(axis, fontsize=8)
    head(figure, title, JUDGED)
    return figure


def tally(lines):
    """In words, the number of rows of each verdict."""
    ends = [line.rstrip(" |").rpartition("| ")[2] for line in lines[2:]]
    words = "met", "below nothing", "missed", "undecided", "lost in noise"
    counts = {word: sum(end.startswith(word) for end in ends) for word in words}
    counts["not measured or not judged"] = len(ends) - sum(counts.values())
    return f"Of {len(ends)} goals: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count) + "."


def head(figure, title, legend):
    """Draws a title, with a legend in small letters."""
    tall = figure.get_size_inches()[1]
    figure.text(0.02, 1 - 0.1 / tall, title, fontsize=11, va="top")
    figure.text(0.02, 1 - 0.32 / tall, legend, fontsize=7, va="top", color="#555555")
    for _ in range(2):  # once isn't enough with words beside the axes
        figure.tight_layout(rect=(0.01, 0, 0.99, 1 - (0.45 + 0.13 * legend.count("\n")) / tall))
