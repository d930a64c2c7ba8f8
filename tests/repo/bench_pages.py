#!/usr/bin/env python3
"""The tools of bench/ on made-up figures: rounds as one, pages and plots. bench_compare.py compares folders."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

sys.path.insert(0, str(tap.ROOT / "bench/tools"))
import plot  # noqa: E402
import plot_figures  # noqa: E402
import plot_growth  # noqa: E402
import plot_page  # noqa: E402
import rounds  # noqa: E402
import run as runner  # noqa: E402

DRAWN_BY = "3.6."  # the matplotlib of the pictures checked in; other versions write other bytes


def figures(median):
    return {"median": median, "p5": median, "p25": median, "p75": median, "p95": median}


def made_up(what, variants, ratios=(), **more):
    """A table: variants by name, with a median or a reason; ratios as (of, against, median, goal, verdict)."""
    return {"what": what, "question": "?", "unit": "ns", "turns": 21, **more,
            "variants": [{"name": name, "x": x, **({"missing": took} if isinstance(took, str) else figures(took))}
                     for x, (name, took) in enumerate(variants.items())],
            "ratios": [dict(figures(median), what=f"{of} against {against}", of=of, against=against, goal=goal,
                            verdict=verdict) for of, against, median, goal, verdict in ratios]}


def page_of(folder, tables, **others):
    """The page of tables that are made up, and of other reports."""
    report = {"program": "tasks", "machine": dict.fromkeys(("cpu", "cores", "arch", "kernel", "compiler", "flags",
                                                            "clock"), "x"), "tables": tables}
    for name, one in {"tasks": report, **others}.items():
        one = {"rounds": 1, "started": "", "commit": "", **one}
        (Path(folder) / f"{name}.json").write_text(json.dumps(one))
    page = Path(folder) / "README.md"
    page.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, tap.ROOT / "bench/tools/plot.py", folder], capture_output=True, text=True)
    return page.read_text() if page.exists() else done.stdout + done.stderr


def lacks(page, *lines):
    absent = [line for line in lines if line not in page]
    return f"without {absent}:\n{page[:3000]}" if absent else None


def goals_shown(folder):
    """No goal is left out where there is no ratio, and each says why there is none."""
    resume = "gk, beyond two launches"
    tables = [made_up("one more task n=1", {"gk": 2, "hand": -1, "none": "no such thing"},
                      [("gk", "hand", None, 1.5, "none"), ("gk", "", 2, 3, "met"), ("none", "hand", None, 7, "none")],
                      id="F1"),
              made_up("one more pass", {"gk": "no loops here"}, id="F8"),
              made_up("yield and resume", {resume: 5}, id="F8"),
              made_up("growth", {"1": 1, "2": 2, "3": 3}, [("3", "2", None, 2, "none")], id="G", along="tasks")]
    row = {"table": "F1", "what": "one more task n=1", "unit": "ns", "how": "one thread", "correct": True}
    ratio = {"of": "gk", "median": 0.2, "least": 0.1, "most": 0.3, "rounds": 2, "medians": [0.1, 0.3], "goal": 0.25,
             "verdict": "none"}
    warp = {"peer": "warp", "version": "1", "rows": [dict(row, **figures(-3)),
                                                     dict(row, **figures(2), table="F8", what="one more pass")]}
    found = lacks(page_of(folder, tables, peers={"peers": [warp, {"peer": "quadrants", "missing": "isn't installed"}]}),
                  "| F1 | one more task n=1: gk | gk against hand | - |  |  | 1.5 | lost in noise |",
                  "| F1 | one more task n=1: none | none against hand | - |  |  | 7 | not measured |",
                  "| F1 | one more task n=1: gk | warp 1 | - |  |  | 0.25 | lost in noise |",
                  "| F8 | one more pass: gk | warp 1 | - |  |  | 0.3 | not measured: no loops here |",
                  f"| F8 | yield and resume: {resume} | quadrants | - |  |  | 0.04 | not measured: isn't installed |",
                  "| G | growth: 3 | 3 against 2 | - |  |  | 2 | not judged |",
                  "\nOf 7 goals: 1 met, 2 lost in noise, 4 not measured or not judged.\n")
    warp["rows"] = [dict(row, **figures(10), ratio=ratio), {"table": "F8", "what": "one more pass", "missing": "none"}]
    failed = {"peer": "quadrants", "version": "2", "rows": [], "failed": [{"how": "it", "why": "it broke"}]}
    tables[1] = made_up("one more pass", {"gk": 3}, id="F8")
    found = found or lacks(
        page_of(folder, tables, peers={"peers": [warp, failed]}),
        "| F1 | one more task n=1: gk | warp 1 | 0.20 | 0.10, 0.30 |  | 0.25 | not judged |",
        "| F8 | one more pass: gk | warp 1 | - |  |  | 0.3 | not measured: none |",
        f"| F8 | yield and resume: {resume} | quadrants 2 | - |  |  | 0.04 | not measured: it broke |")
    return found or lacks(page_of(folder, tables, peers={"peers": []}),
                          "| F8 | one more pass: gk | warp | - |  |  | 0.3 | not measured: it wasn't asked for |")


WITHOUT = """
import sys
sys.path.insert(0, "bench/tools")
import plot
plot.PYTHONS = sys.argv[2:]
sys.argv[2:] = []
plot.main()
"""


def without_matplotlib(folder):
    """A page with plots keeps them, and another Python is asked to draw; a new page says that it has no plots."""
    page, drawer = Path(folder) / "README.md", Path(folder) / "drawer"
    page_of(folder, [made_up("one more task n=1", {"gk": 2}, id="F1")])

    def plotted(*pythons):
        return subprocess.run([sys.executable, "-c", WITHOUT, folder, *pythons], cwd=tap.ROOT, capture_output=True,
                              text=True)
    page.unlink()
    for _ in range(2):  # what shows none loses none
        if plotted().returncode or lacks(page.read_text(), "- no plots: ", "| gk | 1.00 |"):
            return f"a new page: {page.read_text()}"
    page.write_text("![F1](F1.svg)\n")
    done = plotted("/nowhere/python")
    if done.returncode != 1 or page.read_text() != "![F1](F1.svg)\n" or "python3-matplotlib" not in done.stderr:
        return f"a page with plots: {done.returncode}, {done.stderr}{page.read_text()}"
    drawer.write_text(f'#!/bin/sh\n[ "$1" = -c ] || echo "$*" > "{folder}/asked"\n')
    drawer.chmod(0o755)
    done = plotted("/nowhere/python", str(drawer))
    asked = (Path(folder) / "asked").read_text()
    return None if asked.endswith(f"bench/tools/plot.py {folder}\n") else f"another Python: {asked}, {done.stderr}"


def rounds_shown(folder):
    """One round has no spread of rounds; and where rounds were held against several variants, none of them is named."""
    row = {"table": "F1", "what": "one more task n=1", "unit": "ns", "how": "it", "correct": True, **figures(10),
           "ratio": {"of": "gk", "median": 0.2, "least": 0.2, "most": 0.2, "rounds": 1, "goal": 0.25, "verdict": "met"}}
    table = made_up("one more task n=1", {"gk": 2, "loops": 4, "region": 2.5},
                    [("gk", "the better of each round", 0.7, 1, "met")], id="F1")
    table["ratios"][0]["rounds against"] = ["loops", "region"]
    table["ratios"] += [
        dict(table["ratios"][0], against="region", goal=0.85, verdict="undecided", medians=[0.8, 0.8504, None, None, 3],
             verdicts=["met", "met", "missed", "lost", "lost"], p95=None),
        dict(table["ratios"][0], against="region", goal=0.72, verdict="undecided", medians=[0.7, 0.8],
             verdicts=["met", "missed"]),
        dict(table["ratios"][0], against="region", goal=0.75), dict(table["ratios"][0], median=0.6996, goal=0.7)]
    page = page_of(folder, [table], peers={"peers": [{"peer": "warp", "version": "1", "rows": [row]}]})
    return lacks(page, "commit , 1 round\n", "| gk | 0.80 |", "| loops | 1.60 |", "| variant | times region |",
                 "| F1 | one more task n=1: gk | the better of each round | 0.70 |  | 0.70 to 0.70 | 1 | met |",
                 "| region | 0.70 | 0.80, 0.8504, ∞, -, 3.00 | 0.70 to ∞ | 0.85 | undecided: missed in 1 of 5 rounds; "
                 "2 of 5 rounds lost in noise |",
                 "0.72 | undecided: missed in 1 of 2 rounds; of the variants' medians it is 0.80 |",
                 "\nOf 6 goals: 4 met, 2 undecided.\n",
                 "| region | 0.70 |  | 0.70 to 0.70 | 0.75 | met; of the variants' medians it is 0.80 |",
                 "| 0.6996 |  | 0.70 to 0.70 | 0.7 | met; of",
                 "| F1 | one more task n=1: gk | warp 1 | 0.20 |  |  | 0.25 | met |",
                 "| F1 | one more task n=1 | warp 1 | 0.20 | one round | it |")


def in_short(folder):
    """What a pass, a checkpoint and a yield take, beside the floor; of a GPU as times, too. What isn't linear says so,
    with what takes less where there is more; and what the host gave to others is there for each round."""
    floor = {"unit": "us", "variants": [dict(figures(0.002), name="a call through a pointer")]}
    wide = dict(figures(6), p5=-1, p95=9)
    took = {"gk, beyond two launches": 6, "gk, yield and resume": 46, "gk, two launches": 40}
    yields = made_up("yield and resume", took, id="F8")
    yields["variants"][0].update(wide)
    grows = [made_up("building, by tasks", dict(zip("0123", (0, 1, 2, 5))), [("3", "2", 2.5, 2, "missed")], id="G",
                     along="tasks"),
             made_up("a replay, by tasks", dict(zip("0123", (0, 1, 2, 1))), [("3", "2", -1, 2, "met")], id="G",
                     along="tasks")]
    tables = [made_up("one more task n=1", {"gk": 7}, id="F1"), made_up("one more pass", {"gk": 8}, id="F8"),
              made_up("silent checkpoint", {"gk, the checkpoint alone": "none here"}, id="F8"), yields, *grows]
    machine = dict.fromkeys(("cpu", "cores", "arch", "kernel", "compiler", "flags", "clock"), "x")
    machine |= {"clocks before": "A", "clocks after": "B", "each round": [{"stolen": 1.25}, {"stolen": None}]}
    device = {"gpu": "G", "multiprocessors": "1", "driver": "D", "toolkit": "T"}
    peer = {"program": "cuda_peers", "device": device, "floor": dict(floor, unit="ns", variants=[
        dict(figures(4), name="an edge")]), "machine": machine, "tables": [made_up("one launch", {"gk": 10}, id="C12")]}
    page = page_of(folder, tables, tasks={"program": "tasks", "machine": machine, "floor": floor, "tables": tables},
                   cuda_peers=peer)
    if "a checkpoint that stays silent" in page:
        return f"what wasn't measured is there:\n{page[:2000]}"
    return lacks(page, '| table | of what | times "a call through a pointer", 0.0020 µs | 5 % to 95 % |\n',
                 '| table | of what | times "an edge", 4.00 ns | 5 % to 95 % | time |\n',
                 "| F8 | a launch of one task, and the wait for it | 10.0 | 10.0 to 10.0 |\n",
                 "| F1 | one more task of one item | 3.50 | 3.50 to 3.50 |\n",
                 "| F8 | one more pass of a loop, with its task | 4.00 | 4.00 to 4.00 |\n",
                 "| F8 | a launch that yields, its resume, a wait for each | 23.0 | 23.0 to 23.0 |\n",
                 "| F8 | of that, what is beyond two launches | 3.00 | -0.50 to 4.50 |\n",
                 "| C12 | a launch of one task, the host's time | 2.50 | 2.50 to 2.50 | 10.0 ns |\n",
                 "| A | B | 1.2 %, unknown |\n", "| 2 | below nothing |\n",
                 "\nOf 6 goals: 1 below nothing, 1 missed, 4 not measured or not judged.\n",
                 "**Not linear: building, by tasks.** 3 against 2: 2.50, goal 2: missed. Why: `docs/measuring.md`\n")


def peers_alone(folder):
    """A peer's row without a counterpart in gk is compared with the peer's first row, if that has a time."""
    def row(what, one, all_cores):
        others = [{"how": "all", "correct": True, **figures(all_cores)}]
        return {"table": "F4", "what": what, "unit": "ns", "how": "one", "correct": True, **figures(one),
                "others": others}
    peer = {"peer": "p", "version": "1", "rows": [row("a task", 10, -1), row("a pass", 170, 3), row("more", -2, 4)]}
    page = page_of(folder, [made_up("one more task n=1", {"gk": 2}, id="F1")], peers={"peers": [peer]})
    return lacks(page, "| F4 | a task | p 1 | no counterpart |  | one |",
                 "| F4 | a task | p 1 | lost in noise |  | all |",
                 '| F4 | a pass | p 1 | no counterpart | itself: 17.0 of "a task" | one |',
                 "| F4 | a pass | p 1 | no counterpart |  | all |", "| F4 | more | p 1 | lost in noise |  | one |")


def runs_shown(folder):
    """Programs of several runs, machines or flags: each is named. A page leads to the documents if there is a way."""
    def report(kernel, flags, took, commit):
        machine = {"cpu": "CPU", "cores": 2, "arch": "x", "kernel": kernel, "compiler": "gcc", "flags": flags,
                   "clock": f"it, a reading takes {took} ns"}
        return {"machine": machine, "tables": [made_up("one more task n=1", {"gk": 2}, id="F1")], "started": "then",
                "commit": commit}
    others = {"bfs": report("6", "-O2", 20, "c1"), "solver": report("6", "-O3", 60, "c2"),
              "none": dict(report("5", "-O1", 90, "c3"), tables=[], missing="no device")}
    page = page_of(folder, [made_up("one more task n=1", {"gk": 2}, id="F1")],
                   **{"tasks2": report("6", "-O3", 30, "c2"), **others})
    found = lacks(page, "- CPU, 2 cores (x), Linux 6 (all others)\n", "- x, x cores (x), Linux x (`tasks`)\n",
                  "- gcc, -O2 (`bfs`)\n", "- gcc, -O3 (all others)\n", "- it, a reading takes 20 to 60 ns\n",
                  "- begun then, commit c1, 1 round (`bfs`)\n", "- begun then, commit c2, 1 round (all others)\n",
                  " asks: `docs/performance.md`.")
    if found or "commit c3" in page or "-O1" in page:
        return found or f"what measured nothing is among the runs:\n{page[:2000]}"
    inside = plot_page.link_to_docs(tap.ROOT / "bench/results/some", "docs/performance.md")
    return None if inside == "[docs/performance.md](../../../docs/performance.md)" else inside


def cut_off(folder):
    """JSON that isn't whole is named."""
    (Path(folder) / "tasks.json").write_text('{"program": "tasks", "tables": [')
    for command in (["bench/tools/plot.py", folder], ["bench/tools/compare.py", folder, folder]):
        done = subprocess.run([sys.executable, *command], cwd=tap.ROOT, capture_output=True, text=True)
        if done.returncode != 1 or f"{folder}/tasks.json is no JSON" not in done.stderr or "Traceback" in done.stderr:
            return f"{command[0]}: {done.returncode} {done.stderr}"
    return None


