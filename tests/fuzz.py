#!/usr/bin/env python3
"""Arbitrary bytes as task lists, kernels' text and OBJ files: libFuzzer's targets, tests/fuzz/NAME.c. First what is
kept in tests/fuzz/corpus (an input per line, in hex) is replayed, then so many new inputs are made, always the same
ones. With $GK_TEST_SEED it goes on from what it found before, by that seed. A crash leaves its input and says how to
replay it. Started outside of a tree for fuzzing, it makes and builds build/fuzz and goes there.

  tests/fuzz.py [--runs N] [NAME ...]      so many runs, times $GK_TEST_SCALE
  tests/fuzz.py --keep [NAME ...]          keeps what was found since, as few inputs as reach the same code
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

TARGETS = {"list": 400, "compose": 600, "obj": 600}  # and the longest input that is tried
RUNS = {"list": 2000, "compose": 5000, "obj": 100000}
SCALE = int(os.environ.get("GK_TEST_SCALE", "1"))
SEED = os.environ.get("GK_TEST_SEED")
KEPT = tap.ROOT / "tests/fuzz/corpus"
OPTIONS = "allocator_may_return_null=1:detect_stack_use_after_return=1:quarantine_size_mb=16"


def enter_tree():
    """Into the tree for fuzzing, built anew if this isn't one. A reason where there can be none."""
    if any("fuzzer" in word for word in tap.config("checked")):
        return None
    sys.path.insert(0, str(tap.ROOT))
    import configure
    try:
        os.chdir(tap.ROOT / configure.fuzz_tree())
    except configure.Missing as problem:
        return str(problem)
    return tap.run("ninja", *(f"build/tests/fuzz/{name}" for name in TARGETS))


def found(name):
    """What a target found on earlier runs in this tree."""
    folder = Path(f"build/tests/fuzz/{name}.found")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def unpack(name):
    """The kept inputs as files."""
    folder = Path(f"build/tests/fuzz/{name}.kept")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept = KEPT / f"{name}.hex"
    for number, line in enumerate(kept.read_text().splitlines() if kept.exists() else []):
        (folder / f"{number:03}").write_bytes(bytes.fromhex(line))
    return folder


def fuzz(name, *arguments):
    """What is wrong, or None; then the last line that libFuzzer printed about its progress."""
    env = dict(os.environ, ASAN_OPTIONS=":".join(filter(None, (OPTIONS, os.environ.get("ASAN_OPTIONS")))))
    command = [f"build/tests/fuzz/{name}", f"-artifact_prefix=build/tests/fuzz/{name}-", f"-timeout={tap.HANGS}",
               "-malloc_limit_mb=0", "-print_final_stats=1", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=env)
    progress = [line for line in done.stdout.splitlines() if re.match(r"#\d+\s+(DONE|INITED|pulse)", line)]
    if done.returncode == 0:
        return None, progress[-1] if progress else ""
    rest = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    unit = re.search(r"Test unit written to (\S+)", done.stdout) or re.search(r"^Running: (\S+)", done.stdout, re.M)
    if unit and Path(unit[1]).is_file():
        content = Path(unit[1]).read_bytes()
        rest += [f"the input, {len(content)} bytes, in hex: {content.hex()}", "to replay it:",
                 f"  cd {os.getcwd()} && ASAN_OPTIONS={OPTIONS} {command[0]} {unit[1]}"]
    return "\n".join([" ".join(command), *rest[-60:]]), ""


def keep(name):
    """Replaces the kept inputs of a target by few that together reach all the code that is reached at all."""
    with tempfile.TemporaryDirectory() as folder:
        control, merged = Path(folder) / "control", Path(folder) / "merged"
        merged.mkdir()
        problem, _ = fuzz(name, "-merge=1", f"-merge_control_file={control}", merged, unpack(name), found(name))
        if problem:
            return problem
        lines = control.read_text(errors="replace").splitlines()
        files = [Path(line) for line in lines[2:2 + int(lines[0])]]
        reached = {}
        for line in lines[2 + len(files):]:
            kind, number, *rest = line.split()
            if kind == "FT":  # a feature is a branch and one of eight sizes of how often it was taken
                reached[files[int(number)]] = {int(feature) // 8 for feature in rest}
        chosen, left = [], set().union(*reached.values())
        while left:
            best = max(reached, key=lambda one: (len(reached[one] & left), -one.stat().st_size))
            chosen.append(best.read_bytes())
            left -= reached[best]
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{name}.hex").write_text("".join(f"{content.hex()}\n" for content in chosen))
        print(f"# {name}: {len(chosen)} of {len(files)} inputs kept, {sum(map(len, chosen))} bytes")
        return None


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--runs", type=int, help=", ".join(f"{name}: {RUNS[name] * SCALE}" for name in TARGETS))
    usage.add_argument("--keep", action="store_true")
    usage.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    options = usage.parse_args()
    why = enter_tree()
    for name in options.names or TARGETS:
        if why:
            tap.skip(name, why.splitlines()[-1])
            continue
        if options.keep:
            tap.case(f"{name}: kept", keep(name))
            continue
        kept = unpack(name)
        problem, _ = fuzz(name, *sorted(kept.iterdir()))
        if not tap.case(f"{name}: the {len(list(kept.iterdir()))} kept inputs", problem):
            continue
        words, runs = tap.ROOT / f"tests/fuzz/{name}.dict", options.runs or RUNS[name] * SCALE
        with tempfile.TemporaryDirectory() as nothing:
            problem, progress = fuzz(name, f"-runs={runs}", f"-seed={SEED or 1}", f"-max_len={TARGETS[name]}",
                                     *([f"-dict={words}"] if words.exists() else []),
                                     found(name) if SEED else nothing, kept)
        print(f"# seed {SEED or 1}: {progress}")
        tap.case(f"{name}: {runs} runs", problem)
    tap.finish()


main()
