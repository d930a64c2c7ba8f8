#!/usr/bin/env python3
"""Test programs under valgrind's memcheck: it sees bytes that were never set, which no sanitizer here does, and the
code as it is shipped. Runs in a tree without sanitizers, the two don't go together. GK_TEST_SCALE above 1: more of
them, for minutes. What is suppressed is in tests/repo/valgrind.supp."""
import sys
import os
import shutil

from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

PROGRAMS = ["base/error", "base/memory", "list/blocks", "check/check", "dump/dump", "plan/plan", "plan/walk",
            "tools/reference", "runtime/bind", "runtime/graph", "runtime/status"]
MORE = ["kernel/language", "kernel/compose", "tools/obj", "base/registry", "runtime/device", "runtime/no_memory",
        "runtime/launch", "runtime/worker", "plan/walk_stops", "openmp/backend", "openmp/sections"]
# One thread runs at a time: fairly, so that a thread that waits for another one doesn't keep it from running.
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=9", "--fair-sched=yes", "--leak-check=full",
            "--show-leak-kinds=definite,indirect,possible", "--errors-for-leak-kinds=definite,indirect,possible",
            f"--suppressions={tap.ROOT}/tests/repo/valgrind.supp", "--gen-suppressions=all"]


def main():
    why = None if shutil.which("valgrind") else "valgrind isn't installed"
    if any(word.startswith("-fsanitize") for word in tap.config("checked")):
        why = "this tree has sanitizers"
    much = int(os.environ.get("GK_TEST_SCALE", "1")) > 1
    env = {name: value for name, value in os.environ.items() if name != "GK_TEST_SCALE"}
    env["GK_LISTS"] = "40"  # random ones, where a program makes any
    for name in PROGRAMS + (MORE if much else []):
        if why:
            tap.skip("valgrind", why)
            break
        tap.case(name, tap.run(*VALGRIND, f"build/tests/unit/{name}_test", env=env))
    tap.finish()


main()