def pictures(folder, tables, **others):
    """The words in each picture, by its name; none without matplotlib. What they are drawn of, with either."""
    page_of(folder, tables, **others)
    words = {path.stem: re.sub(r"<[^>]*>|\s+", " ", path.read_text()) for path in Path(folder).glob("*.svg")}
    return words, {"tasks": {"tables": tables}, **others}


def wrongly_drawn(words, wanted):
    """wanted: by picture, the words that it must contain and those that it must not."""
    if not plot.python_that_draws():
        return None
    if sorted(words) != sorted(wanted):
        return f"pictures: {sorted(words)}"
    bad = [f"{name}: {text}" for name, (those, none) in wanted.items()
           for text in [*(text for text in those if text not in words[name]), *(text for text in none if text in
                                                                                words[name])]]
    return f"{bad}: {words}" if bad else None


def judged_in_plots(folder):
    """What is judged lies where its ratio is, not where two medians are, and says how it did; what is cut off, too."""
    table = made_up("two sections n=1", {"chain": 10, "sections": 5, "hand": 4},
                    [("sections", "chain", 0.7, 0.6, "missed"), ("sections", "hand", 0.9, 1, "met"),
                     ("hand", "chain", 0.1, 0.6, "lost"), ("hand", "nothing", None, 3, "none")], id="F7")
    table["variants"][2]["p95"] = 200
    table["ratios"][2]["p95"] = None
    memory = made_up("memory", {"few": 100, "many": 120},
                     [("many", "", 120, 256, "met"), ("many", "few", 1.2, 2, "met")], id="F6")
    row = {"table": "F8", "what": "one more pass", "unit": "ns", "how": "it", "correct": True, **figures(40),
           "ratio": {"of": "gk", "median": 0.2, "least": 0.1, "most": 0.4, "rounds": 2, "goal": 0.3, "verdict": "met"}}
    peers = {"peers": [{"peer": "warp", "version": "1", "rows": [row]}]}
    words, reports = pictures(folder, [table, memory, made_up("one more pass", {"gk": 5, "C": 10}, id="F8")],
                              peers=peers)
    found = [(mark.of, round(mark.median * mark.unit, 6), round(mark.goal * mark.unit, 6))
             for one in plot_figures.tables_of(reports) for mark in plot_figures.marks_of(one, reports) if mark.unit]
    if found != [("many", 120, 256), ("many", 120, 200), ("sections", 0.7, 0.6), ("sections", 0.36, 0.4),
                 ("hand", 0.1, 0.6), ("gk", 1.6, 2.4)]:
        return f"on the axes: {found}"
    return wrongly_drawn(words, {
        "F6": (["120 ns, goal 256 ns: met", "1.20, goal 2: met"], []),
        "F7": (["0.70, goal 0.6: missed", "0.90, goal 1: met", "0.10, goal 0.6: lost in noise", "not measured",
                "0.40 (to 20.0)"], []),
        "F8": (["gk against warp", "0.20, goal 0.3: met"], [])})


