#!/usr/bin/env python3
"""Each benchmark, with --quick: every arm runs once and is right, and the JSON has them all."""
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import tap


def wrong(report):
    """What is wrong in a program's JSON, or None."""
    arms = [(table["what"], arm) for table in report["tables"] for arm in table["arms"]]
    bad = [f"{what}: {arm['name']}" for what, arm in arms if arm["correct"] is not True]
    if bad or report["wrong"]:
        return "wrong results: " + "; ".join(bad)
    return None if len(arms) > 1 and report["quick"] else "there should be arms to compare, and it should be quick"


def run(program, folder):
    out = Path(folder) / "out.json"
    # Threads that wait by spinning take minutes where a machine has much else to do.
    patient = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    trouble = tap.run(Path(program).resolve(), "--quick", "--json", out, cwd=tap.ROOT, env=patient)
    return trouble or wrong(json.loads(out.read_text()))


def main():
    listed = subprocess.run(["ninja", "-t", "targets", "rule", "single"], capture_output=True, text=True).stdout
    programs = re.findall(r"^build/bench/\S+$", listed, re.M)
    tap.case("there are benchmarks", None if programs else "ninja knows no target build/bench/...")
    trouble = tap.run("ninja", *programs) if programs else None
    tap.case("they build", trouble)
    for program in [] if trouble else programs:
        with tempfile.TemporaryDirectory() as folder:
            tap.case(Path(program).name, run(program, folder))
    tap.finish()


main()
