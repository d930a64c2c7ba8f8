#!/usr/bin/env python3
"""The scripts under bench/peers: their rows are those of the README there, and where a peer is installed (in
build/peers, or for this Python) each of them comes out right. What they have in common: on peers made up here, of which
some fail. What bench/tools/run.py makes of it: on figures that are known."""
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

sys.path.insert(0, str(tap.ROOT / "bench/tools"))
import run  # noqa: E402
import run_peers  # noqa: E402

FOLDER = tap.ROOT / "bench" / "peers"
PEERS = run_peers.listed()
SPREAD = ("median", "p5", "p25", "p75", "p95")
SLEEP = f"86398.{os.getpid()}"  # seconds of a sleep that is told from another run's


def rows_listed():
    """The rows in the README's table."""
    text = (FOLDER / "README.md").read_text()
    return set(re.findall(r"^\| ([FC]\d+) \| `([^`]+)` \|", text, re.M))


def readme():
    scripts = {path.stem for kind in ("*_graph.py", "*_cuda.py", "*_vulkan.py") for path in FOLDER.glob(kind)}
    if set(PEERS) != scripts:
        return f"its scripts and those beside it differ by {sorted(set(PEERS) ^ scripts)}"
    if len(rows_listed()) < 10 or len({peer.name for peer in PEERS.values()}) != len(PEERS):
        return "a table can't be read, or two peers have one name"
    unknown = set(run_peers.OURS) - rows_listed() | {goal[:2] for goal in run_peers.GOALS} - set(run_peers.OURS)
    names = {goal[2] for goal in run_peers.GOALS} - {peer.name for peer in PEERS.values()}
    return f"run_peers.py knows more: {unknown} {names}" if unknown or names else None


def device_of(table):
    return "cuda" if table == "C12" else "vulkan" if table in ("F4", "F9") else "graph"


def trouble(peer, report, code, printed):
    """What is wrong with a script's JSON, or None."""
    rows = {(row["table"], row["what"]): row for row in report["rows"]}
    wanted = {key for key in rows_listed() if device_of(key[0]) == peer.script.stem.rpartition("_")[2]}
    if set(rows) != wanted:
        return f"its rows and those of README.md differ by {sorted(set(rows) ^ wanted)}"
    wrong = [what for what, row in rows.items() if "missing" not in row and row["correct"] is not True]
    if wrong or code != 0 or "failed" in report:
        return f"exit code {code}, wrong results: {wrong}\n{printed}"
    measured = [row for row in rows.values() if "missing" not in row]
    odd = [row["what"] for row in measured if not row["how"] or
           not row["p5"] <= row["p25"] <= row["median"] <= row["p75"] <= row["p95"]]
    return f"figures that can't be: {odd}" if odd or not measured else None


def call(python, script, *words, **env):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        done = subprocess.run([python, script, *words, "--json", out], capture_output=True, text=True, errors="replace",
                              timeout=tap.HANGS, env={**os.environ, **env})
        return json.loads(out.read_text()) if out.exists() else None, done.returncode, done.stdout + done.stderr


def try_peer(peer, python, absent):
    """absent: reason -> scripts that it keeps from running."""
    report, code, printed = call(python, peer.script, "--quick")
    if report is None:
        tap.case(peer.script.name, f"no JSON, exit code {code}\n{printed}")
    elif "missing" in report and code == 0:
        absent.setdefault(report["missing"], []).append(peer.script.name)
    else:
        tap.case(peer.script.name, printed if "missing" in report else trouble(peer, report, code, printed))


def is_missing(peer, python, why, **env):
    """It says so, by its own name, and that is no failure."""
    report, code, printed = call(python, peer.script, "--quick", **env)
    if code or not report or report["peer"] != peer.name or "rows" in report or why not in report.get("missing", ""):
        return f"exit code {code}, {report}\n{printed}"
    return None if f"{peer.name}: {report['missing']}" in printed else printed


# ---- measure.py, on peers that are made up --------------------------------------------------------------------------

MADE_UP = """
import os, sys
import measure

def rows_of(how):
    if how == "throws":
        raise RuntimeError("no such thing\\nand more of it")
    if how == "dies":
        os._exit(7)
    values = iter(range(10, 1000, 10))
    def turn():
        if how == "throws later" and next(values) > 10:
            raise OSError("gone")
        return float(os.environ["TAKES"])
    return [measure.Row("F1", "one more task n=1", "ns", turn, lambda: how != "is wrong")]

ways = [measure.Configuration(how, 0, {"TAKES": takes}) for how, takes in zip(sys.argv.pop(1).split(","), "2345")]
sys.exit(measure.main("made up", ("no-such-thing", "made-up"), "1.0", __file__, ways, rows_of,
                      {("F8", "one more pass"): "it has no loops"}, lambda: os.environ.get("UNUSABLE")))
"""


def dist_info(folder):
    """What pip leaves of an installed package."""
    (folder / "made_up-1.5.dist-info").mkdir(exist_ok=True)
    (folder / "made_up-1.5.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.5\n")