def judged_beside(folder):
    """Where an id has many tables, what is judged of them has a plot of its own; and growth has a line for its goal."""
    many = [made_up(f"application {k}", {"gk": 2, "hand": 1}, [("gk", "hand", 1 + k / 100, 1.02, "met")], id="F3")
            for k in range(4)]
    grows = [made_up(what, dict(zip("0123", costs)), [("3", "2", 2.5, 2, "missed")], id="G", along="tasks")
             for what, costs in (("building", (5, 1, 2, 5)), ("memory", (5, 2, 2, 3)))]
    words, _ = pictures(folder, [*many, *grows])
    lines = [[(round(x, 6), round(cost, 6)) for x, cost in plot_growth.goal_line(table) or []] for table in grows]
    if lines[0][:1] + lines[0][-1:] != [(2, 2), (3, 4)] or lines[1]:
        return f"goals of what grows: {lines}"
    page = (Path(folder) / "README.md").read_text()
    each = [f"application {k}" for k in range(4)]
    wanted = {"F3": ([*each, "1.03, goal 1.02: met"], ["hand"]), "F3-variants": ([*each, "hand"], []),
              "G": (["building", "2.50, goal 2: missed"], []), "G-variants": (["building"], [])}
    return wrongly_drawn(words, wanted) or (
        lacks(page, "![F3](F3.svg)\n\n![F3-variants](F3-variants.svg)\n") if plot.python_that_draws() else None)


