#!/usr/bin/env python3
"""Each benchmark, with --quick: every arm runs once and is right, the JSON has them all, and so has the page that is
written from it. The runner: on figures that are known, and on a wrong result."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tap

sys.path.insert(0, str(tap.ROOT / "bench"))
import plot  # noqa: E402
import plot_growth  # noqa: E402
import run as runner  # noqa: E402
import run_peers  # noqa: E402

NVML = "build/tests/bench/nvml/libnvidia-ml.so.1"


def wrong(report):
    """What is wrong in a program's JSON, or None."""
    arms = [(table["what"], arm) for table in report["tables"] for arm in table["arms"]]
    bad = [f"{what}: {arm['name']}" for what, arm in arms if "missing" not in arm and arm["correct"] is not True]
    if bad or report["wrong"]:
        return "wrong results: " + "; ".join(bad)
    if "floor" not in report:
        return "the floor isn't measured"
    floors = [table["floor"]["times"] for table in report["tables"] if "floor" in table]
    if "device" in report and any(times < 1 for times in floors):
        return f"floors are so many kernels, launches or round trips: {floors}"
    return None if len(arms) > 1 and report["quick"] else "there should be arms to compare, and it should be quick"


def run(program, folder):
    out = Path(folder) / f"{Path(program).name}.json"
    # Threads that wait by spinning take minutes where a machine has much else to do.
    env = {**os.environ, "OMP_WAIT_POLICY": "passive"} | (simulated() if needs_cuda(program) else {})
    trouble = tap.run(Path(program).resolve(), "--quick", "--json", out, cwd=tap.ROOT, env=env)
    return trouble or wrong(json.loads(out.read_text()))


def needs_cuda(program):
    return Path(program).name.startswith("cuda_")


def simulated():
    folder = str(Path("build/simgpu").resolve())
    return {"LD_LIBRARY_PATH": folder, "CUDA_HOME": folder, "GK_CACHE": "off"}


def measures_nothing(program, folder, env):
    """It says why there is nothing to measure, and that is no failure."""
    out = Path(folder) / "missing.json"
    trouble = tap.run(Path(program).resolve(), "--json", out, cwd=tap.ROOT, env={**os.environ, **env})
    if trouble:
        return trouble
    report = json.loads(out.read_text())
    out.unlink()
    return None if report["missing"] and not report["tables"] else f"the JSON has {report}"


def device_described(folder):
    """What a CUDA program says of its device, with an NVML that knows its clocks and without."""
    out, nvml = Path(folder) / "device.json", str(Path("build/tests/bench/nvml").resolve())
    for has_nvml in (True, False):
        env = {**os.environ, **simulated(), "SIMGPU_VERSION": "12.4"}
        env["LD_LIBRARY_PATH"] += ":" + nvml if has_nvml else ""
        trouble = tap.run(Path("build/bench/cuda_checkpoints").resolve(), "--quick", "--only", "C5", "--json", out,
                          cwd=tap.ROOT, env=env)
        if trouble:
            return trouble
        report = json.loads(out.read_text())
        said = report["device"]
        clocks = [f"multiprocessors {now} of at most 1980 MHz, memory 2500 of 2619 MHz" for now in (1499, 1498)]
        found = [said["clocks before"], said["clocks after"]]
        if found != clocks if has_nvml else not all(one.startswith("unknown: ") for one in found):
            return f"clocks: {said}"
        release = "580.1" if has_nvml else "unknown"
        if (said["gpu"], said["driver"]) != ("simulated GPU 0", f"CUDA 12.4, release {release}"):
            return f"the device: {said}"
        if not said["toolkit"].startswith("NVRTC ") or said["multiprocessors"] != "4":
            return f"the toolkit: {said}"
        if len(report["floor"]["arms"]) != 4 or report["tables"][0]["floor"]["times"] != 1:
            return f"the floor: {report['floor']}"
    return None


