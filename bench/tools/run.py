#!/usr/bin/env python3
"""Runs the benchmarks and the peers, and writes bench/results/<device>/: JSON, plots, README.md.

  bench/tools/run.py [--quick] [--rounds N] [--only NAME ...] [--no-peers] [--offline] [--site FOLDER] [--minutes M]
               [--out FOLDER]

Results of a GPU go into a folder with the GPU's name, all others into the CPU's; with --out or --quick all into one.
A program that measured nothing is listed with its reason.

Variants take turns within their program. Peers are processes of their own, so their turns are whole rounds: first our
programs, then each peer, and a ratio to a peer is taken round by round. The files have the median of the rounds, the
lowest p5 and the highest p95, and each round's median. Exit code 1: something was wrong or didn't run. A missed goal
isn't an error. After an interruption (Ctrl-C, SIGTERM) the results so far are written.
"""
import argparse
import datetime
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import plot
import run_peers
from rounds import merge

ROOT = Path(os.path.abspath(__file__)).parents[2]
BUILD = ROOT / "build/bench"
PEER_SECONDS = 300  # the limit of one peer in a round, so that none hangs


# ---- running --------------------------------------------------------------------------------------------------------

class Stopped(Exception):
    """A signal came."""


def stop_on_signals():
    def stop(number, _):
        for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # a second signal ends the script at once
            signal.signal(other, signal.SIG_DFL)
        raise Stopped(signal.Signals(number).name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)


def end_session(process):
    """Kills the process and everything that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def call(command, out, seconds):
    """Runs a program that writes JSON. @return the JSON or None, and a line about a problem or None"""
    print("$ " + " ".join(str(part) for part in command), flush=True)
    out.unlink(missing_ok=True)
    process = None
    try:
        process = subprocess.Popen([*map(str, command), "--json", str(out)], cwd=ROOT, start_new_session=True)
        code = process.wait(None if seconds == math.inf else seconds)
        trouble = f"{out.stem} ended with code {code}" if code else None
    except OSError as why:
        return None, f"{out.stem} doesn't run: {why.strerror}"
    except subprocess.TimeoutExpired:
        trouble = f"{out.stem} came to no end in {seconds:.0f} seconds"
    finally:
        if process:
            end_session(process)
    try:
        return json.loads(out.read_text()), trouble  # of a program that was ended: the tables so far
    except (OSError, ValueError):
        return None, f"{trouble or out.stem + ' ended'} and left no figures"


def targets():
    try:
        listed = subprocess.run(["ninja", "-t", "targets", "rule", "single"], cwd=ROOT, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return []
    return sorted(Path(name).name for name in listed.stdout.split() if name.startswith("build/bench/"))


def install_matplotlib():
    """Installs it for the peers' Python, if no Python has it."""
    python = run_peers.VENV / "bin/python"
    if not plot.python_that_draws() and python.exists():
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "matplotlib"])


def build(programs):
    """Builds the programs, so that the present sources are measured."""
    if subprocess.run(["ninja", "--quiet", *(f"build/bench/{name}" for name in programs)], cwd=ROOT).returncode:
        sys.exit("bench/tools/run.py: a program doesn't build")


def measure(programs, peers, options, pythons):
    """@return lists of reports by program or peer, and lines about problems"""
    reports, wrong = {}, []
    try:
        run_all(programs, peers, options, pythons, reports, wrong)
    except Stopped as why:  # programs that weren't reached are no problem then
        return reports, [*wrong, f"stopped by {why}; what came to an end before is written"]
    lost = "it came to no end, or to none in time"
    for name in programs:
        reports.setdefault(name, [{"program": name, "missing": lost, "tables": [], "wrong": 0}])
    for peer in peers:
        reports.setdefault(peer.script.stem, [{"peer": peer.name, "missing": lost}])
    return reports, wrong


def run_all(programs, peers, options, pythons, reports, wrong):
    quick = ["--quick"] if options.quick else []
    calls = [(name, [BUILD / name], math.inf) for name in programs]
    calls += [(peer.script.stem, [*pythons[peer.script.stem], peer.script], PEER_SECONDS) for peer in peers]
    if options.only:  # in that order, since the last ones may have no time left
        calls.sort(key=lambda one: options.only.index(one[0]))
    for number in range(options.rounds):
        for k, (name, words, most) in enumerate(calls, 1):
            left = options.ends - time.monotonic()
            if number + 1 < options.rounds or k < len(calls):  # a hanging program takes half of the time, not all
                most = min(most, left / 2)
            report, trouble = call([*words, *quick], BUILD / f"{name}.json", min(left, most)) if left > 1 else \
                (None, f"{name}: no time was left in round {number + 1}")
            wrong += [trouble] if trouble else []
            if report:
                reports.setdefault(name, []).append({**report, "round": number})


# ---- writing --------------------------------------------------------------------------------------------------------

