#!/usr/bin/env python3
"""Random lists printed as C: each program compiles, does on a backend what the list did, and finds what is wrong."""
import sys
import os
import re
import subprocess
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

PROGRAM = "build/tests/conformance/random_lists"
MOST_SEEDS = 2000
WRONG = re.compile(r'(holds\("\w+", INTS\()(-?\d+)')  # a number that is made wrong
# What programs must have in them; a list that can be recorded, what its program must have.
WORDS = {"GK_INCLUDE_AS", "GK_CHECKPOINT", "GK_YIELD(", "GK_REPEAT(", ".every = ", "GK_ITEMS(", "GK_ROOM(", "GK_PASS(",
         "GK_CALL_HOST(", "GK_PARALLEL", "cancel();", "resize(", "holds(", "launch(0);", "fails();"}
RECORDED = {"GK_CALL(note", "GK_RUN(stay", "bring_door(", "cancel();"}
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *tap.config("openmp"),
         f"-I{tap.ROOT}/include", f"-I{tap.ROOT}/tests"]


# Where CALLs are recorded and a kernel waits for the host.
SIMULATED = dict(os.environ, LD_LIBRARY_PATH="build/simgpu", CUDA_HOME="build/simgpu")
TEST_DEVICE = [f"-I{tap.ROOT}/common", *sorted((tap.ROOT / "tests/device").glob("*.c"))]


def compile_text(text, folder, name, more=(), libgk="build/libgk.a"):
    """The program, and what went wrong."""
    source, program = Path(folder) / f"{name}.c", Path(folder) / name
    source.write_text(text)
    libs = [libgk, *tap.config("openmp_libs"), "-lpthread", "-ldl", "-lm"]
    return program, tap.run(*tap.config("cc"), *FLAGS, source, *more, *libs, "-o", program)


def print_list(seed, *options, env=None):
    return subprocess.run([PROGRAM, *options, "--print", str(seed)], stdout=subprocess.PIPE, text=True, env=env,
                          check=True).stdout


def lists():
    """(seed, text) of lists that have all WORDS together."""
    missing = set(WORDS)
    for seed in range(1, MOST_SEEDS):
        text = print_list(seed)
        if any(word in text for word in missing):
            missing -= {word for word in missing if word in text}
            yield seed, text
        if not missing:
            return
    tap.case("each word is printed", f"by none of {MOST_SEEDS} seeds: {missing}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for seed, text in lists():
            program, problem = compile_text(text, folder, f"seed{seed}")
            tap.case(f"the list of seed {seed} as a program", problem or tap.run(program, timeout=tap.HANGS))
            if WRONG.search(text):
                printed = text
        program, problem = compile_text(print_list(2, "--backend", "test_device"), folder, "apart", TEST_DEVICE)
        tap.case("a list on the test device as a program", problem or tap.run(program, timeout=tap.HANGS))
        for seed in range(1, MOST_SEEDS):
            text = print_list(seed, "--backend", "cuda", env=SIMULATED)
            if all(word in text for word in RECORDED):
                break
        program, problem = compile_text(text, folder, "recorded", tap.config("checked"), tap.checked("libgk.a"))
        problem = problem or "".join(f"{word} isn't printed\n" for word in RECORDED if word not in text)
        tap.case("a list on simulated CUDA as a program", problem or tap.run(program, timeout=tap.HANGS, env=SIMULATED))
        wrong = WRONG.sub(lambda at: f"{at[1]}{int(at[2]) ^ 1}", printed, count=1)
        program, problem = compile_text(wrong, folder, "wrong")
        if not problem:
            done = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=tap.HANGS)
            well = done.returncode == 1 and "by the contract" in done.stdout and wrong != printed
            problem = None if well else f"exit code {done.returncode}\n{done.stdout}"
        tap.case("a number that is wrong is found", problem)
    tap.finish()


main()