def relaunch_missing(folder):
    """A graph that launches itself needs what the simulated driver hasn't got: the table says so, and has the rest."""
    out = Path(folder) / "loops.json"
    trouble = tap.run(Path("build/bench/cuda_loops").resolve(), "--quick", "--only", "C7", "--json", out, cwd=tap.ROOT,
                      env={**os.environ, **simulated()})
    if trouble:
        return trouble
    for table in json.loads(out.read_text())["tables"]:
        missing = {arm["name"]: arm["missing"] for arm in table["arms"] if "missing" in arm}
        if missing != {"a graph that launches itself from the device": "the driver has no linker for device code"}:
            return f"{table['what']}: missing are {missing}"
    return None


def shown(folder):
    """Whether the page has every arm, peers, and what isn't there."""
    peers = {"rounds": 1, "started": "", "commit": "", "peers": [
        {"peer": "warp", "version": "1", "rows": [
            {"table": "F1", "what": "one more task n=1", "unit": "ns", "how": "one thread", "median": 3.0, "p5": 2.0,
             "p95": 4.0, "correct": True, "ratio": {"of": "gk", "median": 0.5, "least": 0.4, "most": 0.6, "rounds": 2,
                                                    "goal": 0.25, "verdict": "missed"}},
            {"table": "F8", "what": "silent checkpoint", "missing": "it has none"}]},
        {"peer": "quadrants", "missing": "isn't installed"}]}
    (Path(folder) / "peers.json").write_text(json.dumps(peers))
    for path in Path(folder).glob("*.json"):
        report = json.loads(path.read_text())
        path.write_text(json.dumps(dict(report, rounds=1, started="", commit="")))
    trouble = tap.run(sys.executable, tap.ROOT / "bench/plot.py", folder, cwd=tap.ROOT)
    if trouble:
        return trouble
    page = (Path(folder) / "README.md").read_text()
    wanted = {arm["name"] for path in Path(folder).glob("*.json") for table in
              json.loads(path.read_text()).get("tables", []) for arm in table["arms"]}
    wanted |= {"isn't installed", "it has none", "0.50 | 0.40 to 0.60 (rounds) | 0.25 | missed"}
    absent = [name for name in wanted if name not in page]
    return "the page lacks " + "; ".join(absent) if absent else None


