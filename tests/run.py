#!/usr/bin/env python3
"""Builds and runs the tests of one or more build trees; the last line counts them.

  tests/run.py [--tree DIR ...] [--full] [--without NAME ...] [--no-build] [NAME ...]

The test programs are the targets of ninja's rule `test`; suites and scripts are listed in suites.py. Each speaks TAP:
a line `ok N - case` or `not ok N - case` per case, `# SKIP why` behind those that can't be run here, and behind those
that are known to fail the word that TAP has for it, and why. Any other trouble (a crash, a timeout, an exit code
without a failed case but 77 where one was skipped, a program without any case) counts as one failure. NAMEs choose
tests whose name contains one of them, --without leaves such out.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import tap
from suites import (CONFORMANCE, FULL_SCRIPTS, FULL_SUITES, IN_PLAIN, IN_PLAIN_FULLY, LEFT_OUT, ONCE,  # noqa: F401
                    PLAIN, SCRIPTS, SUITES, THREADED)

ROOT = Path(os.path.abspath(__file__)).parent.parent
SECONDS, FULL_SECONDS = 3 * tap.HANGS, 8 * 60 * 60  # a script may run a hundred programs
NO_DEVICE = 77  # what the suite and random lists exit with where a backend has no device
BUILD_SECONDS = 3600
CORES = len(os.sched_getaffinity(0))
LONGEST = 10  # that are named at the end
TIMES = "build/times.txt"  # of all
FOUND = "build/found"  # what failed with --full: its output, which names seeds and lists
SCALE = "100"  # GK_TEST_SCALE with --full: fuzzers try so many times as much

# These need no tree that is built: they come first, while trees are built.
ALONE = ["coverage", "all mutations", "analyzer", "aarch64", "mutations", "mutations runner", "runner", "lint",
         "configured", "doxygen", "conformance docs"]
# Then what takes long, the longest first, so that no core waits for another at the end; then all others.
LONG = ["gpu script", "with calls that fail", "without memory", "softbody", "valgrind", "lavapipe", "random",
        "fuzz", "kernel compilers"]

TAP = re.compile(r"^(not ok|ok) \d+(?: - | )?(.*?)\s*(?:# (?:SKIP|(?P<known>TO" r"DO))\s*(?P<reason>.*))?$", re.I)


@dataclass
class Outcome:
    """What became of one program or script."""
    passed: int = 0
    failed: list = field(default_factory=list)   # names of cases
    skipped: list = field(default_factory=list)  # (case, reason)
    text: str = ""
    seconds: float = 0  # of processor time, that of its children among them


def judge(text, code, late):
    """Counts the cases in what a test printed. late: the seconds after which it was stopped, or 0."""
    outcome, planned, cases, remark = Outcome(text=text), None, 0, ""
    for line in text.splitlines():
        plan = re.match(r"^1\.\.(\d+)(?:\s*# SKIP\s*(.*))?", line)
        case = TAP.match(line)
        if plan:
            planned = int(plan[1])
            if planned == 0 and plan[2]:
                outcome.skipped.append(("all of it", plan[2]))
        elif case and case["known"]:
            if case[1] == "ok":
                outcome.failed.append(f"{case[2]} (passes, though it is known to fail: {case['reason']})")
            else:
                outcome.skipped.append((case[2], f"known to fail: {case['reason'] or 'no reason given'}"))
        elif case and case["reason"] is not None:
            # cmocka has the case where TAP has the reason, and prints the reason before, if the test gave one.
            name, reason = (case[2], case["reason"]) if case[2] else (case["reason"], remark)
            outcome.skipped.append((name, reason or "no reason given"))
        elif case:
            if case[1] == "ok":
                outcome.passed += 1
            else:
                outcome.failed.append(case[2])
        elif line.strip():
            remark = line.strip()
        cases += bool(case)
    if late:
        outcome.failed.append(f"(no end after {late} seconds)")
    elif code < 0:
        outcome.failed.append(f"(killed by {signal.Signals(-code).name})")
    elif code == NO_DEVICE and outcome.skipped:
        pass
    elif code > 0 and not outcome.failed:
        outcome.failed.append(f"(exit code {code} though no case failed)")
    elif planned is not None and cases < planned and not outcome.failed:
        outcome.failed.append(f"({cases} of {planned} cases ran)")
    elif not outcome.passed and not outcome.failed and not outcome.skipped:
        outcome.failed.append("(not a single case)")
    return outcome


# What steers gk, CUDA and OpenMP's runtimes, so that a test would see another machine than the one it is told of; but
# where a toolkit is, which GPUs are ours, and how much random cases try.
STEERS = ("GK_", "OMP_", "GOMP_", "KMP_", "CUDA_")
KEPT = ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "GK_TEST_SCALE")


def environment(seed=None):
    """As a test sees it: TAP from cmocka; sanitizers let an allocation fail, since tests ask for absurd ones. What was
    freed is kept from use for 16 MiB, not 256, all of which the kernel would have to clear in each process. With a seed
    (--full) random cases begin there and are more, else they are always the same."""
    sanitizers = {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_stack_use_after_return=1:quarantine_size_mb=16",
                  "UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "allocator_may_return_null=1"}
    inherited = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(STEERS)}
    for name, value in sanitizers.items():
        inherited[name] = ":".join(filter(None, (value, inherited.get(name))))
    inherited["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    inherited["GK_CACHE"] = "off"  # nothing in the user's folders, and nothing from another test
    inherited["PYTHONHASHSEED"] = "0"
    if seed:
        inherited.update(GK_TEST_SEED=str(seed))
        inherited.setdefault("GK_TEST_SCALE", SCALE)
    return inherited


def is_threaded(tree):
    return tree_name(tree).endswith("(thread)")


def is_fuzzed(tree):
    return "fuzzer" in tree_name(tree)


def environment_of(tree, env):
    """LLVM's OpenMP runtime tells ThreadSanitizer what it does; what isn't instrumented is taken at its word.
    Threads of Vulkan's drivers, which tests of all devices would start, are none of gk's."""
    if not is_threaded(tree):
        return env
    return dict(env, TSAN_OPTIONS=env["TSAN_OPTIONS"] + ":ignore_noninstrumented_modules=1",
                VK_ICD_FILENAMES="/nowhere", VK_DRIVER_FILES="/nowhere")


def start(command, folder, env, seconds):
    """Runs it in a process group of its own, so that a test which hangs takes its children with it. What it prints, its
    exit code, the seconds after which it was stopped, or 0, and those that processors worked."""
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    lock, late = threading.Lock(), []

    def stop():
        with lock:
            if process.returncode is None:
                late.append(seconds)
                os.killpg(process.pid, signal.SIGKILL)
    timer = threading.Timer(seconds, stop)
    timer.start()
    text = process.stdout.read()
    process.stdout.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with lock:  # from here on its number may be another's
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    timer.cancel()
    return text, process.returncode, late[0] if late else 0, used.ru_utime + used.ru_stime


def execute(command, folder, env, seconds):
    text, code, late, used = start(command, folder, env, seconds)
    outcome = judge(text, code, late)
    outcome.seconds = used
    return outcome


def left_out(tree):
    """The backends that this tree is configured without."""
    config = (tree / "build/config.ninja").read_text()
    return [backend for backend in LEFT_OUT if f"\n{backend}_left_out = {backend}\n" in config]


def has_all_for(tree, name):
    return not any(LEFT_OUT[backend].search(name) for backend in left_out(tree))


def targets(tree, rule):
    """What a tree builds by a rule; what ninja reads is the one list of tests."""
    listed = subprocess.run(["ninja", "-t", "targets", "rule", rule], cwd=tree, stdout=subprocess.PIPE, text=True)
    if listed.returncode:
        print(f"{tree}: ninja can't read build.ninja\n0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    return sorted(name for name in listed.stdout.split() if has_all_for(tree, name))


def tree_name(tree):
    """`gcc, address,undefined` and the like, from its configuration."""
    config = (tree / "build/config.ninja").read_text()
    compiler = re.search(r"^# (gcc|clang)", config, re.M)
    sanitizers = re.search(r"^checked = .*-fsanitize=(\S+)", config, re.M)
    return (compiler[1] if compiler else "cc") + (f" ({sanitizers[1]})" if sanitizers else "")


def build(tree, benches):
    """Builds all of a tree, the benchmarks if so told; goes on after an error: a test that doesn't compile mustn't hide
    the others."""
    rules = ["suite"] if is_threaded(tree) else ["fuzz"] if is_fuzzed(tree) else \
        ["test", "suite", "suite_shared"] + (["single"] if benches and "cuda" not in left_out(tree) else [])
    wanted = THREADED if is_threaded(tree) else [] if is_fuzzed(tree) else ["all"]
    wanted = wanted + [target for rule in rules for target in targets(tree, rule)]
    command = ["ninja", "-j", str(CORES), "-k", "0", *wanted]
    # The same sources in another folder are the same to ccache.
    text, code, _, used = start(command, tree, dict(os.environ, CCACHE_NOHASHDIR="1"), BUILD_SECONDS)
    if code == 0:
        return Outcome(passed=1, text=text, seconds=used)
    return Outcome(failed=["(doesn't build)"], text=text, seconds=used)


def plain_of(trees):
    """The one without sanitizers, or None."""
    return next((tree for tree in trees if "(" not in tree_name(tree)), None)


def jobs(trees, full):
    """(name, command, folder) of everything there is to run."""
    plain = plain_of(trees)
    for position, tree in enumerate(trees):
        if is_fuzzed(tree):
            for target in targets(tree, "fuzz"):
                yield f"{tree_name(tree)}: {target.removeprefix('build/tests/')}", \
                    [sys.executable, "tests/fuzz.py", os.path.basename(target)], tree
            continue
        if is_threaded(tree):
            for program in THREADED:
                yield f"{tree_name(tree)}: {program.removeprefix('build/tests/')}", [program], tree
            for name, command, _, threaded in SUITES:
                if threaded:
                    yield f"{tree_name(tree)}: {name}", command, tree
            continue
        for name, command, in_each in SCRIPTS + (FULL_SCRIPTS if full else []):
            if tree == plain if in_each == PLAIN else in_each or position == 0:
                yield f"{tree_name(tree)}: {name}" if in_each is True else name, [sys.executable, *command], tree
        for name, command, fully, _ in SUITES + (FULL_SUITES if full else []):
            if name in (IN_PLAIN_FULLY if full else IN_PLAIN) and tree != (plain or trees[0]):
                continue
            if position > 0 and not full and ("--sweep" in command or name in ONCE):
                continue  # what goes wrong after a failure, sanitizers see
            yield f"{tree_name(tree)}: {name}", command + (fully if full else []), tree
        for program in targets(tree, "test"):
            name = program.removeprefix("build/tests/")
            if position == 0 or full or name not in ONCE:
                yield f"{tree_name(tree)}: {name}", [program], tree


def rank(job):
    """By what jobs are ordered."""
    for number, word in enumerate(ALONE + LONG):
        if job[0] == word if word in ALONE else word in job[0]:
            return number
    return len(ALONE + LONG)


class Jobs:
    """What is still to be run. Each job waits until its tree is built. While there is one to build, which takes all
    cores, one job at a time runs beside it, else one more than there are cores: many tests wait now and then."""

    def __init__(self, waiting, built):
        self.waiting, self.built, self.building, self.running = sorted(waiting, key=rank), set(built), True, 0
        self.changed = threading.Condition()

    def take(self):
        """The next one, as soon as there is one; None after the last."""
        with self.changed:
            while self.waiting:
                ready = [job for job in self.waiting if job[2] in self.built or job[0] in ALONE]
                if ready and self.running < (1 if self.building else CORES + 1):
                    self.waiting.remove(ready[0])
                    self.running += 1
                    return ready[0]
                self.changed.wait()
            return None

    def end(self):
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def has_built(self, tree, last):
        with self.changed:
            self.built.add(tree)
            self.building = not last
            self.changed.notify_all()


def keep(name, text, seed):
    """What a test printed that failed with a fresh seed."""
    path = ROOT / FOUND / (re.sub(r"[^\w.-]+", "_", name) + f".{seed}.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"GK_TEST_SEED={seed}\n{text}")


class Report:
    """The counts of all, and what each printed if it failed."""

    def __init__(self, seed):
        self.total, self.used, self.lock, self.seed = Outcome(), [], threading.Lock(), seed

    def add(self, name, outcome):
        total, bad, skips = self.total, len(outcome.failed), len(outcome.skipped)
        counts = f"{outcome.passed} passed" + (f", {bad} failed" if bad else "") + \
            (f", {skips} skipped" if skips else "")
        with self.lock:
            self.used.append((outcome.seconds, name))
            print(f"{'FAIL' if bad else 'ok  '} {name}: {counts}", flush=True)
            if bad:
                print("".join(f"     | {line}\n" for line in outcome.text.splitlines()), end="", flush=True)
            total.passed += outcome.passed
            total.failed += [f"{name}: {case}" for case in outcome.failed]
            total.skipped += [(f"{name}: {case}", why) for case, why in outcome.skipped]
        if bad and self.seed:
            keep(name, outcome.text, self.seed)

    def end(self):
        total, times = self.total, [f"{seconds:6.1f} s {name}" for seconds, name in sorted(self.used, reverse=True)]
        (ROOT / TIMES).parent.mkdir(exist_ok=True)
        (ROOT / TIMES).write_text("".join(f"{line}\n" for line in times))
        minutes = sum(seconds for seconds, _ in self.used) / 60
        print(f"{minutes:.1f} minutes of processor time; the longest ({TIMES} has all):")
        print("\n".join(times[:LONGEST]))
        for name, why in total.skipped:
            print(f"skipped: {name}: {why}")
        for name in total.failed:
            print(f"failed: {name}")
        if self.seed:
            print(f"GK_TEST_SEED={self.seed}" + (f"; {FOUND} has what failed" if total.failed else ""))
        print(f"{total.passed} passed, {len(total.failed)} failed, {len(total.skipped)} skipped", flush=True)


def run_one(job, env, seconds):
    name, command, folder = job
    path = folder / command[0]
    if not command[0].startswith(sys.executable) and not path.exists():
        return Outcome(failed=["(wasn't built)"])
    return execute([str(path), *command[1:]], folder, environment_of(folder, env), seconds)


def attempt(function, *arguments):
    """What it answers; if it raises, as when no process can be started, that is a failure like any other."""
    try:
        return function(*arguments)
    except Exception as problem:  # of any kind: the other jobs go on, and the counts come last
        return Outcome(failed=[f"(couldn't be run: {problem})"], text=traceback.format_exc())


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--tree", action="append", metavar="DIR", help="a folder with a build/config.ninja; default: .")
    usage.add_argument("--skip", action="append", default=[], metavar="'WHAT: WHY'", help="count this as skipped")
    usage.add_argument("--full", action="store_true", help="also what takes long, and random cases from a fresh seed")
    usage.add_argument("--seed", type=int, help="with --full: this one, not a fresh one")
    usage.add_argument("--without", action="append", default=[], metavar="NAME")
    usage.add_argument("--no-build", action="store_true", help="what isn't built fails")
    usage.add_argument("names", nargs="*", metavar="NAME")
    options = usage.parse_args()
    trees = [ROOT / tree for tree in options.tree or ["."]]
    seed = (options.seed or random.SystemRandom().randrange(1, 2**31)) if options.full else None
    if seed:
        print(f"GK_TEST_SEED={seed}", flush=True)
    env, report = environment(seed), Report(seed)

    def is_asked_for(name):
        return (not options.names or any(part in name for part in options.names)) and \
            not any(part in name for part in options.without)

    chosen = Jobs([job for job in jobs(trees, options.full)
                   if is_asked_for(job[0]) and has_all_for(job[2], job[0])],
                  trees if options.no_build else [])
    report.total.skipped += [(f"{tree_name(tree)}: tests of {one}", f"{one} isn't in this tree: see its configuration")
                             for tree in trees for one in left_out(tree)]
    if not plain_of(trees):
        report.total.skipped += [(name, "needs a tree without sanitizers: ./configure.py test")
                                 for name, _, in_each in SCRIPTS if in_each == PLAIN and is_asked_for(name)]

    def work():
        for job in iter(chosen.take, None):
            try:
                report.add(job[0], attempt(run_one, job, env, FULL_SECONDS if options.full else SECONDS))
            finally:
                chosen.end()

    with ThreadPoolExecutor(max_workers=CORES + 1) as pool:
        workers = [pool.submit(work) for _ in range(CORES + 1)]
        for tree in trees:
            if not options.no_build:
                benches = options.full or tree == plain_of(trees)
                report.add(f"{tree_name(tree)}: build", attempt(build, tree, benches))
            chosen.has_built(tree, tree == trees[-1])
        for worker in workers:
            worker.result()
    report.total.skipped += [tuple(skip.split(": ", 1)) for skip in options.skip]
    report.end()
    return 1 if report.total.failed or not report.total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
