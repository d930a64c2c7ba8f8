#!/usr/bin/env python3
"""bench/tools/compare.py on made-up figures."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402


def compare(before, after, *words):
    return subprocess.run([sys.executable, "bench/tools/compare.py", before, after, *words], capture_output=True,
                          text=True)


def wrong(done, wanted, unwanted=(), code=1):
    """What is wrong with the exit code or with the lines of the output; None: nothing."""
    bad = [line for line in wanted if line not in done.stdout] + [line for line in unwanted if line in done.stdout]
    if not bad and done.returncode == code:
        return None
    return f"exit code {done.returncode}, {bad}:\n{done.stdout}{done.stderr}"


def figures(median):
    return {"median": median, "p5": median, "p25": median, "p75": median, "p95": median}


def unlike(folder):
    """Machines of one name that aren't alike; rounds that are apart; and a goal that is a time is none of ratios."""
    def write(name, kernel, floor, medians):
        where = Path(folder) / name
        where.mkdir()
        apart = {"what": "gk against C", "against": "C", **figures(sum(medians) / len(medians)), "medians": medians}
        table = {"id": "F8", "what": "it", "unit": "ns", "variants": [{"name": "gk", **figures(5)}],
                 "ratios": [apart, {"what": "in ns", "against": "", **figures(floor)}]}
        size = {"id": "F6", "what": "it", "unit": "bytes", "variants": [],
                "ratios": [{"what": "in all", "against": "", **figures(floor)}]}
        (where / "tasks.json").write_text(json.dumps({
            "program": "tasks", "machine": {"cpu": "C", "cores": 2, "kernel": kernel, "compiler": "gcc",
                                             "flags": f"-O{kernel}"}, "commit": name, "started": "x",
            "tables": [table, size], "floor": {"unit": "ns", "variants": [{"name": "a call", **figures(floor)}]}}))
        return where

    one, other = write("one", "6", 1, [0.9, 1.0, 1.1]), write("other", "7", 2, [1.0, 1.1, 1.2])
    for name, more in (("lost", {"verdict": "lost"}), ("beyond", {"medians": [None, 0.5, 0.7]})):
        for where in (write(name, "6", 1, [1.0] * 3), write(f"{name}-later", "6", 1, [1.5] * 3)):
            report = json.loads((where / "tasks.json").read_text())
            report["tables"][0]["ratios"][0].update(more)
            (where / "tasks.json").write_text(json.dumps(report))
        problem = wrong(compare(where.with_name(name), where),
                        ["0 slower, 0 faster, 1 within the noise, 1 of unknown noise"], code=0)
        if problem:
            return f"{name}: {problem}"
    steady, later = write("steady", "6", 1, [1.0, 1.0, 1.0]), write("later", "6", 1.2, [1.1, 1.1, 1.1])
    for before, after, words, wanted, unwanted in (
            (one, other, [], ["before: C, 2 cores, commit one, x\n", "not the same kernel: 6 before, 7 after",
                              "not the same compiler or flags: gcc, -O6 before, gcc, -O7 after",
                              "not as quiet: a call took 2.00 times as much after", "slower: F6, it, in all",
                              "2 figures in both: 1 slower, 0 faster, 1 within the noise"], ["in ns"]),
            (steady, later, [], ["slower: F8, it, gk against C: 1.100 times as much (noise 2 %)",
                                 "2 figures in both: 2 slower"], ["not the same", "not as quiet", "in ns"]),
            (one, other, ["--times"], ["slower: F8, it, in ns: 2.000", "slower: floor, tasks, a call: 2.000"],
             ["gk against C", "in all"])):
        problem = wrong(compare(before, after, *words), wanted, unwanted)
        if problem:
            return f"{before.name}, {words}: {problem}"
    return None


def compared(folder):
    """A ratio that doubled, one that was halved, one within its spread, one that is there once; and those that no
    factor is said of, as a difference came out at 0 or below: below 0 twice as much isn't slower."""
    def report(ratios):
        return {"tables": [{"id": "X", "what": "table", "variants": [],
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
    wanted = ["slower: X, table, one: 2.000 times as much (noise 2 %)", "faster: X, table, two: 0.500 times as much",
              "from 0 to 6: X, table, six", "only after: X, table, five", "only before: X, table, four",
              "lost in noise: X, table, seven: -0.25 before, -0.5 after", "lost in noise: X, table, eight: -1 before",
              "from 2 to -2: X, table, nine",
              "7 figures in both: 1 slower, 1 faster, 1 within the noise, 4 at 0 or below\n"]
    problem = wrong(compare(before, after), wanted)
    if problem:
        return problem
    gpu = {"program": "cuda", "device": {"gpu": "G"}, "commit": "c", "quick": True, "tables": [
        {"id": "C1", "what": "gone", "variants": [{"name": "gk", "median": 2, "p25": 2, "p75": 2}], "ratios": []},
        {"id": "C2", "what": "now", "variants": [{"name": "gk", "missing": "no such kernel"}],
         "ratios": [{"what": "r", "median": None}]}],
        "floor": {"unit": "ns", "variants": [{"name": "edge", "median": 3, "p25": 3, "p75": 3}]}}
    (after / "cuda.json").write_text(json.dumps(gpu))
    edge = {"unit": "ns", "variants": [{"name": "edge", "median": 1, "p25": 1, "p75": 1}]}
    (before / "cuda.json").write_text(json.dumps(dict(gpu, device={"gpu": "H"}, quick=False, floor=edge)))
    (after / "loops.json").write_text(json.dumps({"program": "loops", "missing": "there is no device", "tables": []}))
    wanted = ["before: H, commit c", "after: G, commit c", "not the same machine: times",
              "after is by --quick",
              "slower: floor, cuda, edge: 3.000 times as much", "not measured after: loops: there is no device",
              "not measured before and after: C2, now, gk: no such kernel", "2 figures in both: 1 slower, 0 faster"]
    problem = wrong(compare(before, after, "--times"), wanted)
    if problem:
        return f"with --times: {problem}"
    same, none = compare(before, before), compare(before, folder)
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
        variant = {"name": "gk", "median": 1, "p25": 0.98, "p75": 1.02}
        tables = [{"id": "F1", "what": "n=1", "variants": [variant], "ratios": []}]
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
        problem = wrong(compare(before, after, *words), wanted, code=int(before != old))
        if problem:
            return f"{before.name}, {words}: {problem}"
    return None


def main():
    for name, test in (("two folders compared", compared), ("what isn't alike", unlike),
                       ("ratios to peers compared", peers_compared)):
        with tempfile.TemporaryDirectory() as folder:
            tap.case(name, test(folder))
    tap.finish()


main()
