#!/usr/bin/env python3
"""gcc's -fanalyzer over the library: paths on which memory is lost, freed twice, used after its end, or reached through
NULL. analyzer.h tells it what gives memory here. Where it is wrong is said below; an exception that nothing needs any
more is a failure, too."""
import sys
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-fopenmp", "-O1", f'-DGK_VERSION="{tap.version()}"', "-Iinclude", "-Icommon",
         "-Ifallback", "-I.", *tap.config("nvtx"), *tap.config("nvtx_headers"), "-fanalyzer",
         "-fdiagnostics-plain-output", "-c", "-o", "/dev/null"]
BELOW = Path("common/base/memory.c")  # defines what analyzer.h declares
EXCEPTIONS = {  # file, warning, function: why it is wrong
    ("cuda/lower.c", "null-dereference", "make_nodes"): "gk_gates_make answers GK_OK with gates alone",
}


def find_gcc():
    """The tree's compiler if it is gcc, else another one; gcc below 12 has an analyzer that isn't worth asking."""
    for command in [*tap.config("cc")[:1], "gcc", "gcc-12"]:
        version = subprocess.run([command, "-dumpfullversion"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True) if shutil.which(command) else None
        if version and version.returncode == 0 and int(version.stdout.split(".")[0]) >= 12:
            return command
    return None


def main():
    gcc = find_gcc()
    if not gcc:
        tap.skip("gcc -fanalyzer", "gcc 12 or newer isn't installed")
        tap.finish()
    sources = sorted(path for folder in ("common", "cuda", "fallback") for path in Path(folder).rglob("*.c"))
    needed = set()

    def analyze(source):
        told = [] if source == BELOW else ["-include", "tests/repo/analyzer.h"]
        done = subprocess.run([gcc, *FLAGS, *told, str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
        problems, function = [], ""
        for line in done.stdout.splitlines():
            place = re.search(r"In function ['‘](\w+)", line)
            function = place[1] if place else function
            warning = re.search(r"(warning|error): .*?(?:\[(?:CWE-\d+\] \[)?-Wanalyzer-([\w-]+)\])?$", line)
            if not warning:
                continue
            key = (source.as_posix(), warning[2], function)
            if key in EXCEPTIONS:
                needed.add(key)
            else:
                problems.append(f"{line}\n  as an exception: {key}")
        return "\n".join([*problems, done.stdout]) if problems or done.returncode else None

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for source, problem in zip(sources, pool.map(analyze, sources)):
            tap.case(source, problem)
    tap.case("every exception is needed", "\n".join(map(str, set(EXCEPTIONS) - needed)))
    tap.finish()


main()