def made_up(folder, ways, installed=True, **env):
    (folder / "made_up.py").write_text(MADE_UP.replace("__file__", f"{str(folder / 'serve.py')!r}"))
    (folder / "serve.py").write_text(MADE_UP.replace("sys.argv.pop(1)", "'good'"))
    if installed:
        dist_info(folder)
    return call(sys.executable, folder / "made_up.py", ways, "--quick", PYTHONPATH=f"{folder}:{FOLDER}", **env)


def in_common(folder):
    report, code, printed = made_up(folder, "good", installed=False)
    if code or report.get("missing") != "no-such-thing isn't installed: pip install no-such-thing==1.0":
        return f"not installed: {report}\n{printed}"
    report, code, printed = made_up(folder, "good,slower")
    other = {"how": "slower", "turns": 2, "correct": True} | dict.fromkeys(SPREAD, 3.0)
    row = {"table": "F1", "what": "one more task n=1", "unit": "ns", "how": "good", "turns": 2, "correct": True,
           "others": [other]} | dict.fromkeys(SPREAD, 2.0)
    none = {"table": "F8", "what": "one more pass", "missing": "it has no loops"}
    if code or report["version"] != "1.5" or report["rows"] != [row, none] or "failed" in report:
        return f"two configurations: {report}\n{printed}"
    report, code, printed = made_up(folder, "throws,dies,throws later,good")
    failed = [(one["how"], one["why"]) for one in report.get("failed", [])]
    if code != 1 or failed != [("throws", "RuntimeError: no such thing"), ("dies", "its process ended with code 7"),
                               ("throws later", "OSError: gone")] or report["rows"][0]["median"] != 5:
        return f"three of four fail: {report}\n{printed}"
    report, code, printed = made_up(folder, "dies")
    if code != 1 or "rows" in report or report["missing"] != "made-up failed: its process ended with code 7":
        return f"all fail: {report}\n{printed}"
    report, code, printed = made_up(folder, "is wrong")
    if code != 1 or report["rows"][0]["correct"] or "WRONG RESULT" not in printed:
        return f"wrong: {report}\n{printed}"
    report, code, printed = made_up(folder, "good", UNUSABLE="no device")
    return None if code == 0 and report["missing"] == "no device" and "rows" not in report else f"{report}\n{printed}"


# ---- bench/tools/run.py ----------------------------------------------------------------------------------------------

def of_ours(median, quick=False, p5=1.0, p95=100.0, number=0):
    return {"quick": quick, "round": number, "tables": [{"id": "C12", "what": "one more pass", "variants": [
        {"name": "by hand", "median": 1.0}, {"name": "gk", "median": median, "p5": p5, "p95": p95}]}]}


def of_peer(ways):
    best, *others = [{"how": how, "turns": 2, "correct": True} | dict.fromkeys(SPREAD, median) |
                     {"p25": median - 1, "p75": median + 1}
                     for how, median in sorted(ways.items(), key=lambda way: way[1])]
    row = {"table": "C12", "what": "one more pass", "unit": "ns", **best, "others": others}
    return {"peer": "quadrants on CUDA", "version": "1", "python": "3",
            "rows": [row, {"table": "C12", "what": "silent checkpoint", "missing": "none"}]}


def merged():
    """Two rounds, in which another configuration was the fastest; a peer that isn't there; one that lost a round."""
    rounds = [of_peer({"one": 10.0, "two": 12.0}), of_peer({"one": 10.0, "two": 6.0})]
    gone = {"peer": "torch", "missing": "isn't installed"}
    ours = {"cuda_peers": [of_ours(8.0), of_ours(6.0, number=1)]}
    found = run_peers.report({"quadrants_cuda": rounds, "torch_cuda": [gone, gone]}, ours)
    peer, missing = found["peers"]
    row, none = peer["rows"]
    ratio, other = row["ratio"], row["others"][0]["ratio"]
    if (row["how"], row["median"], row["p95"], len(row["others"])) != ("two", 9.0, 12.0, 1):
        return f"the fastest: {row}"
    if [row[name] for name in SPREAD[1:]] != [6.0, 8.0, 10.0, 12.0]:
        return f"its spread: {row}"
    if (ratio["of"], ratio["least"], ratio["most"], ratio["goal"]) != ("gk", 8 / 12, 1, 0.9) or \
            round(ratio["median"], 9) != round(10 / 12, 9) or \
            ratio["verdict"] != "undecided" or other["goal"] or other["verdict"] != "none" or other["least"] != 0.6:
        return f"ratios: {ratio}, {other}"
    if none["missing"] != "none" or missing["missing"] != "isn't installed" or found["rounds"] != 2:
        return f"what is missing: {found}"
    slow = run_peers.report({"quadrants_cuda": rounds}, {"cuda_peers": [of_ours(80.0)] * 2})
    quick = run_peers.report({"quadrants_cuda": rounds}, {"cuda_peers": [of_ours(8.0, True)] * 2})
    alone = run_peers.report({"quadrants_cuda": rounds}, {})
    verdicts = [one["peers"][0]["rows"][0].get("ratio", {}).get("verdict") for one in (slow, quick, alone)]
    return None if verdicts == ["missed", "none", None] else f"verdicts: {verdicts}"


