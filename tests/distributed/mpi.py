#!/usr/bin/env python3
"""docs/examples/mpi_cg.c under mpirun: the same residuals on one, two and four ranks, on OpenMP and on the simulated
CUDA driver; a rank that yields alone, votes, and ranks that fail. Mistakes that docs/distributed.md warns of are
planted in a copy, and must be noticed. For a tree without sanitizers. Prints TAP."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

EXAMPLE = tap.ROOT / "docs/examples/mpi_cg.c"
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
HEADERS = [Path("/usr/local/include"), Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
SECONDS = 120      # a job that fails ends by itself within that time
HANGS_SECONDS = 5  # a job that hangs is ended so long after its last message
LAST_MESSAGE = "rank 1: the solver: "
PASSES = 50        # whose residuals are compared
LARGEST = 1e-12    # difference of them
BOX = ["--side", "16", "--planes", "32"]
# Text of the example, text with a mistake, a fault for one rank, the message that is expected. Behind LAST_MESSAGE the
# job hangs.
MISTAKES = {
    "a decision by a vote of one rank": (
        "if (me->rr[2] > 0.0)", "if (wants_stop)", "stop 1 21",
        "the ranks don't agree: rank 0 is at HALO, exchange 31; rank 1 is at the end, exchange 31"),
    "a vote that isn't reduced": (
        "if (me->rr[2] > 0.0)", "me->rr[1] = wants_save;\n    if (me->rr[2] > 0.0)", "save 1 21",
        "the ranks don't agree: rank 0 is at HALO, exchange 31; rank 1 is at SAVE, exchange 31"),
    "a rank that skips an exchange": (
        "  agreed(me, label);", "  if (me->number == 1 && me->exchanges == 7) return ++me->exchanges, GK_OK;\n"
        "  agreed(me, label);", "",
        "the ranks don't agree: rank 0 is at HALO, exchange 7; rank 1 is at SUM_PQ, exchange 8"),
    "an error that ends one rank's loop alone": (
        "  MPI_Abort(MPI_COMM_WORLD, 1);\n  abort();", "  MPI_Barrier(MPI_COMM_WORLD);\n  abort();", "resize 1 1",
        LAST_MESSAGE),
}


# mpirun refuses root without the first two. The last one: in a container, a process may not read another one's memory.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
COMPILER = dict(os.environ, OMPI_CC=tap.config("cc")[0])


def run_for(seconds, command, message=None, **env):
    """What it prints, and its exit code, or None if it didn't end in time: HANGS_SECONDS after a message, if any."""
    with tempfile.NamedTemporaryFile("w+") as said:
        started = subprocess.Popen([str(word) for word in command], stdout=said, stderr=subprocess.STDOUT,
                                   env={**os.environ, **AS_ROOT, **env}, start_new_session=True)
        code, end = None, time.monotonic() + seconds
        while message and message not in Path(said.name).read_text() and started.poll() is None and \
                time.monotonic() < end:
            time.sleep(0.05)
        try:
            code = started.wait(timeout=HANGS_SECONDS if message else seconds)
        except subprocess.TimeoutExpired:
            started.terminate()  # mpirun ends the ranks
            try:
                started.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        said.seek(0)
        return said.read(), code


class Job:
    def __init__(self, program, ranks, *words, fault="", seconds=tap.HANGS, message=None, **env):
        command = ["mpirun", "-n", str(ranks), "--oversubscribe", str(program), *map(str, words)]
        if fault:
            command[4:4] = ["-x", f"LD_PRELOAD={program.parent / 'faults.so'}", "-x", f"MPI_FAULT={fault}"]
        self.said, self.code = run_for(seconds, command, message, GK_CACHE="off", **env)
        numbers = re.compile(r"^\d[\d.e+-]*\n", re.M)
        self.history = [float(line) for line in numbers.findall(self.said)]
        self.said = numbers.sub("", self.said)
        self.text = f"$ {' '.join(command)}\n{self.said}(exit code {self.code})"
        self.last = self.said.rstrip().split("\n")[-1]

    def passes(self):
        found = re.search(r": (\d+) passes,", self.last)
        return int(found[1]) if found else 0


