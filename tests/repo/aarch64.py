#!/usr/bin/env python3
"""gk on another machine than this one: the library compiled for aarch64, and the conformance suite on OpenMP run by
QEMU. In a tree of its own; Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user are all it takes."""
import os
import platform
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

ROOT = Path(os.path.realpath(__file__)).parent.parent.parent  # of the sources, whichever tree this is started in
sys.path.insert(0, str(ROOT))
import configure  # noqa: E402

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SUITE = "build/tests/conformance/conformance"
THREADS = "2"


def skip(why):
    tap.skip("conformance on aarch64", why)
    tap.finish()


def main():
    absent = [tool for tool in (COMPILER, EMULATOR) if not shutil.which(tool)]
    if platform.machine() == "aarch64":
        skip("this is one: all tests run on it")
    if absent:
        skip(f"{' and '.join(absent)} aren't installed")
    try:
        compiler = configure.inspect(COMPILER)
        tree = ROOT / configure.tree_of_its_own("aarch64", compiler, ["--debug", "--sanitize=none", "--ready-gates"])
    except configure.Missing as problem:
        skip(str(problem))
    if not tap.case("the library and the suite for aarch64", tap.run("ninja", SUITE, cwd=tree)):
        tap.finish()
    os.chdir(tree)
    os.environ["OMP_NUM_THREADS"] = THREADS
    os.execvp(EMULATOR, [EMULATOR, "-L", "/usr/aarch64-linux-gnu", SUITE, "--backend", "openmp"])


main()