def calls(folder):
    """A script that hangs is ended, with its children; a script that writes no file is reported."""
    script, out = folder / "hangs.py", folder / "hangs.json"
    script.write_text(f"import subprocess, sys\nsubprocess.run(['sleep', '{SLEEP}'])\n")
    report, why = run.call([sys.executable, script], out, 1.5)
    ends = time.monotonic() + 600  # what was killed may take a moment to be gone
    left = True
    while left and time.monotonic() < ends:
        left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if is_sleep(path)]
        time.sleep(0.01)
    if report or why != "hangs came to no end in 2 seconds and left no figures" or left:
        return f"{report}, {why}, {left}"
    script.write_text("raise SystemExit(3)")
    found = run.call([sys.executable, script], out, float("inf"))
    return None if found == (None, "hangs ended with code 3 and left no figures") else found


def is_sleep(path):
    try:
        return SLEEP.encode() in path.read_bytes()
    except OSError:
        return False


def lost_rounds(_):
    """A round that one of two lost pairs nothing with the next; what came out as nothing, or beyond the goal, is no
    verdict."""
    def ratio(ours, *peers):
        found = run_peers.report({"quadrants_cuda": list(peers)}, {"cuda_peers": ours})
        return found["peers"][0]["rows"][0].get("ratio")
    peers = [{**of_peer({"one": median}), "round": number} for number, median in enumerate((200.0, 100.0, 100.0))]
    pairs = ratio([of_ours(10.0, number=1), of_ours(10.0, number=2)], *peers)
    if (pairs["median"], pairs["least"], pairs["rounds"]) != (0.1, 0.1, 2):
        return f"pairs: {pairs}"
    if ratio([of_ours(10.0, number=1)], peers[0]) is not None:
        return "two rounds that never met have a ratio"
    spreads = (-5.0, -900.0, 900.0), (-5.0, -900.0, 100.0), (5.0, 1.0, 900.0), (190.0, 1.0, 900.0)
    verdicts = [ratio([of_ours(median, p5=p5, p95=p95)], peers[0])["verdict"] for median, p5, p95 in spreads]
    if verdicts != ["lost", "met", "met", "missed"]:
        return f"verdicts: {verdicts}"
    below = ratio([of_ours(10.0)], of_peer({"all": -239.0, "one": 54.0}) | {"round": 0})
    if not below or below["goal"] != 0.9:
        return f"a configuration that came out as less than nothing isn't the fastest: {below}"
    wavers = of_peer({"one": 200.0}) | {"round": 0}
    wavers["rows"][0]["p5"] = -3.0
    noisy = [ratio([of_ours(10.0)], peer) for peer in (wavers, peers[0])]
    noisy = [(one["noise"], one["verdict"]) for one in noisy]
    return None if noisy == [(True, "lost"), (False, "met")] else f"a peer that came out as nothing: {noisy}"


def found_python(folder):
    """An environment is taken only if the package is in it; a folder of packages, if nothing else has it."""
    own, site = [sys.executable], str(folder)
    package = next(iter(importlib.metadata.distributions()), None)
    known = not package or run_peers.has(own, f"{package.metadata['Name']}==0")
    if not known or run_peers.has(own, "no-such-thing[at-all]==1") or run_peers.has(["/no/python"], "x"):
        return "what is installed isn't known"
    peer = run_peers.Peer(FOLDER / "made_up_cuda.py", "made up", "made-up==1", True)
    without = run_peers.pythons([peer], False, site)["made_up_cuda"]
    dist_info(folder)
    found = run_peers.pythons([peer], False, site)["made_up_cuda"]
    return None if without == own and found == ["/usr/bin/env", f"PYTHONPATH={site}", *own] else f"{without}, {found}"


def main():
    own = tap.ROOT / "build" / "peers" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    tap.case("README.md lists scripts and rows, and run_peers.py knows them", readme())
    absent = {}
    for peer in PEERS.values():
        try_peer(peer, python, absent)
        if peer.script.stem.endswith("_vulkan"):
            tap.case(f"{peer.script.name} without a device", is_missing(
                peer, python, "there is no Vulkan device", VK_ICD_FILENAMES="/none", VK_DRIVER_FILES="/none"))
        if peer.needs_gpu:
            tap.case(f"{peer.script.name} without a device", is_missing(
                peer, python, "there is no CUDA d", CUDA_VISIBLE_DEVICES="", LD_LIBRARY_PATH=""))
            tap.case(f"{peer.script.name} on the simulated driver", is_missing(
                peer, python, "there is no CUDA driver", LD_LIBRARY_PATH=str(Path("build/simgpu").absolute())))
    for why, scripts in absent.items():
        tap.skip(" ".join(scripts), why)
    for name, test in (("what they have in common", in_common), ("what run.py calls", calls),
                       ("which Python", found_python), ("rounds that were lost", lost_rounds)):
        with tempfile.TemporaryDirectory() as folder:
            tap.case(name, test(Path(folder)))
    tap.case("rounds as one", merged())
    tap.finish()


main()
