#!/usr/bin/env python3
"""Plants the bugs of tests/planted/*.patch one by one in a copy of the sources, and sees whether the tests catch them.

  tests/planted.py            that all patches apply, and every twentieth in full
  tests/planted.py --all      all of them; also where $GK_TEST_SCALE is more than 1
  tests/planted.py NAME ...   those whose name contains one of the NAMEs

A patch begins with a sentence that says what is wrong behind it; its name begins with the area. Where the contract
itself is at stake, the conformance suite and random lists come first, then the unit tests, those of the area before the
others. A patch that doesn't apply, doesn't compile or isn't caught is a failure, and so is a test that fails without
any.
"""
import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import tap

ROOT = Path(os.path.realpath(__file__)).parent.parent
sys.path.insert(0, str(ROOT))
import configure  # noqa: E402
import run  # noqa: E402

TREE = ROOT / "build/planted"
PATCHES = ROOT / "tests/planted"
SOURCES = ["build.ninja", "configure.py", "common", "cuda", "docs", "fallback", "include", "tests"]
EVERY = 20
# Of a program, and of a case of the conformance suite: bugs make loops that never end, and memory that ever grows.
SECONDS, CASE_SECONDS, GIBIBYTES = 60, 30, 8
LISTS = 1000  # random ones
LONG = ["endurance_test"]  # does the same again and again

# The unit tests that are most likely to catch a bug of an area.
FIRST = {
    "check": ["check_test", "check_races_test", "blocks_test", "check_random_test", "kernel_test"],
    "plan": ["plan_test", "dump_test", "dump_gates_test"],
    "gates": ["plan_gates_test"],
    "gated": ["gated_test", "gated_stops_test", "gated_random_test"],
    "openmp": ["openmp_test", "openmp_team_test", "openmp_cores_test", "openmp_pieces_test", "openmp_sections_test",
               "openmp_choices_test"],
    "cache": ["cache_test"],
    "cuda": ["cuda_driver_test", "nvrtc_test", "cuda_gated_test", "cuda_gated_11_4_test", "cuda_executed_test",
             "cuda_launch_test", "cuda_launch_on_test", "cuda_sharing_test", "cuda_look_test", "cuda_probing_test",
             "cuda_gates_test", "cuda_plain_test", "cuda_cache_test", "cuda_single_test", "cuda_added_test",
             "cuda_foreign_test", "cuda_foreign_code_test", "cuda_call_test", "cuda_dump_test"],
    "range": ["range_test", "cuda_range_test"],
    "runtime": ["launch_test", "bind_test", "reach_test", "status_test", "device_test", "graph_test"],
    "simgpu": ["simgpu/memory_test"],
}
# Where conformance and random lists ought to be enough: what these do is the contract's affair.
CONTRACT = ["plan", "gated", "openmp"]


def area_of(patch):
    return patch.stem.split("-")[0]


def name_of(target):
    """`memory_test` of tests/unit, `simgpu/memory_test` of tests/simgpu."""
    return target.removeprefix("build/tests/").removeprefix("unit/")


# ---- the copy -------------------------------------------------------------------------------------------------------

def copy_sources():
    """Only what differs is written, so that ninja builds only that."""
    wanted = {}
    for name in SOURCES:
        paths = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*"))
        wanted.update({path.relative_to(ROOT): path for path in paths if path.is_file() and path.suffix != ".pyc"})
    for name, path in wanted.items():
        put(TREE / name, path.read_bytes())
    for name in SOURCES:
        for path in sorted((TREE / name).rglob("*")):
            if path.is_file() and path.relative_to(TREE) not in wanted:
                path.unlink()


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def apply(patch, *options):
    """None, or what git says. It mustn't find the repository around the copy, in which that is ignored."""
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=str(TREE.parent))
    return tap.run("git", "apply", *options, patch, cwd=TREE, env=env)


def changed_by(patch):
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.M)


# ---- running --------------------------------------------------------------------------------------------------------

def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (GIBIBYTES << 30, GIBIBYTES << 30))


def first_failure(command):
    """The first failed case of a program, or how else it came to a bad end; None if all went well."""
    env = dict(run.environment(False), CMOCKA_TEST_ABORT="0")
    env.pop("GK_TEST_SCALE", None)
    process = subprocess.Popen([str(TREE / command[0]), *command[1:]], cwd=TREE, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               start_new_session=True, preexec_fn=limit_memory)
    late = []

    def stop():
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    timer = threading.Timer(SECONDS, lambda: (late.append(True), stop()))
    timer.start()
    failed = None
    for line in process.stdout:
        case = run.TAP.match(line)
        if case and case[1] == "not ok" and not case[0].count("# SKIP"):
            failed = case[2]
            break
    timer.cancel()
    stop()
    process.stdout.close()
    code = process.wait()
    if failed or not late and code == 0:
        return failed
    return f"no end after {SECONDS} seconds" if late else f"exit code {code}"


