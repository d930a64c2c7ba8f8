#!/usr/bin/env python3
"""Makes the mistakes of tests/mutations/ one by one in a copy of the sources, and sees whether the tests catch them.

  tests/mutations.py            only sees that all mutations fit, which takes no time
  tests/mutations.py --all      tries all of them, which takes hours
  tests/mutations.py NAME ...   tries those whose name contains one of the NAMEs
  tests/mutations.py --write ...  with either, also writes which test caught each into tests/mutations/caught.json

A table, tests/mutations/AREA.txt, holds records like this one; lines between records that begin with # are comments:

  @mutation AREA-NAME
  A sentence that says what is wrong then.
  @file common/check/check.c
  @before
  whole lines of that file, which must be there exactly once
  @after
  what stands there instead
  @end AREA-NAME

A record may have several parts, each with its own @file, @before and @after. Its name at its end keeps records of two
branches apart where git merges tables line by line. The test that caught a mutation when caught.json was written
comes first; if another one catches it, caught.json is wrong, which is a failure. Then, where the contract itself is
at stake, the conformance suite and random lists come before the unit tests, and in any case the unit tests of the
area come before the others. A mutation that doesn't fit, doesn't compile or isn't caught is a failure. A test that
fails catches a mutation if it fails again with it, and passes without.
"""
import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import tap

ROOT = Path(os.path.realpath(__file__)).parent.parent
sys.path.insert(0, str(ROOT))
import configure  # noqa: E402
import run  # noqa: E402

TREE = ROOT / "build/mutations"
TABLES = ROOT / "tests/mutations"
CAUGHT = TABLES / "caught.json"  # the test that caught each mutation, by its name
SOURCES = ["bench/apps", "bench/cuda", "bench/harness", "build.ninja", "configure.py", "common", "cuda", "docs",
           "fallback", "include", "tests"]
# Of a program, and of a case of the conformance suite: mutations make loops that never end, and memory that ever grows.
SECONDS, CASE_SECONDS, GIBIBYTES = 120, 40, 8
LISTS = 1000  # random ones
LONG = ["runtime/endurance_test"]  # does the same again and again

# The unit tests that are most likely to catch a mutation of an area.
FIRST = {
    "check": ["check/check_test", "check/warn_test", "check/races_test", "list/blocks_test", "check/random_test",
              "kernel/language_test"],
    "ahead": ["plan/tape_test", "plan/walk_test", "plan/walk_stops_test", "plan/walk_random_test",
              "runtime/ahead_test"],
    "plan": ["plan/plan_test", "dump/dump_test", "dump/cost_test"],
    "gates": ["plan/gates_test", "plan/copies_test"],
    "gated": ["plan/walk_test", "plan/walk_stops_test", "plan/walk_random_test"],
    "openmp": ["openmp/backend_test", "openmp/team_test", "openmp/cores_test", "openmp/costs_test",
               "openmp/calls_test", "openmp/chunks_test", "openmp/sections_test", "openmp/split_test",
               "openmp/wake_test", "openmp/few_threads_test"],
    "cache": ["kernel/cache_test", "kernel/cache_processes_test"],
    "cuda": ["lower/params_test", "cuda/driver_test", "cuda/device_test", "cuda/answers_test", "cuda/lacks_test",
             "cuda/compile_test", "cuda/image_test", "cuda/tables_test", "cuda/quirks_test", "cuda/transfers_test",
             "cuda/gated_test", "cuda/gated_11_4_test", "cuda/executed_test", "cuda/wait_test", "cuda/disarm_test",
             "cuda/cancel_race_test", "cuda/launch_test", "cuda/launch_on_test", "cuda/sharing_test",
             "cuda/direct_test", "cuda/probing_test", "cuda/plain_test", "cuda/direct_block_test",
             "cuda/direct_list_test", "cuda/direct_list_add_test", "cuda/handwritten_test",
             "cuda/handwritten_code_test", "cuda/call_test", "cuda/dump_test", "cuda/pool_test", "cuda/record_test",
             "cuda/embedded_test", "cuda/gk_embed_test", "cuda/outline_test", "cuda/trace_test", "cuda/probe_test",
             "cuda/probe_fails_test", "cuda/probe_graphs_test", "cuda/arm_test", "cuda/gates_test",
             "cuda/cache_test", "cuda/half_way_test"],
    "trace": ["base/trace_test", "cuda/trace_test"],
    "runtime": ["runtime/run_test", "runtime/launch_test", "runtime/bind_test", "runtime/reach_test",
                "runtime/status_test", "runtime/device_test", "runtime/graph_test", "base/registry_test",
                "runtime/lying_backend_test", "base/error_test", "runtime/threads_test", "runtime/fork_test",
                "runtime/thread_cancel_test"],
    "vulkan": ["vulkan/memory_test", "vulkan/launch_test", "vulkan/handwritten_test", "vulkan/embedded_test",
               "vulkan/sharing_test", "vulkan/refusals_test", "vulkan/device_test", "vulkan/limits_test"],
    "barriers": ["vulkan/counts_test", "plan/levels_test"],
    "hip": ["hip/device_test", "hip/stream_test", "hip/trial_test", "hip/embedded_test", "kernel/object_test"],
    "simgpu": ["simgpu/memory_test", "simgpu/capture_test", "simgpu/driver_test"],
}
# Where conformance and random lists ought to be enough: what these do is the contract's affair.
CONTRACT = ["plan", "gated", "openmp"]


