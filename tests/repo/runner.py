#!/usr/bin/env python3
"""tests/run.py itself: what it makes of a program's output, and of programs that don't run. Prints TAP."""
import sys
import tempfile
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import run  # noqa: E402
import tap  # noqa: E402

PASSES = "1..2\nok 1 - one\nok 2 - two\n"
# What a program prints, its exit code, the seconds it was stopped after, then: passed, the failed, the skipped.
JUDGED = [
    (PASSES, 0, 0, (2, [], [])),
    ("1..2\nok 1 - one\nnot ok 2 - two\n", 1, 0, (1, ["two"], [])),
    ("1..2\nok 1 - one\nnot ok 2 - two\n", 0, 0, (1, ["two"], [])),
    (PASSES, 1, 0, (2, ["(exit code 1 though no case failed)"], [])),
    (PASSES, -11, 0, (2, ["(killed by SIGSEGV)"], [])),
    (PASSES, 0, 9, (2, ["(no end after 9 seconds)"], [])),
    ("1..3\nok 1 - one\n", 0, 0, (1, ["(1 of 3 cases ran)"], [])),
    ("", 0, 0, (0, ["(not a single case)"], [])),
    ("1..0 # SKIP no tool\n", 0, 0, (0, [], [("all of it", "no tool")])),
    ("1..0 # SKIP no device\n", run.NO_DEVICE, 0, (0, [], [("all of it", "no device")])),
    ("1..1\nok 1 - one # SKIP no tool\n", 0, 0, (0, [], [("one", "no tool")])),
    ("1..1\nno tool\nok 1 # SKIP one\n", 0, 0, (0, [], [("one", "no tool")])),
    ("1..1\nnot ok 1 - one # TO" "DO later\n", 0, 0, (0, [], [("one", "known to fail: later")])),
    ("1..1\nok 1 - one # TO" "DO later\n", 0, 0, (0, ["one (passes, though it is known to fail: later)"], [])),
]


def judged():
    for text, code, late, wanted in JUDGED:
        found = run.judge(text, code, late)
        if (found.passed, found.failed, found.skipped) != wanted:
            return f"{text!r}, exit code {code}: {found}"
    return None


def not_run():
    """What can't be started is a failure of its own: the others go on."""
    found = run.attempt(run.run_one, ("x", ["there/is/none"], Path("/")), {}, tap.HANGS)
    if found.failed != ["(wasn't built)"]:
        return found
    found = run.attempt(run.execute, ["/there/is/none"], "/", {}, tap.HANGS)
    return None if found.failed and "couldn't be run" in found.failed[0] else found


def executed():
    found = run.execute(["printf", PASSES], "/", {}, tap.HANGS)
    late = run.execute(["sleep", str(2 * tap.HANGS)], "/", {}, 0.1)
    return None if found.passed == 2 and late.failed == ["(no end after 0.1 seconds)"] else (found, late)


def called(config, *words):
    """The last line of a run of one script, which passes, in a tree with this configuration."""
    with tempfile.TemporaryDirectory() as tree:
        (Path(tree) / "build").mkdir()
        (Path(tree) / "build/config.ninja").write_text(config)
        (Path(tree) / "build.ninja").write_text("")
        (Path(tree) / "script.py").write_text(f"print({PASSES!r})")
        scripts = [("any tree", ["script.py"], False), ("plain tree", ["script.py"], run.PLAIN)]
        with mock.patch.multiple(run, SCRIPTS=scripts, SUITES=[], ROOT=Path(tree)), \
                mock.patch.object(sys, "argv", ["run.py", "--no-build", *words]), mock.patch("builtins.print") as said:
            run.main()
        return said.call_args.args[0]


def trees():
    """A script for a tree without sanitizers is skipped where there is none, and counted."""
    plain, sanitized = "# gcc\n", "# gcc\nchecked = -fsanitize=address\n"
    found = [called(plain), called(sanitized), called(sanitized, "any"), called(plain, "nothing"),
             called(sanitized, "--without", "plain")]
    wanted = ["4 passed, 0 failed, 0 skipped", "2 passed, 0 failed, 1 skipped", "2 passed, 0 failed, 0 skipped",
              "0 passed, 0 failed, 0 skipped", "2 passed, 0 failed, 0 skipped"]
    return None if found == wanted else found


def surroundings():
    """What a program sees of the caller's environment."""
    alien = dict.fromkeys(("GK_CUDA_PROBE", "GK_BACKEND", "GK_LOG", "GK_TEST_SEED", "OMP_THREAD_LIMIT",
                           "OMP_NUM_THREADS", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "CUDA_LAUNCH_BLOCKING"), "1")
    kept = {"CUDA_HOME": "/c", "GK_TEST_SCALE": "2", "PATH": "/bin", "TSAN_OPTIONS": "a=1"}
    with mock.patch.dict("os.environ", alien | kept, clear=True):
        found, seeded = run.environment(), run.environment(7)
    there = {name: found.get(name) for name in (*alien, *kept, "GK_CACHE")}
    wanted = dict.fromkeys(alien) | kept | {"TSAN_OPTIONS": "allocator_may_return_null=1:a=1", "GK_CACHE": "off"}
    right = there == wanted and (seeded["GK_TEST_SEED"], seeded["GK_TEST_SCALE"]) == ("7", "2")
    return None if right else (there, seeded)


tap.case("what a program printed is counted", judged())
tap.case("a program that isn't there fails", not_run())
tap.case("a program is run, and stopped when it is late", executed())
tap.case("a program sees nothing that steers gk", surroundings())
tap.case("scripts for a tree without sanitizers", trees())
tap.finish()
