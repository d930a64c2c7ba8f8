#!/usr/bin/env python3
"""Runs kernels composed for GLSL on a Vulkan device, and holds them against their host functions, by vulkan_run.c.

Each is compiled by glslc and by glslangValidator, as far as they are here. Mesa's lavapipe, a device of the CPU, goes
before what else there may be, unless VK_ICD_FILENAMES or VK_DRIVER_FILES say otherwise. Runs in a build tree; prints
TAP."""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap
import compilers

NO_DEVICE = 77
COMPILERS = {"glslc": ["-Werror", "--target-env=vulkan1.2"], "glslangValidator": ["--target-env", "vulkan1.2"]}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"]


def build(program):
    return tap.run(*tap.config("cc"), "-std=c11", "-D_GNU_SOURCE", *WARNINGS, *tap.config("werror"),
                   f"-I{tap.ROOT}/include", f"-I{tap.ROOT}/common", tap.ROOT / "tests/kernels/vulkan_run.c",
                   "build/libgk.a", *tap.config("openmp_libs"), "-lvulkan", "-lpthread", "-ldl", "-lm", "-o", program)


def environment():
    found = [str(path) for folder in ("/usr/share", "/etc") for path in Path(folder, "vulkan/icd.d").glob("lvp_icd.*")]
    chosen = {"VK_ICD_FILENAMES": ":".join(found), "VK_DRIVER_FILES": ":".join(found)} if found else {}
    return {**chosen, **os.environ, "MESA_SHADER_CACHE_DISABLE": "true"}  # leaves nothing in the user's home


def run_one(kernels, kernel, program, compiler, folder):
    """What is wrong, or None."""
    source, target = folder / f"{compiler}.{kernel}.comp", folder / f"{compiler}.{kernel}.spv"
    text, problem = kernels.compose("glsl", kernel)
    source.write_text(text or "")
    return problem or tap.run(compilers.tool(compiler), *COMPILERS[compiler], "-o", target, source) or \
        tap.run(program, kernel, target, env=environment())


def run_all(names, here, program, folder):
    kernels = compilers.Kernels("tests/kernels/language.h", folder)
    if not tap.case("a program to compose them", kernels.problem):
        return
    jobs = [(name, compiler) for compiler in here for name in names]
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        problems = pool.map(lambda job: run_one(kernels, job[0], program, job[1], folder), jobs)
        for (name, compiler), problem in zip(jobs, problems):
            tap.case(f"{name} by {compiler}", problem)


def main():
    what = "composed kernels on Vulkan"
    here = [compiler for compiler in COMPILERS if compilers.tool(compiler)]
    probe = ["-E", "-x", "c", "-include", "vulkan/vulkan.h", "/dev/null", "-o", "/dev/null"]
    missing = "neither glslc nor glslangValidator in PATH" if not here else \
        "no vulkan/vulkan.h" if tap.run(*tap.config("cc"), *probe) else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "vulkan_run"
        if missing:
            tap.skip(what, f"there is {missing}")
        elif tap.case("a program to run them", build(program)):
            done = subprocess.run([program], stdout=subprocess.PIPE, text=True, env=environment())
            problem = done.stdout or f"exit code {done.returncode}"
            if done.returncode == NO_DEVICE:
                tap.skip(what, problem.strip())
            elif tap.case("a device to run them on", problem if done.returncode else None):
                run_all(done.stdout.split(), here, program, folder)
    tap.finish()


main()
