#!/usr/bin/env python3
"""docs/examples/starpu_tiles.c under StarPU: by gk as by hand, whichever worker gets a tile, in one process and on two
ranks of an MPI job. What is for CUDA is compiled where the headers are. For a tree without sanitizers. Prints TAP."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402
from mpi import run_for  # noqa: E402

EXAMPLE = tap.ROOT / "docs/examples/starpu_tiles.c"
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
SCHEDULERS = ("eager", "ws", "random", "prio")
WORDS = ["--side", "32", "--steps", "10"]
TOOLKIT = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"


def flags(package):
    """What pkg-config says, with StarPU's headers as those of the system, or None."""
    done = subprocess.run(["pkg-config", "--cflags", "--libs", package], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.stdout.replace("-I", "-isystem").split() if done.returncode == 0 else None


def build(program, compiler, package, *more):
    return tap.run(compiler, *WARNINGS, "-O1", *more, f"-I{tap.ROOT}/include", EXAMPLE, "-Lbuild",
                   f"-Wl,-rpath,{Path('build').absolute()}", "-lgk", *flags(package), "-lm", "-o", program,
                   env=dict(os.environ, OMPI_CC=tap.config("cc")[0]))


def run(*command, folder, scheduler="eager", workers=2):
    """What it prints, or None and what is wrong."""
    said, code = run_for(tap.HANGS, command, STARPU_NCPU=str(workers), STARPU_SCHED=scheduler, STARPU_SILENT="1",
                         STARPU_HOME=str(folder), STARPU_WORKERS_NOBIND="1")
    return (said.splitlines()[-1] if code == 0 and said else None), \
        f"$ {' '.join(map(str, command))}\n{said}(exit code {code})"


def figures(line):
    """Without the number of larger buffers, since each worker has one of its own."""
    return line and line.split(", larger")[0]


def main():
    if not shutil.which("pkg-config") or flags("starpu-1.3") is None:
        tap.skip("gk under StarPU", "StarPU 1.3 or pkg-config isn't installed (libstarpu-dev)")
        tap.finish()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "starpu_tiles"
        if not tap.case("the example compiles", build(program, tap.config("cc")[0], "starpu-1.3")):
            tap.finish()
        wanted, text = run(program, *WORDS, "--by-hand", folder=folder, workers=1)
        tap.case("by hand", None if wanted and "80 tiles" in wanted and not wanted.endswith(" 0") else text)
        for scheduler in SCHEDULERS:
            for workers in (1, 2):
                line, text = run(program, *WORDS, folder=folder, scheduler=scheduler, workers=workers)
                yielded = line and not line.endswith(" 0")
                tap.case(f"by gk, workers: {workers}, scheduler {scheduler}",
                         None if yielded and figures(line) == figures(wanted) else f"{text}\nby hand: {wanted}")
        if shutil.which("mpicc") and shutil.which("mpirun") and flags("starpumpi-1.3") is not None:
            problem = build(program, "mpicc", "starpumpi-1.3", "-DWITH_MPI")
            for scheduler, *words in [[name, *WORDS] for name in SCHEDULERS] + [["eager", *WORDS, "--by-hand"]]:
                line, text = run("mpirun", "-n", 2, "--oversubscribe", program, *words, folder=folder,
                                 scheduler=scheduler, workers=2)
                tap.case(f"two ranks, scheduler {scheduler}, {' '.join(words)}",
                         problem or (None if line and figures(line) == figures(wanted) else f"{text}\n{wanted}"))
        else:
            tap.skip("two ranks", "mpicc or starpumpi-1.3 isn't there (libopenmpi-dev)")
        if (TOOLKIT / "cuda_runtime.h").exists():
            tap.case("the codelet for CUDA compiles",
                     tap.run(tap.config("cc")[0], *WARNINGS, "-fsyntax-only", "-DSTARPU_USE_CUDA", "-isystem", TOOLKIT,
                             f"-I{tap.ROOT}/include", EXAMPLE,
                             *[flag for flag in flags("starpu-1.3") if not flag.startswith("-l")]))
        else:
            tap.skip("the codelet for CUDA compiles", f"{TOOLKIT}/cuda_runtime.h isn't there")
        for words in (["--side", 2], ["--tiles", 99999999999], ["--steps", "2x"], ["--sweeps", 3]):
            line, text = run(program, *words, folder=folder)
            tap.case(f"wrong options: {' '.join(map(str, words))}",
                     None if line is None and "usage: " in text else text)
    tap.finish()


if __name__ == "__main__":
    main()