def same(job, wanted):
    """None if the job ended well, with the residuals of another one."""
    if job.code != 0 or len(job.history) < PASSES:
        return job.text
    worst = max(abs(a - b) / b for a, b in zip(job.history[:PASSES], wanted.history))
    return None if worst <= LARGEST else f"residuals differ by {worst}\n{job.text}"


def fails(job, *says):
    """None if the job ended by itself, not well, and said this."""
    wrong = [f"it doesn't say: {word}" for word in says if word not in job.said]
    return "\n".join([*wrong, job.text]) if job.code in (0, None) or wrong else None


def build(source, program, *flags):
    return tap.run("mpicc", *WARNINGS, "-O1", *flags, f"-I{tap.ROOT}/include", source, "-Lbuild",
                   f"-Wl,-rpath,{Path('build').absolute()}", "-lgk", "-lm", "-ldl", "-o", program,
                   env=COMPILER)


def simulated(version):
    return {"LD_LIBRARY_PATH": str(Path("build/simgpu").absolute()), "CUDA_HOME": "build/simgpu",
            "SIMGPU_VERSION": version}


def residuals(program):
    first = Job(program, 1, *BOX, "--history", "--backend", "openmp")
    tap.case("on OpenMP, ranks: 1", same(first, first))
    for ranks in (2, 4):
        tap.case(f"on OpenMP, ranks: {ranks}",
                 same(Job(program, ranks, *BOX, "--history", "--backend", "openmp"), first))
    for ranks in (1, 2, 4):
        tap.case(f"on OpenMP by calls, ranks: {ranks}",
                 same(Job(program, ranks, *BOX, "--history", "--backend", "openmp", "--calls"), first))
    for version in ("13.0", "12.4", "12.2"):
        for ranks in (1, 2, 4):
            tap.case(f"on simulated CUDA {version}, ranks: {ranks}",
                     same(Job(program, ranks, *BOX, "--history", "--backend", "cuda", **simulated(version)), first))
    return first


def saved(folder, ranks):
    return b"".join((folder / f"state.{k}").read_bytes() for k in range(ranks))


def doubles(data):
    return memoryview(data).cast("d").tolist()


def agreement(program, folder, first):
    words = [*BOX, "--history", "--backend", "openmp"]
    job = Job(program, 4, *words, fault="alone 1 1")
    tap.case("one of four ranks yields alone",
             same(job, first) or (None if "one rank's buffer stays small" in job.said else job.text))
    states = {}
    for ranks in (1, 4):
        job = Job(program, ranks, *words, "--save", str(folder / "state"), fault=f"save {ranks - 1} 21")
        states[ranks] = doubles(saved(folder, ranks)) if "saved 1 times" in job.last else []
        tap.case(f"a vote to save, ranks: {ranks}", same(job, first) or (None if states[ranks] else job.text))
    differ = max((abs(a - b) for a, b in zip(states[1], states[4])), default=1)
    tap.case("all ranks save in the same pass", None if len(states[1]) == len(states[4]) and differ < 1e-9 else
             f"the states differ by {differ}")
    for way in ([], ["--calls"]):
        jobs = [Job(program, ranks, *words, *way, fault=f"stop {ranks - 1} 21") for ranks in (1, 4)]
        tap.case(f"a vote to stop, {'by calls' if way else 'by yields'}",
                 None if all(job.code == 0 and "stopped" in job.last and job.passes() == jobs[0].passes()
                             for job in jobs) else "\n".join(job.text for job in jobs))