def rounds_merged():
    """Several rounds as one, with a floor, a variant that is missing, and a round that is worse than another; and which
    folder gets what."""
    def report(edge, time):
        ratios = [dict(figures(time), goal=2, verdict="met", against="", what="itself", of="gk"),
                  dict(figures(None), goal=2, verdict="none", against="", what="nothing", of="none")]
        return {"wrong": 0, "machine": {"cpu": "A CPU", "cores": 2, "stolen": edge},
                "device": {"gpu": "GPU 1", "clocks before": edge},
                "floor": {"unit": "ns", "variants": [dict(figures(edge), name="edge")]},
                "tables": [{"id": "C1", "unit": "us", "ratios": ratios,
                            "floor": {"of": "edge", "times": 2000, "least": 2 * edge},
                            "variants": [dict(figures(time), name="gk", correct=True),
                                     {"name": "none", "missing": "why"}]}]}
    merged = rounds.merge([report(1, 2), report(5, 6), report(3, 4)])
    table = merged["tables"][0]
    if merged["machine"]["each round"] != [{"date": None, "stolen": one} for one in (1, 5, 3)]:
        return f"the machine: {merged['machine']}"
    first, second = table["variants"]
    found = [first["median"], first["p95"], second, table["ratios"][0]["verdict"], table["ratios"][1]["median"],
             table["floor"]["least"], merged["floor"]["variants"][0]["p5"], merged["device"]["clocks before"],
             merged["rounds"]]
    if found != [4, 6, {"name": "none", "missing": "why"}, "undecided", None, 2, 1, 1, 3]:
        return f"merged: {found}"
    held = [dict(figures(median), against=against, goal=1, verdict=verdict) for median, against, verdict in
            ((2, "loops", "missed"), (0.5, "region", "met"), (0.7, "loops", "met"), (None, "none", "none"))]
    kept = [rounds.over_rounds(list(same))["against"] for same in (held, held[::2], held[2:])]
    if kept != ["the better of each round", "loops", "loops"] or rounds.over_rounds(held[1:])["verdict"] != "met":
        return f"held against: {kept}"
    called = [runner.command(words) for words in ([], ["--quick"], ["--out", "a b", "--quick"])]
    if called != ["./configure.py bench", "./configure.py bench --quick", "bench/tools/run.py --out 'a b' --quick"]:
        return f"as it was called: {called}"
    if rounds.merge([report(1, 2), report(1, 4)])["tables"][0]["variants"][0]["median"] != 3:
        return "of two rounds neither the better nor the worse counts"
    missing = {"missing": "no", "tables": [], "wrong": 0, "machine": merged["machine"]}
    if rounds.merge([missing, report(1, 2)])["tables"] == [] or rounds.merge([missing])["missing"] != "no":
        return "a round without figures"
    failed = dict(report(1, 2), failed="why", tables=[])
    if not rounds.merge([failed, dict(report(1, 2), failed="why")])["tables"]:
        return "of two rounds that failed the one that got further"
    if not rounds.merge([report(1, 2), failed])["tables"] or rounds.merge([failed])["failed"] != "why":
        return "a round that came to no end"
    own = dict(missing, tables=merged["tables"])
    del own["missing"]
    peers = {"peers": [{"peer": "p", "rows": [{"table": "C2"}, {"table": "F1"}]}, {"peer": "q", "missing": "no"}]}
    both = runner.by_device({"tasks": own, "cuda_a": merged, "cuda_b": missing, "peers": peers})
    alone = runner.by_device({"tasks": own, "cuda_a": missing, "peers": peers})
    names = {folder: sorted(found) for folder, found in both.items()}
    if names != {"a-cpu-2-cores": ["peers", "tasks"], "gpu-1": ["cuda_a", "cuda_b", "peers"]}:
        return f"folders: {names}"
    rows = [[peer.get("rows") for peer in both[folder]["peers"]["peers"]] for folder in ("a-cpu-2-cores", "gpu-1")]
    if rows != [[[{"table": "F1"}], None], [[{"table": "C2"}], None]]:
        return f"peers by device: {rows}"
    return None if list(alone) == ["a-cpu-2-cores"] and len(alone["a-cpu-2-cores"]) == 3 else f"without a GPU: {alone}"