def made_up(what, arms, ratios=(), **more):
    """A table: arms by name, with a median or a reason; ratios as (of, against, median, goal, verdict)."""
    return {"what": what, "question": "?", "unit": "ns", "turns": 21, **more,
            "arms": [{"name": name, "x": x, **({"missing": took} if isinstance(took, str) else figures(took))}
                     for x, (name, took) in enumerate(arms.items())],
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
    done = subprocess.run([sys.executable, tap.ROOT / "bench/plot.py", folder], capture_output=True, text=True)
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
    ratio = {"of": "gk", "median": 0.2, "least": 0.1, "most": 0.3, "rounds": 2, "goal": 0.25, "verdict": "none"}
    warp = {"peer": "warp", "version": "1", "rows": [dict(row, **figures(-3)),
                                                     dict(row, **figures(2), table="F8", what="one more pass")]}
    found = lacks(page_of(folder, tables, peers={"peers": [warp, {"peer": "quadrants", "missing": "isn't installed"}]}),
                  "| F1 | one more task n=1: gk | gk against hand | - |  | 1.5 | lost in noise |",
                  "| F1 | one more task n=1: none | none against hand | - |  | 7 | not measured |",
                  "| F1 | one more task n=1: gk | warp 1 | - |  | 0.25 | lost in noise |",
                  "| F8 | one more pass: gk | warp 1 | - |  | 0.3 | not measured: no loops here |",
                  f"| F8 | yield and resume: {resume} | quadrants | - |  | 0.04 | not measured: isn't installed |",
                  "| G | growth: 3 | 3 against 2 | - |  | 2 | not judged |")
    warp["rows"] = [dict(row, **figures(10), ratio=ratio), {"table": "F8", "what": "one more pass", "missing": "none"}]
    failed = {"peer": "quadrants", "version": "2", "rows": [], "failed": [{"how": "it", "why": "it broke"}]}
    tables[1] = made_up("one more pass", {"gk": 3}, id="F8")
    found = found or lacks(
        page_of(folder, tables, peers={"peers": [warp, failed]}),
        "| F1 | one more task n=1: gk | warp 1 | 0.20 | 0.10 to 0.30 (rounds) | 0.25 | not judged |",
        "| F8 | one more pass: gk | warp 1 | - |  | 0.3 | not measured: none |",
        f"| F8 | yield and resume: {resume} | quadrants 2 | - |  | 0.04 | not measured: it broke |")
    return found or lacks(page_of(folder, tables, peers={"peers": []}),
                          "| F8 | one more pass: gk | warp | - |  | 0.3 | not measured: it wasn't asked for |")


WITHOUT = """
import sys
sys.path.insert(0, "bench")
import plot
plot.PYTHONS = sys.argv[2:]
sys.argv[2:] = []
plot.main()
"""


def without_matplotlib(folder):
    """A page that shows plots keeps them, and another Python is asked; a new one says that it has none."""
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
    return None if asked.endswith(f"bench/plot.py {folder}\n") else f"another Python: {asked}, {done.stderr}"


def rounds_shown(folder):
    """One round has no spread of rounds; and where rounds were held against several arms, none of them is named."""
    row = {"table": "F1", "what": "one more task n=1", "unit": "ns", "how": "it", "correct": True, **figures(10),
           "ratio": {"of": "gk", "median": 0.2, "least": 0.2, "most": 0.2, "rounds": 1, "goal": 0.25, "verdict": "met"}}
    table = made_up("one more task n=1", {"gk": 2, "loops": 4, "region": 2.5},
                    [("gk", "the better of each round", 0.7, 1, "met")], id="F1")
    table["ratios"][0]["rounds against"] = ["loops", "region"]
    page = page_of(folder, [table], peers={"peers": [{"peer": "warp", "version": "1", "rows": [row]}]})
    return lacks(page, "commit , 1 round\n", "| gk | 0.80 |", "| loops | 1.60 |", "| arm | times region |",
                 "| F1 | one more task n=1: gk | the better of each round | 0.70 | 0.70 to 0.70 | 1 | met |",
                 "| F1 | one more task n=1: gk | warp 1 | 0.20 | one round | 0.25 | met |",
                 "| F1 | one more task n=1 | warp 1 | 0.20 | one round | it |")


def pictures(folder, tables, **others):
    """The words in each picture, by its name; none without matplotlib. What they are drawn of, with either."""
    page_of(folder, tables, **others)
    words = {path.stem: re.sub(r"<[^>]*>|\s+", " ", path.read_text()) for path in Path(folder).glob("*.svg")}
    return words, {"tasks": {"tables": tables}, **others}


def wrongly_drawn(words, wanted):
    """wanted: by picture, what it must say and what it mustn't."""
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
    table["arms"][2]["p95"] = 200
    table["ratios"][2]["p95"] = None
    memory = made_up("memory", {"few": 100, "many": 120},
                     [("many", "", 120, 256, "met"), ("many", "few", 1.2, 2, "met")], id="F6")
    row = {"table": "F8", "what": "one more pass", "unit": "ns", "how": "it", "correct": True, **figures(40),
           "ratio": {"of": "gk", "median": 0.2, "least": 0.1, "most": 0.4, "rounds": 2, "goal": 0.3, "verdict": "met"}}
    peers = {"peers": [{"peer": "warp", "version": "1", "rows": [row]}]}
    words, reports = pictures(folder, [table, memory, made_up("one more pass", {"gk": 5, "C": 10}, id="F8")],
                              peers=peers)
    found = [(mark.of, round(mark.median * mark.unit, 6), round(mark.goal * mark.unit, 6))
             for one in plot.tables_of(reports) for mark in plot.marks_of(one, reports) if mark.unit]
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
    return wrongly_drawn(words, {"F3": ([*each, "1.03, goal 1.02: met"], ["hand"]), "F3-arms": ([*each, "hand"], []),
                                 "G": (["building", "2.50, goal 2: missed"], []), "G-arms": (["building"], [])}) or (
        lacks(page, "![F3](F3.svg)\n\n![F3-arms](F3-arms.svg)\n") if plot.python_that_draws() else None)


def from_one_command(folder):
    """bench/run.py where there is a device, and where there is none: what it writes, and that nothing is left out."""
    command = [sys.executable, Path("bench/run.py").absolute(), "--quick", "--no-peers", "--only", "cuda_checkpoints",
               "--only", "kernel_host", "--out", Path(folder).name]
    none = {"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": ""}
    for env, wanted in ((simulated(), ["- simulated GPU 0, 4 multiprocessors", "- driver: CUDA ", "## Floor",
                                       '*floor: 1.00 of "an edge between two empty kernels"*', "| clocks after |",
                                       "| C6 | a yield, and the launch that resumes: gk |", "## K: "]),
                        (none, ["## Not measured", "- `cuda_checkpoints`: ", "## K: "])):
        # Of this tree, which has bench/, too; a relative --out is one of the folder in which it is called.
        trouble = tap.run(*command, env={**os.environ, **env}, cwd=Path(folder).parent)
        if trouble:
            return trouble
        page = (Path(folder) / "README.md").read_text()
        absent = [line for line in wanted if line not in page]
        if absent or ("## Not measured" in page) != (env is none):
            return f"the page lacks {absent}:\n{page[:3000]}"
    return None


def misused(folder):
    """What bench/run.py can't do is said before anything is measured."""
    page = Path(folder) / "page"
    page.write_text("")
    for words, wanted in ((["--only", "kernal_host"], "--only kernal_host: there is none; there are bfs, "),
                          (["--only", "solver", "--only", "warp"], "--only warp: there is none"),
                          (["--only", "solver", "--out", page], f"--out {page} is no folder"),
                          (["--rounds", "0"], "--rounds 0: at least 1"),
                          (["--only", "warp_graph"], "peers are held against a program of gk's")):
        done = subprocess.run([sys.executable, Path("bench/run.py").absolute(), "--quick", *words], capture_output=True,
                              text=True)
        if done.returncode != 1 or f"bench/run.py: {wanted}" not in done.stderr or "Traceback" in done.stderr:
            return f"{words}: {done.returncode} {done.stdout}\n{done.stderr}"
    return None


def figures(median):
    return {"median": median, "p5": median, "p25": median, "p75": median, "p95": median}


def rounds_merged():
    """Several rounds as one, with a floor, an arm that is missing, and one that is worse than another time; and which
    folder gets what."""
    def report(edge, time):
        ratios = [dict(figures(time), goal=2, verdict="met", against="", what="itself", of="gk"),
                  dict(figures(None), goal=2, verdict="none", against="", what="nothing", of="none")]
        return {"wrong": 0, "machine": {"cpu": "A CPU", "cores": 2}, "device": {"gpu": "GPU 1", "clocks before": edge},
                "floor": {"unit": "ns", "arms": [dict(figures(edge), name="edge")]},
                "tables": [{"id": "C1", "unit": "us", "ratios": ratios,
                            "floor": {"of": "edge", "times": 2000, "least": 2 * edge},
                            "arms": [dict(figures(time), name="gk", correct=True),
                                     {"name": "none", "missing": "why"}]}]}
    merged = runner.merge([report(1, 2), report(5, 6), report(3, 4)])
    table = merged["tables"][0]
    found = [table["arms"][0]["median"], table["arms"][0]["p95"], table["arms"][1], table["ratios"][0]["verdict"],
             table["ratios"][1]["median"], table["floor"]["least"], merged["floor"]["arms"][0]["p5"],
             merged["device"]["clocks before"], merged["rounds"]]
    if found != [4, 6, {"name": "none", "missing": "why"}, "missed", None, 2, 1, 1, 3]:
        return f"merged: {found}"
    held = [dict(figures(median), against=against, goal=1, verdict=verdict) for median, against, verdict in
            ((2, "loops", "missed"), (0.5, "region", "met"), (0.7, "loops", "met"), (None, "none", "none"))]
    kept = [runner.over_rounds(list(same))["against"] for same in (held, held[::2], held[2:])]
    if kept != ["the better of each round", "loops", "loops"] or runner.over_rounds(held)["verdict"] != "met":
        return f"held against: {kept}"
    called = [runner.command(words) for words in ([], ["--quick"], ["--out", "a b", "--quick"])]
    if called != ["./configure.py bench", "./configure.py bench --quick", "bench/run.py --out 'a b' --quick"]:
        return f"as it was called: {called}"
    if runner.merge([report(1, 2), report(1, 4)])["tables"][0]["arms"][0]["median"] != 3:
        return "of two rounds neither the better nor the worse counts"
    missing = {"missing": "no", "tables": [], "wrong": 0, "machine": merged["machine"]}
    if runner.merge([missing, report(1, 2)])["tables"] == [] or runner.merge([missing])["missing"] != "no":
        return "a round without figures"
    failed = dict(report(1, 2), failed="why", tables=[])
    if not runner.merge([report(1, 2), failed])["tables"] or runner.merge([failed])["failed"] != "why":
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


def counterparts(folder):
    """Whether programs have the arms that peers are held against."""
    def lacks(program, *arm):
        return run_peers.our_figure(json.loads((Path(folder) / f"{program}.json").read_text()), *arm) is None
    absent = [key for key, (program, arm) in run_peers.OURS.items() if lacks(program, *key, arm)]
    return f"without an arm of ours: {absent}" if absent else None


def known_figures(folder):
    """The runner's verdicts where there is nothing to measure."""
    out = Path(folder) / "known.json"
    done = subprocess.run(["build/tests/bench/wrong", "--json", out], capture_output=True, text=True)
    report = json.loads(out.read_text())
    known, wrong_table, missing, grows, wavers = report["tables"]
    found = [(ratio["against"], round(ratio["median"], 6), ratio["verdict"]) for ratio in known["ratios"]]
    if found != [("two", 3, "met"), ("three", 0.666667, "missed"), ("", 3, "met")]:
        return f"ratios: {found}"
    if known["question"] != 'is "arithmetic" right?' or known["arms"][0]["median"] != 6:
        return f"the table: {known}"
    if [arm["correct"] for arm in wrong_table["arms"]] != [True, False] or report["wrong"] != 1:
        return "the wrong result isn't in the JSON"
    found = [(ratio["against"], ratio["median"], ratio["verdict"]) for ratio in missing["ratios"]]
    if found != [("three", 2, "met"), ("", None, "none"), ("six", None, "none"),
                 ("less than nothing", None, "none")]:
        return f"ratios where an arm is missing: {found}"
    if missing["arms"][2] != {"name": "nobody", "missing": "there is none"} or missing["arms"][1]["x"] != 3:
        return f"arms where one is missing: {missing['arms']}"
    found = [(ratio["against"], ratio["median"], ratio["verdict"]) for ratio in grows["ratios"]]
    if found != [("one", 1.5, "missed"), ("three", 0, "met"), ("one", None, "missed")]:
        return f"ratios of what one more takes: {found}"
    found = [(ratio["median"], ratio["p5"], ratio["p95"], ratio["verdict"]) for ratio in wavers["ratios"]]
    if found != [(1, -1, 10, "lost"), (1, -1, 10, "met")]:
        return f"what wavers: {found}"
    if grows["along"] != "things" or [arm["x"] for arm in grows["arms"]] != [0, 1, 3, 4]:
        return f"what grows: {grows}"
    floor = [(arm["name"], arm["median"], arm["p5"], arm["p95"]) for arm in report["floor"]["arms"]]
    if floor != [("two of them", 2, 2, 2), ("three", 3, 3, 3)] or report["floor"]["unit"] != "us":
        return f"the floor: {report['floor']}"
    if missing["floor"] != {"of": "two of them", "times": 500, "least": 1} or "floor" in known:
        return f"a table's floor: {missing['floor']}"
    if report["device"] != {"gpu": 'one that "isn\'t" there'}:
        return f"the device: {report['device']}"
    if done.stdout.count("the machine's floor: two of them 2 us; three 3 us") != 5 or \
            'floor: 1 ms, 500 of "two of them"' not in done.stdout:
        return "the floor isn't printed beneath each table"
    out.unlink()
    ended = subprocess.run(["build/tests/bench/wrong", "--json", out], capture_output=True, text=True,
                           env={**os.environ, "WRONG_FAILS": "1"})
    kept = json.loads(out.read_text())
    if ended.returncode != 1 or kept["failed"] != 'it "fails"' or kept["tables"] != report["tables"]:
        return f"a program that fails in the end: {ended.stderr}{kept}"
    os.environ["WRONG_HANGS"] = "1"
    kept, trouble = runner.call([Path("build/tests/bench/wrong").resolve()], out, 5)
    del os.environ["WRONG_HANGS"]
    if not kept or kept["tables"] != report["tables"] or "failed" not in kept or "no end in 5" not in trouble:
        return f"a program that hangs: {trouble}, {kept}"
    failed = done.returncode == 1 and "WRONG RESULT" in done.stdout
    return None if failed else "the wrong result didn't fail the program"


def hangs(folder):
    """Of two that come to no end the first doesn't take the time of the other."""
    for name in ("one", "two"):
        (Path(folder) / name).write_text("#!/bin/sh\nsleep 600\n")
        (Path(folder) / name).chmod(0o755)
    own, runner.BUILD, begin = runner.BUILD, Path(folder), time.monotonic()
    options = argparse.Namespace(rounds=1, quick=False, only=["two", "one"], ends=begin + 6)
    reports, wrong = runner.measure(["one", "two"], [], options, {})
    runner.BUILD, took = own, time.monotonic() - begin
    if [line.split()[0] for line in wrong] != ["two", "one"] or not all("no end" in line for line in wrong) or took > 9:
        return f"{wrong}, {took:.0f} s"
    return None if all(reports[name][0]["missing"] for name in ("one", "two")) else f"{reports}"


def compared(folder):
    """A ratio that doubled, one that was halved, one within its spread, one that is there once; and those that no
    factor is said of, as a difference came out at 0 or below: below 0 twice as much isn't slower."""
    def report(ratios):
        return {"tables": [{"id": "X", "what": "table", "arms": [],
                            "ratios": [{"what": what, "median": median, "p25": median * (1 - spread),
                                        "p75": median * (1 + spread)} for what, median, spread in ratios]}]}
    before, after = Path(folder) / "before", Path(folder) / "after"
    for where, ratios in ((before, [("one", 1, 0.01), ("two", 2, 0.01), ("three", 3, 0.5), ("four", 4, 0.01),
                                    ("six", 0, 0.01), ("seven", -0.25, 0.01), ("eight", -1, 0.01),
                                    ("nine", 2, 0.01)]),
                          (after, [("one", 2, 0.01), ("two", 1, 0.01), ("three", 4, 0.5), ("five", 5, 0.01),
                                   ("six", 6, 0.01), ("seven", -0.5, 0.01), ("eight", -0.25, 0.01),
                                   ("nine", -2, 0.01)])):
        where.mkdir()
        (where / "tasks.json").write_text(json.dumps(report(ratios)))
    done = subprocess.run([sys.executable, "bench/compare.py", before, after], capture_output=True, text=True)
    wanted = ["slower: X, table, one: 2.000 times as much (noise 2 %)", "faster: X, table, two: 0.500 times as much",
              "from 0 to 6: X, table, six", "only after: X, table, five", "only before: X, table, four",
              "lost in noise: X, table, seven: -0.25 before, -0.5 after", "lost in noise: X, table, eight: -1 before",
              "from 2 to -2: X, table, nine",
              "7 figures in both: 1 slower, 1 faster, 1 within the noise, 4 at 0 or below\n"]
    absent = [line for line in wanted if line not in done.stdout]
    if absent or done.returncode != 1:
        return f"exit code {done.returncode}, without {absent}:\n{done.stdout}{done.stderr}"
    gpu = {"program": "cuda", "device": {"gpu": "G"}, "commit": "c", "quick": True, "tables": [
        {"id": "C1", "what": "gone", "arms": [{"name": "gk", "median": 2, "p25": 2, "p75": 2}], "ratios": []},
        {"id": "C2", "what": "now", "arms": [{"name": "gk", "missing": "no such kernel"}],
         "ratios": [{"what": "r", "median": None}]}],
        "floor": {"unit": "ns", "arms": [{"name": "edge", "median": 3, "p25": 3, "p75": 3}]}}
    (after / "cuda.json").write_text(json.dumps(gpu))
    edge = {"unit": "ns", "arms": [{"name": "edge", "median": 1, "p25": 1, "p75": 1}]}
    (before / "cuda.json").write_text(json.dumps(dict(gpu, device={"gpu": "H"}, quick=False, floor=edge)))
    (after / "loops.json").write_text(json.dumps({"program": "loops", "missing": "there is no device", "tables": []}))
    times = subprocess.run([sys.executable, "bench/compare.py", before, after, "--times"], capture_output=True,
                           text=True)
    wanted = ["before: H, commit c", "after: G, commit c", "not the same machine: times",
              "after is by --quick",
              "slower: floor, cuda, edge: 3.000 times as much", "not measured after: loops: there is no device",
              "not measured after: C2, now, gk: no such kernel", "2 figures in both: 1 slower, 0 faster"]
    absent = [line for line in wanted if line not in times.stdout]
    if absent or times.returncode != 1:
        return f"with --times, without {absent}:\n{times.stdout}{times.stderr}"
    same = subprocess.run([sys.executable, "bench/compare.py", before, before], capture_output=True, text=True)
    none = subprocess.run([sys.executable, "bench/compare.py", before, folder], capture_output=True, text=True)
    return None if same.returncode == 0 and "no figures" in none.stderr else f"{same.stdout}{none.stderr}"


def peers_compared(folder):
    """What is 1.05 times as much of two peers, where a folder has one round, three, or one as older files have it."""
    def write(name, times, rounds=1, quartiles=True):
        def figure(median, spread):
            ends = {"p25": median * (1 - spread), "p75": median * (1 + spread)}
            return {"median": median, **(ends if quartiles else {})}

        def row(spread):
            ratio = {"of": "gk", "median": times, "least": times, "most": times * (1 if rounds == 1 else 1.001),
                     "rounds": rounds}
            return {"table": "F1", "what": "n=1", **figure(times, spread), "ratio": ratio}
        where = Path(folder) / name
        where.mkdir()
        arm = {"name": "gk", "median": 1, "p25": 0.98, "p75": 1.02}
        tables = [{"id": "F1", "what": "n=1", "arms": [arm], "ratios": []}]
        (where / "tasks.json").write_text(json.dumps({"program": "tasks", "tables": tables}))
        peers = [{"peer": "steady", "rows": [row(0.01)]}, {"peer": "shaky", "rows": [row(0.5)]}]
        (where / "peers.json").write_text(json.dumps({"program": "peers", "rounds": rounds, "peers": peers}))
        return where

    one, later, old = write("one", 1), write("later", 1.05), write("old", 1, quartiles=False)
    three, much = write("three", 1, rounds=3), write("three-later", 1.05, rounds=3)
    steady = "slower: F1, n=1, gk against steady: 1.050 times as much (noise 3 %)\n"
    for before, after, words, wanted in (
            (one, later, [], [steady, "2 figures in both: 1 slower, 0 faster, 1 within the noise\n"]),
            (one, later, ["--times"], ["slower: F1, n=1, steady: 1.050 times", "3 figures in both: 1 slower"]),
            (three, much, [], ["against shaky: 1.050 times as much (noise 2 %)", "2 figures in both: 2 slower"]),
            (old, later, [], ["2 figures in both: 0 slower, 0 faster, 0 within the noise, 2 of unknown noise\n"])):
        done = subprocess.run([sys.executable, "bench/compare.py", before, after, *words], capture_output=True,
                              text=True)
        absent = [line for line in wanted if line not in done.stdout]
        if absent or done.returncode != (before != old):
            return f"{before.name}, {words}: exit code {done.returncode}, without {absent}:\n{done.stdout}{done.stderr}"
    return None


def unlisted(programs):
    """Programs, headers and scripts that bench/README.md doesn't name."""
    folder = tap.ROOT / "bench"
    page = (folder / "README.md").read_text()
    names = [f"{Path(program).name}.c" for program in programs]
    names += [path.name for suffix in ("h", "py", "sh") for path in folder.glob(f"*.{suffix}")
              if not path.name.endswith(("_app.h", "_hand.h"))]
    absent = sorted(name for name in names if f"`{name}" not in page)
    return f"bench/README.md lacks {', '.join(absent)}" if absent else None


def main():
    listed = subprocess.run(["ninja", "-t", "targets", "rule", "single"], capture_output=True, text=True).stdout
    programs = re.findall(r"^build/bench/\S+$", listed, re.M)
    tap.case("there are benchmarks", None if programs else "ninja knows no target build/bench/...")
    tap.case("each file has its place in bench/README.md", unlisted(programs))
    trouble = tap.run("ninja", "simulated", *programs) if programs else None
    tap.case("they build", trouble)
    with tempfile.TemporaryDirectory() as folder:
        for program in [] if trouble else programs:
            name = Path(program).name
            tap.case(f"{name}, simulated" if needs_cuda(program) else name, run(program, folder))
            if needs_cuda(program):
                none = {"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": ""}
                tap.case(f"{name} without a device", measures_nothing(program, folder, none))
                old = simulated() | {"SIMGPU_VERSION": "12.3"}
                tap.case(f"{name} with an old driver", measures_nothing(program, folder, old))
        if not trouble:
            tap.case("what peers are held against is there", counterparts(folder))
            tap.case("the page shows all of it", shown(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("the device is described", trouble or tap.run("ninja", NVML) or device_described(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("an arm that can't be measured", trouble or relaunch_missing(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("known figures, and a wrong result",
                 tap.run("ninja", "build/tests/bench/wrong") or known_figures(folder))
    for name, test in (("no goal is left out", goals_shown), ("rounds on the page", rounds_shown),
                       ("what is judged, in plots", judged_in_plots),
                       ("what is judged of many tables", judged_beside),
                       ("a page without matplotlib", without_matplotlib), ("two folders compared", compared),
                       ("ratios to peers compared", peers_compared), ("what hangs takes half of the time", hangs)):
        with tempfile.TemporaryDirectory() as folder:
            tap.case(name, test(folder))
    tap.case("rounds merged, by device", rounds_merged())
    with tempfile.TemporaryDirectory() as folder:
        tap.case("from one command", trouble or from_one_command(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("one command misused", misused(folder))
    tap.finish()


main()
