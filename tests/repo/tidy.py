#!/usr/bin/env python3
"""clang-tidy over the library; the checks, and the reasons for those left out, are in .clang-tidy."""
import sys
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-fopenmp", f'-DGK_VERSION="{tap.version()}"', "-Iinclude",
         "-Icommon", "-Ifallback", "-I.", *tap.config("nvtx"), *tap.config("nvtx_headers")]

# The code for devices, as tests compile it for the host; checked for its complexity alone.
GATES = """#include "unit/support/gates_host.h"
static void cudaGraphSetConditional(unsigned long long handle, unsigned value) { (void)handle, (void)value; }
static int32_t host_consult(const char *at, int32_t value) { return (void)at, value; }
"""


def main():
    sources = sorted(path for folder in ("common", "cuda", "fallback") for path in Path(folder).rglob("*.c"))
    if not shutil.which("clang-tidy"):
        tap.skip("clang-tidy", "clang-tidy isn't installed")
        tap.finish()

    def tidy(source):
        return tap.run("clang-tidy", "--quiet", source, "--", *FLAGS)
    gates = Path("build/tidy_gates.c")
    gates.write_text(GATES)
    tap.case("cuda/gates.cu and what it includes", tap.run(
        "clang-tidy", "--quiet", "--checks=-*,readability-function-cognitive-complexity",
        "--header-filter=(gates.cu|[.]inc)$", gates, "--", *FLAGS, "-Itests", "-Icuda"))

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for source, problem in zip(sources, pool.map(tidy, sources)):
            tap.case(source, problem)
    tap.finish()


main()