def rounds_judged():
    """The verdict of several rounds on a goal. A figure that no round has is infinite, if it was judged."""
    def ratio(median, verdict):
        return dict(figures(median), of="gk", against="C", goal=1, verdict=verdict)
    for medians, verdicts, wanted, middle in (
            ((None, None, 0.5), ("missed", "missed", "met"), "undecided", None),
            ((None, None, None), ("missed",) * 3, "missed", None), ((0.5, 0.9, 1), ("met",) * 3, "met", 0.9),
            ((0.5, 1.1, 0.9), ("met", "missed", "met"), "undecided", 0.9),
            ((2, 1.1, 1.5), ("missed",) * 3, "missed", 1.5), ((0.5, 2, 3), ("met", "lost", "lost"), "lost", 2),
            ((0.5, 0.6, 3), ("met", "met", "lost"), "met", 0.6), ((None, 0.5), ("none", "met"), "met", 0.5),
            ((None, None, 0.5), ("none", "none", "met"), "lost", 0.5),
            ((0.5, 1.2, 3), ("met", "missed", "lost"), "undecided", 1.2), ((0.5,), ("met",), "met", 0.5),
            ((None, None), ("none", "none"), "none", None)):
        merged = rounds.over_rounds([ratio(*one) for one in zip(medians, verdicts)])
        if (merged["verdict"], merged["median"]) != (wanted, middle) or \
                merged.get("medians", list(medians)) != list(medians):
            return f"{medians}: {merged}"
    worst = rounds.over_rounds([ratio(None, "missed"), ratio(0.5, "met"), ratio(0.7, "met")])
    return None if (worst["p5"], worst["p95"]) == (0.5, None) else f"the spread: {worst}"


