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
SEEDS = [1, 5, 16, 34, 31, 44, 45, 216]  # with included lists, cancels, queues, interrupted runs, bad counts among them
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


def main():
    with tempfile.TemporaryDirectory() as folder:
        seen = ""
        for seed in SEEDS:
            printed = subprocess.run([PROGRAM, "--print", str(seed)], stdout=subprocess.PIPE, text=True)
            program, problem = compile_text(printed.stdout, folder, f"seed{seed}")
            if printed.returncode:
                problem = f"--print {seed}: exit code {printed.returncode}"
            tap.case(f"the list of seed {seed} as a program", problem or tap.run(program, timeout=tap.HANGS))
            seen += printed.stdout
        apart = subprocess.run([PROGRAM, "--backend", "test_device", "--print", "2"], stdout=subprocess.PIPE, text=True)
        program, problem = compile_text(apart.stdout, folder, "apart", TEST_DEVICE)
        tap.case("a list on the test device as a program", problem or tap.run(program, timeout=tap.HANGS))
        recorded = subprocess.run([PROGRAM, "--backend", "cuda", "--print", "244"], stdout=subprocess.PIPE, text=True,
                                  env=SIMULATED)
        program, problem = compile_text(recorded.stdout, folder, "recorded", tap.config("checked"),
                                        tap.checked("libgk.a"))
        for word in ("GK_CALL(note", "GK_RUN(stay", "bring_door(", "cancel();"):
            if word not in recorded.stdout:
                problem = f"{word} isn't printed\n{recorded.stdout}"
        tap.case("a list on simulated CUDA as a program", problem or tap.run(program, timeout=tap.HANGS, env=SIMULATED))
        for word in ("GK_INCLUDE_AS", "GK_CHECKPOINT", "GK_YIELD(", "GK_CALL_HOST(", "GK_PARALLEL", "cancel();",
                     "resize(", "holds(", "launch(0);", "fails();"):
            tap.case(f"{word} is printed", None if word in seen else "by none of these seeds")
        wrong = re.sub(r'(holds\("\w+", INTS\()(-?\d+)', lambda at: f"{at[1]}{int(at[2]) ^ 1}", printed.stdout, count=1)
        program, problem = compile_text(wrong, folder, "wrong")
        if not problem:
            done = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=tap.HANGS)
            well = done.returncode == 1 and "by the contract" in done.stdout and wrong != printed.stdout
            problem = None if well else f"exit code {done.returncode}\n{done.stdout}"
        tap.case("a number that is wrong is found", problem)
    tap.finish()


main()