def failures(program):
    words = [*BOX, "--backend", "openmp"]
    tap.case("a rank is killed", fails(Job(program, 4, *words, fault="kill 2 21", seconds=SECONDS), "signal 9"))
    tap.case("a fix fails on one rank", fails(Job(program, 4, *words, fault="resize 1 1", seconds=SECONDS),
                                              "rank 1: the solver: ", "HISTORY"))
    tap.case("a launch is refused on one rank",
             fails(Job(program, 4, *words, fault="bind 3 12", seconds=SECONDS), "rank 3: the solver: ",
                   "(PQ) is not bound"))
    tap.case("a call fails on one rank",
             fails(Job(program, 4, *words, "--calls", fault="call 2 21", seconds=SECONDS), "rank 2: the solver: ",
                   "(call)"))
    tap.case("a rank makes fewer passes",
             fails(Job(program, 4, *words, fault="finish 1 21", seconds=SECONDS),
                   "the ranks don't agree: rank 0 is at ", "rank 1 is at the end, exchange "))


def with_nccl(folder, first):
    """nccl_cg.c on the simulated CUDA driver, on one rank, with nccl.c in the place of NCCL."""
    title, program = "the example with NCCL compiles", folder / "nccl_cg"
    missing = [name for name in ("nccl.h", "cuda.h") if not any((place / name).exists() for place in HEADERS)]
    if missing:
        tap.skip(title, f"{' and '.join(missing)} isn't there")
        return
    folders = [word for place in HEADERS for word in ("-isystem", place)]
    library, driver = folder / "libnccl.so", Path("build/simgpu/libcuda.so.1").absolute()
    problem = build(tap.ROOT / "tests/distributed/nccl.c", library, *folders, "-shared", "-fPIC", "-Wno-pedantic") or \
        build(tap.ROOT / "docs/examples/nccl_cg.c", program, *folders, library, driver, f"-Wl,-rpath,{folder}")
    if not tap.case(title, problem):
        return
    for version in ("13.0", "12.4", "12.2"):
        tap.case(f"exchanges in the graph, simulated CUDA {version}",
                 same(Job(program, 1, *BOX, "--history", **simulated(version)), first))
    tap.case("a call of NCCL that records a host function",
             fails(Job(program, 1, *BOX, NCCL_RECORDS="host", **simulated("13.0")),
                   "(nccl_sum) recorded a host function"))


def planted(folder):
    text = EXAMPLE.read_text()
    for title, (before, after, fault, says) in MISTAKES.items():
        source, program = folder / "planted.c", folder / "planted"
        source.write_text(text.replace(before, after))
        problem = None if text.count(before) == 1 else f"it isn't there once: {before}"
        problem = problem or build(source, program, "-Wno-unused-parameter")
        if problem:
            tap.case(f"planted: {title}", problem)
            continue
        job = Job(program, 2, *BOX, "--backend", "openmp", fault=fault, seconds=SECONDS,
                  message=LAST_MESSAGE if says == LAST_MESSAGE else None)
        hung = None if job.code is None and LAST_MESSAGE in job.said else job.text
        tap.case(f"planted: {title}", hung if says == LAST_MESSAGE else fails(job, says))


def main():
    missing = [name for name in ("mpicc", "mpirun") if not shutil.which(name)]
    if missing:
        tap.skip("gk under MPI", f"{' and '.join(missing)} isn't installed (openmpi-bin, libopenmpi-dev)")
        tap.finish()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "mpi_cg"
        problem = build(EXAMPLE, program) or build(EXAMPLE, folder / "without_checks", "-DNDEBUG") or \
            build(tap.ROOT / "tests/distributed/faults.c", folder / "faults.so", "-shared", "-fPIC", "-Wno-pedantic")
        if tap.case("the example compiles", problem):
            first = residuals(program)
            agreement(program, folder, first)
            failures(program)
            planted(folder)
            with_nccl(folder, first)
            for words in (["--side", 0], ["--side", "16x"], ["--side", 2**32 + 16], ["--tolerance", "nan"], ["--save"]):
                job = Job(program, 1, *words)
                tap.case(f"wrong options: {' '.join(map(str, words))}",
                         None if job.code == 2 and "usage: " in job.said else job.text)
            job = Job(program, 2, *BOX, "--save", folder / "missing/state", fault="save 1 21")
            tap.case("a state that can't be written",
                     None if job.code == 0 and "No such file" in job.said and "saved 0 times" in job.last else job.text)
    tap.finish()


if __name__ == "__main__":
    main()
