#!/usr/bin/env python3
"""Programs in docs/examples/ that use CUDA: each is compiled, with the sanitizers that the simulated driver has, and
run on that driver as it was in several versions; where there is a GPU, there, too. Prints TAP."""
import os
import tempfile
from pathlib import Path

import tap

# The program, and what it prints.
EXAMPLES = {
    "shared_stream": ["7 passes, the last number is 7", "4 passes, the last number is 62"],
    "look_inside": ["9 to the power of 4 is 6561"],
    "tuned": ["20 x 12: ", "nodes were updated", "no node was updated", "33 x 17: "],
    "loop_by_hand": ["27: 111 steps", "1: 0 steps", "97: 118 steps", "6171: 261 steps"],
    "list_inside": ["launch 1: root 4.0 after", "launch 2: root 100.0 after", "launch 3: root 316.2", "TOO_LARGE"],
}
VERSIONS = ("11.4", "12.4", "13.0")
NATIVE = {"loop_by_hand", "list_inside"}  # need conditional nodes
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-Iinclude",
         "-D_GNU_SOURCE", "-Itests/user_cuda", "-Itests", "-I."]  # a cuda.h where no toolkit is


def environment(version):
    folder = str(Path("build/simgpu").absolute())
    return dict(os.environ, LD_LIBRARY_PATH=folder, CUDA_HOME=folder, SIMGPU_VERSION=version, GK_CACHE="off")


def run(program, words, env):
    said = Path(program.parent / "said")
    problem = tap.run("sh", "-c", f"'{program}' > '{said}' && cat '{said}'", timeout=120, env=env)
    missing = [word for word in words if word not in (said.read_text() if said.exists() else "")]
    return problem or (f"it doesn't say: {missing}\n{said.read_text()}" if missing else None)


def main():
    libs = [*tap.config("checked"), "build/checked/libgk.a", *tap.config("openmp_libs"), "-lpthread", "-ldl", "-lm"]
    with tempfile.TemporaryDirectory() as folder:
        for name, words in EXAMPLES.items():
            program = Path(folder) / name
            source = tap.ROOT / "docs" / "examples" / f"{name}.c"
            if not tap.case(f"{name} is compiled", tap.run(*tap.config("cc"), *FLAGS, source, *libs, "-o", program)):
                continue
            for version in VERSIONS[1:] if name in NATIVE else VERSIONS:
                tap.case(f"{name} on simulated CUDA {version}", run(program, words, environment(version)))
            if Path("/dev/nvidiactl").exists():
                tap.case(f"{name} on the GPU", run(program, words, dict(os.environ)))
    tap.finish()


main()