# Areas of Vulkan: what the names of the suites on lavapipe contain that come first. Shuffled, commands come in any
# order that their barriers allow.
ON_LAVAPIPE = {"barriers": "shuffled", "vulkan": "random lists on lavapipe, "}


def name_of(target):
    """`base/memory_test` of tests/unit, `simgpu/memory_test` of tests/simgpu."""
    return target.removeprefix("build/tests/").removeprefix("unit/")


# ---- the tables -----------------------------------------------------------------------------------------------------

@dataclass
class Part:
    """Lines of a file, and those that replace them."""
    file: str
    before: list = field(default_factory=list)
    after: list = field(default_factory=list)


@dataclass
class Mutation:
    """A record of a table."""
    name: str
    sentence: str = ""
    parts: list = field(default_factory=list)


def area_of(mutation):
    return mutation.name.split("-")[0]


def parse(text, area):
    """The mutations of a table, and what is wrong with the table."""
    mutations, problems, inside, expected = [], [], None, ("@mutation",)
    follow = {"@mutation": ("@file",), "@file": ("@before",), "@before": ("@after",), "@after": ("@file", "@end"),
              "@end": ("@mutation",)}
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rest = line.partition(" ")
        if word in follow:
            if word not in expected:
                problems.append(f"{area}.txt:{number}: {word} where {' or '.join(expected)} is expected")
                break
            inside, expected = word, follow[word]
            if word == "@end" and rest != mutations[-1].name:
                problems.append(f"{area}.txt:{number}: @end {rest} where @end {mutations[-1].name} is expected")
            if word == "@mutation":
                mutations.append(Mutation(rest))
                if area_of(mutations[-1]) != area:
                    problems.append(f"{area}.txt:{number}: the name {rest} doesn't begin with {area}-")
            elif word == "@file":
                mutations[-1].parts.append(Part(rest))
        elif inside == "@mutation":
            mutations[-1].sentence = f"{mutations[-1].sentence} {line}".strip()
        elif inside in ("@before", "@after"):
            getattr(mutations[-1].parts[-1], inside[1:]).append(line)
        elif line and not line.startswith("#"):
            problems.append(f"{area}.txt:{number}: text where {' or '.join(expected)} is expected")
    if expected != ("@mutation",) and not problems:
        problems.append(f"{area}.txt: ends where {' or '.join(expected)} is expected")
    problems += [f"{area}.txt: {mutation.name} has no sentence" for mutation in mutations if not mutation.sentence]
    return mutations, problems


