#!/usr/bin/env python3
"""Each benchmark, with --quick: every variant runs once and is right, and the JSON and the page written from it have
them all. The runner: on figures that are known, and on a wrong result. bench/tools/run.py: as it is called."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import tap

sys.path.insert(0, str(tap.ROOT / "bench/tools"))
import run as runner  # noqa: E402
import run_peers  # noqa: E402

NVML = "build/tests/bench/nvml/libnvidia-ml.so.1"


def wrong(report):
    """What is wrong in a program's JSON, or None."""
    variants = [(table["what"], variant) for table in report["tables"] for variant in table["variants"]]
    bad = [f"{what}: {one['name']}" for what, one in variants if "missing" not in one and one["correct"] is not True]
    if bad or report["wrong"]:
        return "wrong results: " + "; ".join(bad)
    if "floor" not in report:
        return "the floor isn't measured"
    floors = [table["floor"]["times"] for table in report["tables"] if "floor" in table]
    if "device" in report and any(times < 1 for times in floors):
        return f"floors are so many kernels, launches or round trips: {floors}"
    several = len(variants) > 1 and report["quick"]
    return None if several else "there should be several variants, and it should be quick"


def run(program, folder):
    out = Path(folder) / f"{Path(program).name}.json"
    # Threads that wait by spinning take minutes where a machine has much else to do.
    env = {**os.environ, "OMP_WAIT_POLICY": "passive"} | (simulated() if needs_cuda(program) else {})
    env |= lavapipe() if needs_vulkan(program) else {}
    trouble = tap.run(Path(program).resolve(), "--quick", "--json", out, cwd=tap.ROOT, env=env)
    return trouble or wrong(json.loads(out.read_text()))


def on_one_thread(folder):
    """Where OpenMP never gives more than one thread, a benchmark isn't wrong for that."""
    out = Path(folder) / "limited.json"
    env = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_THREAD_LIMIT": "1"}
    trouble = tap.run(Path("build/bench/tasks").resolve(), "--quick", "--json", out, cwd=tap.ROOT, env=env)
    return trouble or wrong(json.loads(out.read_text()))


def needs_cuda(program):
    return Path(program).name.startswith("cuda_")


def needs_vulkan(program):
    return Path(program).name.startswith("vulkan_")


def lavapipe():
    found = sorted(map(str, [path for folder in ("/usr/share", "/etc")
                             for path in Path(folder).glob("vulkan/icd.d/lvp_icd.*")]))
    return {"VK_ICD_FILENAMES": found[0], "VK_DRIVER_FILES": found[0]} if found else {}


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
        if len(report["floor"]["variants"]) != 4 or report["tables"][0]["floor"]["times"] != 1:
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
        missing = {variant["name"]: variant["missing"] for variant in table["variants"] if "missing" in variant}
        if missing != {"a graph that launches itself from the device": "the driver has no linker for device code"}:
            return f"{table['what']}: missing are {missing}"
    return None


def shown(folder):
    """Whether the page has every variant, peers, and what isn't there."""
    peers = {"rounds": 1, "started": "", "commit": "", "peers": [
        {"peer": "warp", "version": "1", "rows": [
            {"table": "F1", "what": "one more task n=1", "unit": "ns", "how": "one thread", "median": 3.0, "p5": 2.0,
             "p95": 4.0, "correct": True, "ratio": {"of": "gk", "median": 0.5, "least": 0.4, "most": 0.6, "rounds": 2,
                                                    "medians": [0.4, 0.6], "goal": 0.25, "verdict": "missed"}},
            {"table": "F8", "what": "silent checkpoint", "missing": "it has none"}]},
        {"peer": "quadrants", "missing": "isn't installed"}]}
    (Path(folder) / "peers.json").write_text(json.dumps(peers))
    for path in Path(folder).glob("*.json"):
        report = json.loads(path.read_text())
        path.write_text(json.dumps(dict(report, rounds=1, started="", commit="")))
    trouble = tap.run(sys.executable, tap.ROOT / "bench/tools/plot.py", folder, cwd=tap.ROOT)
    if trouble:
        return trouble
    page = (Path(folder) / "README.md").read_text()
    wanted = {variant["name"] for path in Path(folder).glob("*.json") for table in
              json.loads(path.read_text()).get("tables", []) for variant in table["variants"]}
    wanted |= {"isn't installed", "it has none", "0.50 | 0.40, 0.60 |  | 0.25 | missed"}
    absent = [name for name in wanted if name not in page]
    return "the page lacks " + "; ".join(absent) if absent else None


