"""The peers of bench/tools/run.py: where each is installed, what it measured, and gk's figures as ratios to that.
bench/peers/README.md has the one list of peers, with the versions that pip is asked for."""
import math
import os
import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from statistics import median

from rounds import over_rounds, verdict

ROOT = Path(os.path.abspath(__file__)).parents[2]
FOLDER = ROOT / "bench/peers"
VENV = ROOT / "build/peers"

sys.path.insert(0, str(FOLDER))
import on_gpu  # noqa: E402

# The program and the variant that a peer's row is compared with, by table and row.
OURS = {
    ("F1", "one more task n=1"): ("tasks", "gk"), ("F1", "one more task n=1024"): ("tasks", "gk"),
    ("F2", "one more task n=1048576"): ("tasks", "gk"), ("F8", "one more pass"): ("tasks", "gk"),
    ("F8", "silent checkpoint"): ("tasks", "gk, the checkpoint alone"),
    ("F8", "yield and resume"): ("tasks", "gk, beyond two launches"),
    ("C12", "one more pass"): ("cuda_peers", "gk"), ("C12", "silent checkpoint"): ("cuda_peers", "gk"),
    ("C12", "one launch"): ("cuda_peers", "gk"),
    ("C12", "yield and resume"): ("cuda_peers", "gk, beyond two launches"),
    **{(table, what): ("vulkan_tasks", "gk") for table, what in (
        ("F4", "one more task n=1"), ("F4", "one more task n=1024"), ("F4", "one more task n=1048576"),
        ("F9", "one more pass"), ("F9", "silent checkpoint"), ("F9", "yield and resume"))},
}
# The goals that name a peer: the largest ratio of gk's figure to the peer's.
GOALS = {("F1", "one more task n=1", "warp"): 0.25, ("F8", "one more pass", "warp"): 0.3,
         ("F8", "yield and resume", "quadrants"): 0.04, ("C12", "one more pass", "quadrants on CUDA"): 0.9,
         ("C12", "silent checkpoint", "quadrants on CUDA"): 0.6, ("C12", "one launch", "quadrants on CUDA"): 0.1,
         ("F4", "one more task n=1", "quadrants on Vulkan"): 0.25, ("F9", "one more pass", "quadrants on Vulkan"): 0.05,
         ("F9", "silent checkpoint", "quadrants on Vulkan"): 0.2,
         ("F9", "yield and resume", "quadrants on Vulkan"): 0.5}

Peer = namedtuple("Peer", "script name package needs_gpu")  # package: the name for pip


def listed():
    """The peers by the names of their scripts, from README.md."""
    found = re.findall(r"^\| `(\w+)\.py` \| ([^|:]+)[^|]*\| `([\w-]+(?:\[\w+\])?==[\w.]+)` \|$",
                       (FOLDER / "README.md").read_text(), re.M)
    return {script: Peer(FOLDER / f"{script}.py", name.strip(), package, script.endswith("_cuda"))
            for script, name, package in found}


# ---- installing -----------------------------------------------------------------------------------------------------

def environment(peer, peers):
    """Peers without a GPU share one virtual environment. Peers on a GPU have their own, since their packages contain
    CUDA's libraries in different versions."""
    shared = {other.package for other in peers.values() if not other.needs_gpu}
    return VENV if peer.package in shared else VENV.with_name(f"peers-{peer.script.stem}")