def read_tables():
    """All mutations, and what is wrong with the tables."""
    mutations, problems = [], []
    for path in sorted(TABLES.glob("*.txt")):
        more, wrong = parse(path.read_text(), path.stem)
        mutations += more
        problems += wrong
    names = [mutation.name for mutation in mutations]
    problems += [f"two mutations are called {name}" for name in sorted(set(names)) if names.count(name) > 1]
    return sorted(mutations, key=lambda mutation: mutation.name), problems


def places_of(part, lines):
    """The indexes at which the lines before the mutation stand."""
    size = len(part.before)
    return [at for at in range(len(lines) - size + 1) if lines[at:at + size] == part.before] if size else []


def mutated(mutation, root):
    """The files under root that the mutation changes, with their new text, and what is wrong, or None."""
    files = {}
    for part in mutation.parts:
        if part.file not in files and not (root / part.file).is_file():
            return {}, f"{mutation.name}: there is no {part.file}"
        text = files.get(part.file) or (root / part.file).read_text()
        lines = text.split("\n")
        places = places_of(part, lines)
        if len(places) != 1:
            return {}, f"{mutation.name}: {part.file} has the lines of @before {len(places)} times, not once"
        lines[places[0]:places[0] + len(part.before)] = part.after
        files[part.file] = "\n".join(lines)
    unchanged = all(text == (root / file).read_text() for file, text in files.items())
    return files, f"{mutation.name}: changes nothing" if unchanged else None


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


def write(files):
    for name, text in files.items():
        put(TREE / name, text.encode())


def restore(files):
    for name in files:
        put(TREE / name, (ROOT / name).read_bytes())


# ---- running --------------------------------------------------------------------------------------------------------

def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (GIBIBYTES << 30, GIBIBYTES << 30))


def first_failure(command, seconds=SECONDS):
    """The first failed case of a program, or how else it failed; None if all went well."""
    env = dict(run.environment(), CMOCKA_TEST_ABORT="0")
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
    timer = threading.Timer(seconds, lambda: (late.append(True), stop()))
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
    return f"no end after {seconds} seconds" if late else f"exit code {code}"


class Programs:
    """The tests in the copy, each built when it is needed: the first test catches most mutations."""

    def __init__(self):
        self.caught = json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}
        everything = {name_of(target): target for target in run.targets(TREE, "test")}
        self.unknown = sorted({name for names in [LONG, *FIRST.values()] for name in names} - set(everything))
        self.random = {name: target for name, target in everything.items() if "/conformance/" in target}
        self.sound = {}  # by command: whether it passes without a mutation
        self.unit = {name: target for name, target in everything.items() if name not in [*LONG, *self.random]}

    def in_order(self, mutation):
        """(name, command, whether it is the contract's)"""
        tests = self.by_area(area_of(mutation))
        return sorted(tests, key=lambda test: test[0] != self.caught.get(mutation.name))

    def by_area(self, area):
        suites = [(name, [*command, "--seconds", str(CASE_SECONDS)], True) for name, command, *_ in run.SUITES
                  if command[0] == run.CONFORMANCE and "--sweep" not in command]
        suites += [(name, [target, "--random", str(LISTS)], True) for name, target in self.random.items()]
        names = [name for name in FIRST.get(area, []) if name in self.unit]
        names += [name for name in self.unit if name not in names]
        units = [(name, [self.unit[name]], False) for name in names]
        first, others = units[:len(FIRST.get(area, []))], units[len(FIRST.get(area, [])):]
        if area in ON_LAVAPIPE:
            of_vulkan = [(name, command, True) for name, command, *_ in run.SUITES if "on lavapipe" in name]
            random = [suite for suite in of_vulkan if ON_LAVAPIPE[area] in suite[0]]
            return random + first + [suite for suite in of_vulkan if suite[0] == "conformance on lavapipe"] + suites
        if area in CONTRACT:
            return suites + first + others
        if area == "hip":
            return first + [(name, command, True) for name, command, *_ in run.SUITES
                            if "on simulated HIP" in name and "--sweep" not in command]
        return suites[:1] + first + suites[1:] + others

    def build(self, command):
        libraries = ["simulated-hip"] if any("build/simgpu/hip" in word for word in command) else []
        return tap.run("ninja", next(word for word in command if word.startswith("build/tests/")), *libraries, cwd=TREE)

    def is_sound(self, name, command):
        """Whether the test passes without a mutation; if it doesn't, that is a failure of its own.."""
        if tuple(command) not in self.sound:
            problem = self.build(command) or first_failure(command, tap.HANGS)
            self.sound[tuple(command)] = tap.case(f"without a mutation: {name}",
                                                  problem and f"it fails, too: {problem}")
        return self.sound[tuple(command)]


