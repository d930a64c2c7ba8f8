#!/usr/bin/env python3
"""The program that prints what a driver answers to the probe: on the simulated one, as it is, and where a graph never
ends, which mustn't keep it. For a tree without sanitizers, as the program has none."""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

SECONDS = tap.HANGS


def ask(*words, **variables):
    """Its exit code, and the lines."""
    env = {**os.environ, "LD_LIBRARY_PATH": "build/simgpu", "CUDA_HOME": "build/simgpu", **variables}
    try:
        done = subprocess.run(["build/tests/cuda/probe", *(words or ["2"])], env=env, stdout=subprocess.PIPE,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} seconds", []
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def answers():
    code, lines = ask()
    found = {line["answer"] for line in lines if "probe" in line}
    return None if (code, found) == (0, {"yes"}) and lines[0]["conditional"] else (code, lines)


def busy():
    """With copies on a stream beside."""
    code, lines = ask("3", "busy")
    found = {line["answer"] for line in lines if "probe" in line}
    return None if (code, found) == (0, {"yes"}) and lines[0]["copies"] > 0 else (code, lines)


def several():
    """A device that is lost doesn't keep the others from being asked."""
    code, lines = ask(SIMGPU_NO="ends", SIMGPU_DEVICES="2")
    devices = [line for line in lines if "hangs" in line]
    right = len(devices) == 2 and all(
        line["hangs"] and not line["conditional"] and "didn't end within 3 s" in line["why"] for line in devices)
    return None if code == 1 and right else (code, lines)


def none():
    code, lines = ask(SIMGPU_DEVICES="0")
    return None if code == 2 and len(lines) == 1 and lines[0]["device"] is None and lines[0]["why"] else (code, lines)


tap.case("answers", answers())
tap.case("answers, with copies beside", busy())
tap.case("a graph that never ends", several())
tap.case("no device", none())
tap.finish()