def folder_name(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def device_of(machine):
    """The name of the CPU's folder."""
    return folder_name(f"{machine['cpu']} {machine['cores']} cores")


def rows_of_peers(report, on_gpu):
    """The peers' report with only the rows for a GPU, or for a CPU."""
    return dict(report, peers=[dict(peer, rows=[row for row in peer["rows"] if row["table"].startswith("C") == on_gpu])
                               if "rows" in peer else peer for peer in report["peers"]])


def by_device(results):
    """Results by folder and name. A GPU's folder gets the results of that GPU. Programs for GPUs that measured nothing
    are listed in a GPU's folder, or in the CPU's if there is none."""
    gpus = {name: folder_name(report["device"]["gpu"]) for name, report in results.items()
            if "gpu" in report.get("device", {})}
    gpu = next(iter(gpus.values()), None)
    cpu = device_of(next(report for report in results.values() if "machine" in report)["machine"])
    folders = {}
    for name, report in results.items():
        if "peers" in report:
            for folder, on_gpu in ((cpu, False), (gpu, True)) if gpu else ((cpu, False),):
                folders.setdefault(folder, {})[name] = rows_of_peers(report, on_gpu) if gpu else report
        else:
            other = gpu if gpu and name.startswith("cuda_") else cpu
            folders.setdefault(gpus.get(name, other), {})[name] = report
    return {folder: found for folder, found in folders.items() if any(one.get("tables") for one in found.values())}


def commit():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).stdout.strip()
    if os.environ.get("BENCH_COMMIT"):
        return os.environ["BENCH_COMMIT"]
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (", with changes" if changed else "")


def command(words):
    """The command that was called: ./configure.py bench, if all options are those that it passes on."""
    by_configure = set(words) <= {"--quick"}
    return shlex.join([*(["./configure.py", "bench"] if by_configure else ["bench/tools/run.py"]), *words])


def write(folders, machine, about, options):
    """Writes the JSON and the pages. machine: for reports without one, such as the peers'; about: facts about the run
    for each file. @return plot.py's exit code"""
    known = {name: value for name, value in machine.items() if name not in ("date", "clocks before", "clocks after")}
    for folder, results in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        for name, result in results.items():
            result = dict({"machine": known}, **result, **about)
            result["machine"] = dict(result["machine"], load=machine["load"])
            (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    if not options.quick and not options.offline:
        install_matplotlib()
    return subprocess.run([sys.executable, str(ROOT / "bench/tools/plot.py"), *map(str, folders)], cwd=ROOT).returncode


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--quick", action="store_true", help="does everything run, and is it right? No verdicts; "
                       "into build/bench/quick")
    usage.add_argument("--rounds", type=int, default=3, help="of programs and peers (3)")
    usage.add_argument("--only", action="append", metavar="NAME", help="a program or a peer, in this order; else all")
    usage.add_argument("--no-peers", action="store_true")
    usage.add_argument("--offline", action="store_true", help="nothing is installed; peers are as they are found")
    usage.add_argument("--site", metavar="FOLDER", help="packages of peers that aren't installed")
    usage.add_argument("--minutes", type=float, default=math.inf, help="the rest is left out and reported")
    usage.add_argument("--out", metavar="FOLDER", help="instead of bench/results/<device>")
    options = usage.parse_args()
    options.ends = time.monotonic() + 60 * options.minutes
    if options.rounds < 1:
        sys.exit(f"bench/tools/run.py: --rounds {options.rounds}: at least 1")
    if options.quick:
        options.rounds = 1

    def chosen(name):
        return not options.only or name in options.only
    if not targets():
        sys.exit("bench/tools/run.py: ninja isn't installed, or nothing is configured here: ./configure.py demo does "
                 "both, ./configure.py bench runs all benchmarks as well")
    known = [*targets(), *run_peers.listed()]
    for name in options.only or []:
        if name not in known:
            sys.exit(f"bench/tools/run.py: --only {name}: there is none; there are {', '.join(known)}")
    if options.out and Path(options.out).exists() and not Path(options.out).is_dir():
        sys.exit(f"bench/tools/run.py: --out {options.out} is no folder; name one, or what isn't there yet")
    programs = [name for name in targets() if chosen(name)]
    peers = [] if options.no_peers else [peer for name, peer in run_peers.listed().items() if chosen(name)]
    pythons = run_peers.pythons(peers, install=not options.quick and not options.offline, site=options.site)
    about = {"commit": commit(), "started": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
             "command": command(sys.argv[1:])}  # taken before the build, in case of a commit meanwhile
    build(programs)
    reports, wrong = measure(programs, peers, options, pythons)
    wrong += [f"{name}: a wrong result" for name in programs for report in reports.get(name, []) if report["wrong"]]
    measured = [name for name in programs if any(report["tables"] for report in reports.get(name, []))]
    if not measured:
        for line in wrong:
            print(f"bench/tools/run.py: {line}", file=sys.stderr)
        sys.exit("bench/tools/run.py: no program measured anything" if programs or not peers else
                 "bench/tools/run.py: peers are held against a program of gk's: --only tasks, or cuda_peers, as well")
    machine = dict(reports[measured[0]][0]["machine"], load=os.getloadavg()[1])
    results = {name: merge(reports[name]) for name in programs if name in reports}
    of_peers = {peer.script.stem: reports[peer.script.stem] for peer in peers if peer.script.stem in reports}
    if of_peers:
        results["peers"] = run_peers.report(of_peers, reports)
    folders = {ROOT / "bench" / "results" / name: found for name, found in by_device(results).items()}
    if options.out or options.quick:
        folders = {Path(options.out).resolve() if options.out else BUILD / "quick": results}
    code = write(folders, machine, about, options)
    for line in wrong:
        print(f"bench/tools/run.py: {line}", file=sys.stderr)
    return 1 if wrong or code else 0


def stoppable():
    """@return an exit code, or a message after an interruption"""
    stop_on_signals()
    try:
        return main()
    except Stopped as why:
        return f"bench/tools/run.py: stopped by {why} while nothing was measured; files may be of before"


if __name__ == "__main__":
    sys.exit(stoppable())