def checked_in():
    """Pages under bench/results that plot.py would write otherwise, and pictures that are on no page."""
    for folder in sorted((plot_page.ROOT / "bench/results").iterdir()):
        page = (folder / "README.md").read_text()
        names, pictures = re.findall(r"^!\[.*\]\((.*\.svg)\)$", page, re.M), {}
        for name in names:
            pictures.setdefault(re.sub(r"(-variants)?\.svg$", "", name), []).append(name)
        if plot_page.readme(folder, plot_figures.load(folder), pictures or None) != page:
            return f"{folder}/README.md isn't what bench/tools/plot.py makes of the JSON files beside it"
        if sorted(names) != sorted(path.name for path in folder.glob("*.svg")):
            return f"{folder} has other pictures than its page: {names}"
    return None


def with_short_ids(picture):
    """matplotlib makes ids of what they name, down to the last bit of a number, in which processors differ."""
    ids = {}
    return re.sub(rb"\bp[0-9a-f]{10}\b", lambda found: ids.setdefault(found[0], b"id%d" % len(ids)), picture)


def drawn_again():
    """Pictures under bench/results that plot.py draws otherwise."""
    for folder in sorted((plot_page.ROOT / "bench/results").iterdir()):
        with tempfile.TemporaryDirectory() as copy:
            for path in folder.glob("*.json"):
                shutil.copy(path, copy)
            problem = tap.run(sys.executable, tap.ROOT / "bench/tools/plot.py", copy)
            was, now = ({path.name: with_short_ids(path.read_bytes()) for path in Path(place).glob("*.svg")}
                        for place in (folder, copy))
            differ = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
            if problem or differ:
                return problem or f"bench/tools/plot.py draws these pictures of {folder} otherwise: {differ}"
    return None


def main():
    tap.case("pages checked in", checked_in())
    drawer = plot.python_that_draws()
    version = drawer and subprocess.run([drawer, "-c", "import matplotlib; print(matplotlib.__version__)"],
                                        stdout=subprocess.PIPE, text=True).stdout.strip()
    if version and version.startswith(DRAWN_BY):
        tap.case("pictures checked in", drawn_again())
    else:
        tap.skip("pictures checked in", f"needs matplotlib {DRAWN_BY}x (Debian 12: python3-matplotlib), "
                 f"found {version or 'none'}")
    for name, test in (("no goal is left out", goals_shown), ("rounds on the page", rounds_shown),
                       ("runs on one page", runs_shown), ("peers alone", peers_alone),
                       ("what is asked first", in_short),
                       ("what is judged, in plots", judged_in_plots),
                       ("what is judged of many tables", judged_beside),
                       ("a page without matplotlib", without_matplotlib), ("a page of what is cut off", cut_off)):
        with tempfile.TemporaryDirectory() as folder:
            tap.case(name, test(folder))
    tap.case("rounds merged, by device", rounds_merged())
    tap.case("rounds judged", rounds_judged())
    tap.finish()


main()