def fails_again(mutation, name, command, failed):
    """Whether a test that failed does so once more: what is caught now and then isn't caught."""
    if first_failure(command):
        return True
    print(f"# {mutation.name}: {name} failed once, and not again, which doesn't count: {failed}", flush=True)
    return False


def try_out(mutation, files, programs):
    """What is wrong with the mutation or the tests (None: it was caught), and the program that caught it."""
    write(files)
    try:
        for name, command, of_contract in programs.in_order(mutation):
            if programs.sound.get(tuple(command)) is False:
                continue
            problem = programs.build(command)
            if problem:
                return problem, None
            failed = first_failure(command)
            if not failed or not fails_again(mutation, name, command, failed):
                continue
            restore(files)
            if programs.is_sound(name, command):
                print(f"# {mutation.name}: caught by {name}: {failed}", flush=True)
                noted = programs.caught.setdefault(mutation.name, name)
                programs.caught[mutation.name] = name
                other = None if noted == name else f"{CAUGHT.name} says {noted}, it is {name}: correct it by --write"
                return other, (name, of_contract)
            write(files)
        return f"no test catches it: {mutation.sentence}", None
    finally:
        restore(files)


# ---- all of it ------------------------------------------------------------------------------------------------------

def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--all", action="store_true", help="try every mutation")
    usage.add_argument("--write", action="store_true", help="note which tests caught them")
    usage.add_argument("names", nargs="*", metavar="NAME")
    options = usage.parse_args()
    mutations, problems = read_tables()
    changes = {}
    for mutation in mutations:
        changes[mutation.name], problem = mutated(mutation, ROOT)
        problems += [problem] if problem else []
    caught = json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}
    problems += [f"{CAUGHT.name}: there is no mutation {name}" for name in sorted(caught) if name not in changes]
    tap.case(f"all {len(mutations)} mutations fit", "\n".join(problems))
    if not options.all and not options.names:
        tap.finish()
    if not shutil.which("ninja"):
        tap.skip("mutations", "ninja isn't installed")
        tap.finish()
    copy_sources()
    compiler = configure.find_compiler(None)
    if configure.find_cmocka(compiler).detail != "yes":
        tap.skip("mutations", "cmocka isn't installed")
        tap.finish()
    configured = tap.run(sys.executable, "configure.py", "--debug", "--sanitize=none", "--ready-gates", "--cc",
                         compiler.command, cwd=TREE)
    if not tap.case("configure", configured):
        tap.finish()
    if options.names:
        mutations = [mutation for mutation in mutations if any(name in mutation.name for name in options.names)]
    programs = Programs()
    tap.case("what is tried first, or not at all, is there", ", ".join(programs.unknown))
    by_contract, by_others = {}, {}
    for mutation in mutations:
        if not changes[mutation.name]:
            continue  # it doesn't fit
        problem, caught = try_out(mutation, changes[mutation.name], programs)
        tap.case(mutation.name, None if caught and options.write else problem)
        if caught:
            (by_contract if caught[1] else by_others).setdefault(area_of(mutation), []).append(mutation.name)
        if options.write:  # after each: a long run may be stopped
            CAUGHT.write_text(json.dumps({name: test for name, test in programs.caught.items() if name in changes},
                                         indent=0, sort_keys=True) + "\n")
    for area in sorted({area_of(mutation) for mutation in mutations}):
        others = by_others.get(area, [])
        print(f"# {area}: {len(by_contract.get(area, []))} caught by conformance and random lists, {len(others)} by "
              f"other tests{': ' + ', '.join(others) if others and area in CONTRACT else ''}")
    tap.finish()


if __name__ == "__main__":
    main()
