#!/usr/bin/env python3
"""The suite and random lists where a backend has no device, or where there is no such backend: that doesn't look like
success."""
import sys
import os
import subprocess

from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

SUITE = "build/tests/conformance/conformance"
LISTS = "build/tests/conformance/random_lists"
NONE = dict(os.environ, LD_LIBRARY_PATH="build/simgpu", CUDA_HOME="build/simgpu", SIMGPU_DEVICES="0",
            VK_ICD_FILENAMES="/nowhere", VK_DRIVER_FILES="/nowhere")


def judge(title, command, code, *words):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=NONE)
    problem = [f"{word} isn't said" for word in words if word not in done.stdout]
    if done.returncode != code:
        problem.append(f"exit code {done.returncode}, not {code}")
    tap.case(title, "\n".join([*problem, done.stdout]) if problem else None)


def main():
    reason = "no CUDA-capable device is detected"
    judge("the suite without a device", [SUITE, "--backend", "cuda"], 77, "ok 1 - cuda # SKIP", reason)
    judge("random lists without a device", [LISTS, "--backend", "cuda", "--random", "5"], 77, "# SKIP", reason)
    judge("on one with a device, on one without", [SUITE, "--backend", "openmp", "--backend", "cuda", "counter"], 77,
          "openmp: loops/counter\n", reason)
    judge("on all that there are", [SUITE, "counter"], 0, "openmp: loops/counter\n", reason)
    judge("a failure weighs more", [LISTS, "--backend", "cuda", "--backend", "nobody", "--random", "5"], 1, "# SKIP",
          "not ok 2", "no backend named")
    judge("the suite on a backend that isn't there", [SUITE, "--backend", "nobody"], 1, "not ok 1", "no backend named")
    tap.finish()


main()
