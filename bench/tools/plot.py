#!/usr/bin/env python3
"""Draws bench/results/<device>/ and writes its README.md, only from the JSON files there.

  bench/tools/plot.py FOLDER ...

Times are shown as multiples of a variant of the same table: the speed of a shared machine on one day means nothing.
The plots need matplotlib, of this Python or of another one that is found. Without it, a page with plots stays as it is,
and the exit code is 1. A new page then says that it has no plots.
"""
import os
import subprocess
import sys
from pathlib import Path

import plot_goals
import plot_growth
import run_peers
from plot_figures import (TITLES, UNITS, bars_of, base_of, floor_of, is_absolute, load, marks_of, missing_of,
                          number, tables_of)
from plot_page import readme, shows_plots

COLOURS = {"gk": "#3b6ea8", "hand": "#9aa3ad", "peer": "#d08a3e", "floor": "#7d4fa0"}
PYTHONS = [sys.executable, "/usr/bin/python3", str(run_peers.VENV / "bin/python")]


def rows_of(table, reports):
    """(name, bar, mark) of each line of a plot. Judged ratios are beneath their variants; missing ones have neither."""
    marks = list(marks_of(table, reports))
    variants = [(bar[0], bar) for bar in bars_of(table, reports)] + [(one["name"], None) for one in missing_of(table)]
    for name, bar in variants:
        yield name, bar, None
        yield from ((mark.label, None, mark) for mark in marks if mark.of == name)


def draw_table(axes, table, reports):
    rows, bound = list(rows_of(table, reports)), floor_of(table)
    bars = [bar for _, bar, _ in rows if bar]
    marks = [mark for _, _, mark in rows if mark and None not in (mark.median, mark.unit)]
    medians, longest = [bar[2] for bar in bars], max(abs(bar[2]) for bar in bars)
    judged = [value * mark.unit for mark in marks for value in (mark.median, mark.goal)]
    most = max([3 * longest, *judged])  # one bad turn mustn't make all bars short
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
            if axes.get_xscale() == "log":  # bars here don't begin at 0, so their length means nothing
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
    """Saves the picture. @return its name"""
    path = folder / f"{ident}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text("".join(line.rstrip() + "\n" for line in path.read_text().splitlines()))
    pyplot.close(figure)
    return path.name


def python_that_draws():
    """A Python with matplotlib: this one, Debian's, or the peers'; or None."""
    def draws(python):
        try:
            return subprocess.run([python, "-c", "import matplotlib"], stderr=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False
    return next((python for python in PYTHONS if draws(python)), None)


def judged_together(tables, reports):
    """(name, mark) of all judged ratios, if they have their own plot: beside curves, or if there are many tables."""
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
    """Draws all tables. @return The pictures' names by table id: judged ratios, if they have one, and all variants"""
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
        names.setdefault(ident, []).append(save(pyplot, figure, folder, f"{ident}-variants" if judged else ident))
    return names


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folders = [Path(name).resolve() for name in sys.argv[1:]]
    python = python_that_draws()
    if python and python != sys.executable:
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])
    for folder in folders:
        reports = load(folder)
        if not python and shows_plots(folder):
            sys.exit(f"bench/tools/plot.py: {folder}/README.md shows plots and stays as it is: there is no matplotlib "
                     "(apt-get install python3-matplotlib)")
        text = readme(folder, reports, draw(folder, reports) if python else None)
        (folder / "README.md").write_text(text)
        print(f"{folder}/README.md")


if __name__ == "__main__":
    main()
