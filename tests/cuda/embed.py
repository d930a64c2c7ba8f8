#!/usr/bin/env python3
"""gk-embed: what a real NVRTC makes of its texts, and the example in docs/examples/embedded, built by its own
build.ninja, which runs on the simulated driver without any NVRTC. What the tool refuses,
tests/unit/cuda/gk_embed_test.c has."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap

EXAMPLE = Path("docs/examples/embedded")
FILES = [EXAMPLE / "kernels.h", EXAMPLE / "shared.h"]
TOOL = Path(tap.checked("gk-embed"))
SIMULATED = dict(os.environ, LD_LIBRARY_PATH="build/simgpu", CUDA_HOME="build/simgpu", GK_CACHE="off")
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-Iinclude"]


def ask(*words, env=SIMULATED):
    done = subprocess.run([TOOL, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    return done.returncode, done.stdout, done.stderr


def judge(title, words, code, *said, env=SIMULATED):
    found, out, err = ask(*words, env=env)
    problem = [f"{word} isn't said" for word in said if word not in err]
    if found != code or (code and out):
        problem.append(f"exit code {found}, not {code}; it wrote {len(out)} characters")
    tap.case(title, "\n".join([*problem, err]) if problem else None)


def by_real_compiler(folder):
    """Machine code for every usual architecture, and PTX; the C compiles without a warning."""
    env = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "CUDA_HOME")}
    title = "a real NVRTC compiles for sm_75 to sm_120"
    out = folder / "images.c"
    code, _, err = ask("--name", "images", "--out", out, *FILES, env=env)
    if code and "there is no NVRTC" in err:
        tap.skip(title, "no NVRTC is installed")
        return
    text = out.read_text() if out.exists() else ""
    wanted = [f"{target}, GK_IMAGE_CODE, " for target in (75, 80, 86, 89, 90)] + ["75, GK_IMAGE_PTX, "]
    newer = [f"{target}, GK_IMAGE_CODE, " for target in (100, 120)]
    missing = [row for row in wanted if row not in text]
    missing += [row for row in newer if row not in text and "left out: NVRTC 12" not in err]
    elves = text.count("  127,69,76,70,")
    tap.case(title, err if code else f"no {missing}" if missing else
             None if elves == text.count("GK_IMAGE_CODE") else f"{elves} images are ELF")
    tap.case("which compiles as C", tap.run(*tap.config("cc"), *STRICT, "-c", out, "-o", folder / "images.o"))
    wrong = folder / "wrong.h"
    wrong.write_text(FILES[0].read_text().replace("limited(", "boundless("))
    judge("an error is where it was written", ["--name", "images", wrong, FILES[1]], 1,
          f"gk-embed: {wrong} doesn't compile (NVRTC", f"{wrong}(8): error: ", env=dict(env, GK_CACHE="off"))


def as_in_the_docs(folder):
    """The example by its own build.ninja, with words of the installed gk in its path."""
    bin_folder, build = folder / "bin", folder / "example"
    bin_folder.mkdir()
    shutil.copytree(EXAMPLE, build)
    root = Path(".").absolute()
    (bin_folder / "gk-embed").symlink_to(TOOL.absolute())
    flags = " ".join([f"-I{root}/include {root}/{tap.checked('libgk.a')}", *tap.config("openmp_libs"),
                      "-lpthread -ldl"])
    cc = " ".join(tap.config("cc") + tap.config("checked"))  # as the simulated driver is built
    for name, text in (("pkg-config", f"echo '{flags}'"), ("cc", f'exec {cc} "$@"')):
        (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_folder / name).chmod(0o755)
    simulated = {"LD_LIBRARY_PATH": f"{root}/build/simgpu", "CUDA_HOME": f"{root}/build/simgpu", "GK_CACHE": "off"}
    env = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}", **simulated)
    if not tap.case("the example builds", tap.run("ninja", "-C", build, env=env)):
        return
    for version, arch in (("13.0", "90"), ("12.4", "90"), ("13.0", "89")):
        env = dict(os.environ, **simulated, SIMGPU_NVRTC="none", SIMGPU_VERSION=version, SIMGPU_ARCH=arch,
                   GK_BACKEND="cuda")
        done = subprocess.run([build / "rise"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        runs = done.returncode == 0 and done.stdout == "cuda: 0.75\n"
        if version == "12.4":  # NVRTC 13.0 made it: the message says which one to take
            tap.case("an older driver refuses what a newer NVRTC made", None if not runs and
                     "there is no NVRTC" in done.stdout else done.stdout)
        else:
            tap.case(f"and runs without NVRTC on sm_{arch}", None if runs else done.stdout)
    env = dict(os.environ, GK_BACKEND="openmp")
    tap.case("and on OpenMP", tap.run("sh", "-c", f"'{build}/rise' | grep -qx 'openmp: 0.75'", env=env))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        by_real_compiler(folder)
        as_in_the_docs(folder)
    tap.finish()


main()