def pip(folder, packages):
    python = folder / "bin/python"
    if not python.exists():
        print(f"installing {' '.join(packages)} in {folder.relative_to(ROOT)}", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", str(folder)], stdout=subprocess.DEVNULL).returncode:
            print("no virtual environment could be made (apt-get install python3-venv)", flush=True)
            return
    done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("pip: " + (done.stdout.strip().splitlines() or ["failed"])[-1], flush=True)


def has(python, package):
    """Whether a Python finds a package. The Python is given as the words of a command."""
    name = re.split(r"\[|==", package)[0]
    ask = "import importlib.metadata as m, sys; m.version(sys.argv[1])"
    try:
        return subprocess.run([*python, "-c", ask, name], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def pythons(chosen, install, site=None):
    """A Python for each chosen peer, as the words of a command. It is that of the peer's environment, which pip makes
    if possible; else this one, if it has the package; else this one with the packages in the folder `site`. A script
    whose package is missing reports that itself."""
    peers = listed()
    wanted = {}
    for peer in chosen:
        if not peer.needs_gpu or not on_gpu.why_none():
            wanted.setdefault(environment(peer, peers), set()).add(peer.package)
    for folder, packages in wanted.items() if install else []:
        pip(folder, sorted(packages))
    found = {}
    for peer in chosen:
        candidates = [[str(environment(peer, peers) / "bin/python")], [sys.executable]]
        if site:  # it precedes installed packages, so only for peers that need it
            candidates.append(["/usr/bin/env", f"PYTHONPATH={site}", sys.executable])
        found[peer.script.stem] = next((python for python in candidates if has(python, peer.package)), [sys.executable])
    return found


# ---- what they came to ----------------------------------------------------------------------------------------------

def our_figure(report, table, what, variant):
    for one in report["tables"]:
        if (one["id"], one["what"]) == (table, what):
            return next((figure for figure in one["variants"] if figure["name"] == variant and "missing" not in figure),
                        None)
    return None


def is_nothing(figure):
    """Whether turns came out as 0 or less: the figure is a small difference of large times."""
    return (figure["p5"] or 0) <= 0


def ratio_to(figures, others, goal, judged):
    """The ratio of our figure to the peer's, round by round. A round is lost in noise, as in the harness, if some of
    our turns came out as 0 and others beyond the goal, or if turns of the peer's came out as 0."""
    pairs = [(figure, other) for figure, other in zip(figures, others) if figure and figure["median"] is not None]
    ratios = [figure["median"] / other["median"] if (other["median"] or 0) > 0 else None for figure, other in pairs]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return None

    def verdict_of(figure, other, ratio):
        if is_nothing(other) or is_nothing(figure) and (figure["p95"] or math.inf) > goal * other["median"]:
            return "lost"
        return "met" if ratio <= goal else "missed"
    combined = {"median": median(known), "least": min(known), "most": max(known), "rounds": len(known),
                "noise": sum(is_nothing(figure) or is_nothing(other) for figure, other in pairs) > len(pairs) / 2,
                "medians": ratios, "goal": goal, "verdict": "none"}
    if goal and judged:
        verdicts = [verdict_of(*pair, ratio) for pair, ratio in zip(pairs, ratios)]
        combined.update(verdict=verdict(ratios, verdicts, goal), verdicts=verdicts)
    return combined


def ways(row):
    """A row's figures of each configuration of the peer."""
    return {one["how"]: {key: value for key, value in one.items() if key not in ("others", "table", "what", "unit")}
            for one in [row, *row.get("others", [])]}


def by_round(reports):
    return {report.get("round", k): report for k, report in enumerate(reports)}


def peer_row(rows, numbers, ours, peer):
    """A row of a peer over the rounds with these numbers: its fastest configuration, gk's ratio to that, and the other
    configurations."""
    key = {name: rows[0].get(name) for name in ("table", "what", "unit", "missing") if name in rows[0]}
    missing = next((row["missing"] for row in rows if "missing" in row), None)
    if missing:
        return {"table": key["table"], "what": key["what"], "missing": missing}
    program, variant = OURS.get((key["table"], key["what"]), (None, None))
    reports = by_round(ours.get(program, []))
    figures = [our_figure(reports[number], key["table"], key["what"], variant) if number in reports else None
               for number in numbers]
    judged = not any(report.get("quick") for report in reports.values())
    each = [ways(row) for row in rows]
    every = {how: [way[how] for way in each] for how in each[0] if all(how in way for way in each)}
    merged = {how: over_rounds(same) for how, same in every.items()}
    best, *rest = sorted(merged, key=lambda how: (merged[how]["median"] <= 0, merged[how]["median"]))
    for how, figure in merged.items():
        goal = GOALS.get((key["table"], key["what"], peer), 0) if how == best else 0
        ratio = ratio_to(figures, every[how], goal, judged)
        figure.update({"ratio": {"of": variant, **ratio}} if ratio else {})
    others = [merged[how] for how in rest]
    return {**key, **merged[best], **({"others": others} if others else {})}


def report(reports, ours):
    """reports: lists of rounds by peer; ours: the same of our programs."""
    merged = []
    for rounds in reports.values():
        one = {key: rounds[-1].get(key) for key in ("peer", "version", "python")}
        missing = next((each["missing"] for each in rounds if "missing" in each), None)
        failed = [failure for each in rounds for failure in each.get("failed", [])]
        if failed:
            one["failed"] = failed
        if missing:
            one["missing"] = missing
        else:
            one["rows"] = [peer_row(list(same), list(by_round(rounds)), ours, one["peer"])
                           for same in zip(*(each["rows"] for each in rounds))]
        merged.append(one)
    return {"program": "peers", "rounds": max((len(rounds) for rounds in reports.values()), default=0), "peers": merged}