def from_one_command(folder):
    """What bench/tools/run.py writes with a device and without one; nothing is left out."""
    command = [sys.executable, Path("bench/tools/run.py").absolute(), "--quick", "--no-peers", "--only",
               "cuda_checkpoints", "--only", "kernel_host", "--out", Path(folder).name]
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
    """What bench/tools/run.py can't do is said before anything is measured."""
    unready = Path(folder) / "unready"  # as a fresh clone is
    unready.mkdir()
    shutil.copytree(tap.ROOT / "bench", unready / "bench", ignore=shutil.ignore_patterns("results"))
    done = subprocess.run([sys.executable, unready / "bench/tools/run.py", "--only", "bfs"], capture_output=True,
                          text=True)
    if done.returncode != 1 or "./configure.py demo does both" not in done.stderr or "Traceback" in done.stderr:
        return f"a tree that isn't configured: {done.returncode} {done.stderr}"
    page = Path(folder) / "page"
    page.write_text("")
    for words, wanted in ((["--only", "kernal_host"], "--only kernal_host: there is none; there are bfs, "),
                          (["--only", "solver", "--only", "warp"], "--only warp: there is none"),
                          (["--only", "solver", "--out", page], f"--out {page} is no folder"),
                          (["--rounds", "0"], "--rounds 0: at least 1"),
                          (["--only", "warp_graph"], "peers are held against a program of gk's")):
        done = subprocess.run([sys.executable, Path("bench/tools/run.py").absolute(), "--quick", *words],
                              capture_output=True, text=True)
        if done.returncode != 1 or f"bench/tools/run.py: {wanted}" not in done.stderr or "Traceback" in done.stderr:
            return f"{words}: {done.returncode} {done.stdout}\n{done.stderr}"
    return None


def counterparts(folder):
    """Whether programs have the variants that peers are held against."""
    def lacks(program, *variant):
        return run_peers.our_figure(json.loads((Path(folder) / f"{program}.json").read_text()), *variant) is None
    absent = [key for key, (program, variant) in run_peers.OURS.items()
              if (lavapipe() or not needs_vulkan(program)) and lacks(program, *key, variant)]
    return f"without a variant of ours: {absent}" if absent else None


