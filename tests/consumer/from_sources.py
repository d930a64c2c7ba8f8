#!/usr/bin/env python3
"""README's program in a CMake project that builds gk with itself: by FetchContent, which is told of sources on this
machine, and by add_subdirectory."""
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap
from installed import readme_program, runs, with_math

WORK = Path("build/from_sources").absolute()
OPTIONS = "--ready-gates --without-hip --without-vulkan"  # what the project asks for


def check(way, *told):
    """Both link in one build folder: gk's objects, at the same place in both, are compiled once."""
    folder = WORK / "build"
    for name in ("shared", "static"):
        (folder / name).unlink(missing_ok=True)
    problem = tap.run("cmake", "-S", WORK, "-B", folder, f"-DCMAKE_C_COMPILER={tap.config('cc')[0]}", *told) or \
        tap.run("cmake", "--build", folder)
    for name in ("shared", "static"):
        tap.case(f"{way}, {name}", problem or runs(folder / name, name == "shared"))
    arguments = " ".join(tap.config("arguments", folder / "_deps/gk-build/gk"))
    tap.case(f"{way}, options", None if all(word in arguments for word in OPTIONS.split()) else arguments)


def main():
    if not shutil.which("cmake"):
        tap.skip("gk in a CMake project", "cmake isn't installed")
        tap.finish()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    shutil.copy("tests/consumer/from_sources/CMakeLists.txt", WORK)
    (WORK / "program.c").write_text(with_math(readme_program()))
    before = Path("build/config.ninja").stat().st_mtime_ns
    check("FetchContent", f"-DFETCHCONTENT_SOURCE_DIR_GK={tap.ROOT}")
    check("add_subdirectory", f"-DSUBDIRECTORY={tap.ROOT}")
    tap.case("the build beside the sources is as it was",
             None if Path("build/config.ninja").stat().st_mtime_ns == before else "build/config.ninja has changed")
    tap.finish()


main()