class Programs:
    """The tests in the copy, each built when it is wanted: most bugs are caught by the first."""

    def __init__(self):
        everything = {name_of(target): target for target in run.targets(TREE, "test")}
        self.unknown = sorted({name for names in [LONG, *FIRST.values()] for name in names} - set(everything))
        self.random = {name: target for name, target in everything.items() if "/conformance/" in target}
        self.unit = {name: target for name, target in everything.items() if name not in [*LONG, *self.random]}
        self.caught_by = set()

    def in_order(self, area):
        """(name, command, whether it is the contract's)"""
        suites = [(name, [*command, "--seconds", str(CASE_SECONDS)], True) for name, command, *_ in run.SUITES
                  if command[0] == run.CONFORMANCE and "--sweep" not in command]
        suites += [(name, [target, "--random", str(LISTS)], True) for name, target in self.random.items()]
        names = [name for name in FIRST.get(area, []) if name in self.unit]
        names += [name for name in self.unit if name not in names]
        units = [(name, [self.unit[name]], False) for name in names]
        first, others = units[:len(FIRST.get(area, []))], units[len(FIRST.get(area, [])):]
        if area in CONTRACT:
            return suites + first + others
        return suites[:1] + first + suites[1:] + others

    def build(self, target):
        return tap.run("ninja", target, cwd=TREE)


def plant(patch, programs):
    """What is wrong with the patch or the tests (None: it was caught), and the program that caught it."""
    problem = apply(patch)
    if problem:
        return problem, None
    try:
        for name, command, of_contract in programs.in_order(area_of(patch)):
            problem = programs.build(command[0])
            if problem:
                return problem, None
            failed = first_failure(command)
            if failed:
                print(f"# {patch.stem}: caught by {name}: {failed}", flush=True)
                programs.caught_by.add((name, tuple(command)))
                return None, (name, of_contract)
        return f"no test catches it: {patch.read_text().splitlines()[0]}", None
    finally:
        for name in changed_by(patch):
            put(TREE / name, (ROOT / name).read_bytes())


# ---- all of it ------------------------------------------------------------------------------------------------------

def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--all", action="store_true", help="every patch in full")
    usage.add_argument("names", nargs="*", metavar="NAME")
    options = usage.parse_args()
    patches = sorted(PATCHES.glob("*.patch"))
    for tool in ("git", "ninja"):
        if not shutil.which(tool):
            tap.skip("planted bugs", f"{tool} isn't installed")
            tap.finish()
    copy_sources()
    misfits = [problem for problem in (apply(patch, "--check") for patch in patches) if problem]
    tap.case(f"all {len(patches)} patches apply", "\n".join(misfits))
    compiler = configure.find_compiler(None)
    if configure.find_cmocka(compiler).detail != "yes":
        tap.skip("planted bugs", "cmocka isn't installed")
        tap.finish()
    configured = tap.run(sys.executable, "configure.py", "--debug", "--sanitize=none", "--ready-gates", "--cc",
                         compiler.command, cwd=TREE)
    if not tap.case("configure", configured):
        tap.finish()
    if options.names:
        patches = [patch for patch in patches if any(name in patch.stem for name in options.names)]
    elif not options.all and os.environ.get("GK_TEST_SCALE", "1") == "1":
        patches = patches[::EVERY]
    programs = Programs()
    tap.case("what is tried first, or not at all, is there", ", ".join(programs.unknown))
    by_contract, by_others = {}, {}
    for patch in patches:
        problem, caught = plant(patch, programs)
        tap.case(patch.stem, problem)
        if caught:
            (by_contract if caught[1] else by_others).setdefault(area_of(patch), []).append(patch.stem)
    for name, command in sorted(programs.caught_by):
        problem = programs.build(command[0]) or first_failure(command)
        tap.case(f"without a bug: {name}", problem and f"it fails, too: {problem}")
    for area in sorted({area_of(patch) for patch in patches}):
        others = by_others.get(area, [])
        print(f"# {area}: {len(by_contract.get(area, []))} caught by conformance and random lists, {len(others)} by "
              f"other tests{': ' + ', '.join(others) if others and area in CONTRACT else ''}")
    tap.finish()


main()