def known_figures(folder):
    """The runner's verdicts where there is nothing to measure."""
    out = Path(folder) / "known.json"
    done = subprocess.run(["build/tests/bench/wrong", "--json", out], capture_output=True, text=True)
    report = json.loads(out.read_text())
    known, wrong_table, missing, grows, wavers = report["tables"]
    found = [(ratio["against"], round(ratio["median"], 6), ratio["verdict"]) for ratio in known["ratios"]]
    if found != [("two", 3, "met"), ("three", 0.666667, "missed"), ("", 3, "met")]:
        return f"ratios: {found}"
    if known["question"] != 'is "arithmetic" right?' or known["variants"][0]["median"] != 6:
        return f"the table: {known}"
    if [variant["correct"] for variant in wrong_table["variants"]] != [True, False] or report["wrong"] != 1:
        return "the wrong result isn't in the JSON"
    found = [(ratio["against"], ratio["median"], ratio["verdict"]) for ratio in missing["ratios"]]
    if found != [("three", 2, "met"), ("", None, "none"), ("six", None, "none"),
                 ("less than nothing", None, "none")]:
        return f"ratios where a variant is missing: {found}"
    if missing["variants"][2] != {"name": "nobody", "missing": "there is none"} or missing["variants"][1]["x"] != 3:
        return f"variants where one is missing: {missing['variants']}"
    found = [(ratio["against"], ratio["median"], ratio["verdict"]) for ratio in grows["ratios"]]
    if found != [("one", 1.5, "missed"), ("three", -2.66667, "met"), ("one", None, "missed")]:
        return f"ratios of what one more takes: {found}"
    found = [(ratio["median"], ratio["p5"], ratio["p95"], ratio["verdict"]) for ratio in wavers["ratios"]]
    if found != [(1, -1, 10, "lost"), (1, -1, 10, "met")]:
        return f"what wavers: {found}"
    if grows["along"] != "things" or [variant["x"] for variant in grows["variants"]] != [0, 1, 3, 4]:
        return f"what grows: {grows}"
    floor = [(one["name"], one["median"], one["p5"], one["p95"]) for one in report["floor"]["variants"]]
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
    kept, trouble = hung_once_written(out, report["tables"])
    if not kept or kept["tables"] != report["tables"] or "failed" not in kept or "no end in 5" not in trouble:
        return f"a program that hangs: {trouble}, {kept}"
    failed = done.returncode == 1 and "WRONG RESULT" in done.stdout
    return None if failed else "the wrong result didn't fail the program"


def hung_once_written(out, tables):
    """A program that hangs when it has written its tables, whose five seconds are over then, however long it took."""
    class Hanging(subprocess.Popen):
        def wait(self, timeout=None):
            while timeout and not has_written():
                time.sleep(0.01)
            if timeout:
                raise subprocess.TimeoutExpired(self.args, timeout)
            return super().wait()

    def has_written():
        try:
            return json.loads(out.read_text())["tables"] == tables
        except (OSError, ValueError):
            return False
    real, subprocess.Popen, os.environ["WRONG_HANGS"] = subprocess.Popen, Hanging, "1"
    try:
        return runner.call([Path("build/tests/bench/wrong").resolve()], out, 5)
    finally:
        subprocess.Popen = real
        del os.environ["WRONG_HANGS"]


def hangs(_):
    """Of two that come to no end the first doesn't take the time of the other."""
    passed, limits = [100.0], []

    def call(command, out, seconds):
        limits.append((out.stem, seconds))
        passed[0] += seconds
        return None, f"{out.stem} came to no end"
    real = runner.call, runner.time
    runner.call, runner.time = call, types.SimpleNamespace(monotonic=lambda: passed[0])
    try:
        options = argparse.Namespace(rounds=1, quick=False, only=["two", "one"], ends=106.0)
        reports, wrong = runner.measure(["one", "two"], [], options, {})
    finally:
        runner.call, runner.time = real
    if limits != [("two", 3), ("one", 3)] or len(wrong) != 2:
        return f"{limits}, {wrong}"
    return None if all(reports[name][0]["missing"] for name in ("one", "two")) else f"{reports}"


INTERRUPTED = """
import sys
from pathlib import Path
sys.path.insert(0, "bench/tools")
import run
run.BUILD, run.targets, run.build = Path(sys.argv[1]), lambda: ["first", "second"], lambda programs: None
sys.argv[1:] = ["--no-peers", "--offline", "--quick", "--out", sys.argv[1] + "/out"]
sys.exit(run.stoppable())
"""


def interrupted(folder):
    """Ctrl-C, or SIGTERM: nothing goes on behind our back, and what was measured before is written."""
    folder = Path(folder)
    table = {"id": "F1", "what": "it", "question": "?", "unit": "ns", "turns": 1, "ratios": [], "variants": [
        {"name": "gk", "correct": True, "median": 2, "p5": 1, "p25": 2, "p75": 2, "p95": 3}]}
    machine = dict.fromkeys(("cpu", "arch", "kernel", "compiler", "flags", "clock"), "x") | {"cores": 2}
    (folder / "report").write_text(json.dumps({"program": "first", "quick": True, "wrong": 0, "machine": machine,
                                               "tables": [table]}))
    (folder / "first").write_text(f'#!/bin/sh\ncp {folder}/report "$3"\n')
    (folder / "second").write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {folder}/sleeps\nwait\n")
    for name in ("first", "second"):
        (folder / name).chmod(0o755)
    for number in (signal.SIGINT, signal.SIGTERM):
        (folder / "sleeps").unlink(missing_ok=True)
        shutil.rmtree(folder / "out", ignore_errors=True)
        process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, folder], cwd=tap.ROOT, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, text=True)
        ends = time.monotonic() + tap.HANGS
        while not ((folder / "sleeps").exists() and (folder / "sleeps").read_text().endswith("\n")):
            if process.poll() is not None or time.monotonic() > ends:
                process.kill()
                return f"nothing slept: {process.communicate()[1]}"
            time.sleep(0.01)
        process.send_signal(number)
        said, sleeps = process.communicate(timeout=tap.HANGS)[1], (folder / "sleeps").read_text().strip()
        while goes_on(sleeps) and time.monotonic() < ends:  # what was killed may take a moment to be gone
            time.sleep(0.01)
        if goes_on(sleeps):
            os.kill(int(sleeps), signal.SIGKILL)
            return f"after {number.name} a program went on: {said}"
        written = sorted(path.name for path in (folder / "out").glob("*.*"))
        if process.returncode != 1 or f"stopped by {number.name}" not in said or "Traceback" in said or \
                not {"README.md", "first.json"} <= set(written) or "second.json" in written:
            return f"after {number.name}: {process.returncode}, {written}, {said}"
    return None


def goes_on(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def unlisted(programs):
    """Programs, headers and scripts that bench/README.md doesn't name."""
    folder = tap.ROOT / "bench"
    page = (folder / "README.md").read_text()
    names = [f"{name.replace('_', '/', 1)}.c" if name.startswith(("cuda_", "vulkan_")) else f"cpu/{name}.c"
             for name in (Path(program).name for program in programs)]
    names += [str(path.relative_to(folder)) for pattern in ("*.sh", "[!p]*/*.h", "tools/*.py")
              for path in folder.glob(pattern) if not path.name.endswith(("_app.h", "_hand.h"))]
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
            if needs_vulkan(program) and not lavapipe():
                tap.skip(name, "there is no lavapipe (mesa-vulkan-drivers)")
                continue
            tap.case(f"{name}, simulated" if needs_cuda(program) else name, run(program, folder))
            if needs_vulkan(program):
                none = {"VK_ICD_FILENAMES": "/nowhere", "VK_DRIVER_FILES": "/nowhere"}
                tap.case(f"{name} without a device", measures_nothing(program, folder, none))
            if needs_cuda(program):
                none = {"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": ""}
                tap.case(f"{name} without a device", measures_nothing(program, folder, none))
                old = simulated() | {"SIMGPU_VERSION": "12.3"}
                tap.case(f"{name} with an old driver", measures_nothing(program, folder, old))
        if not trouble:
            tap.case("what peers are held against is there", counterparts(folder))
            tap.case("the page shows all of it", shown(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("one thread", trouble or on_one_thread(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("the device is described", trouble or tap.run("ninja", NVML) or device_described(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("a variant that can't be measured", trouble or relaunch_missing(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("known figures, and a wrong result",
                 tap.run("ninja", "build/tests/bench/wrong") or known_figures(folder))
    for name, test in (("what hangs takes half of the time", hangs), ("one command interrupted", interrupted),
                       ("from one command", from_one_command), ("one command misused", misused)):
        with tempfile.TemporaryDirectory() as folder:
            tap.case(name, trouble or test(folder))
    tap.finish()


main()
