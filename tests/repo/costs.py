#!/usr/bin/env python3
"""common/base/costs.h is what bench/tools/costs.py makes of the results that are checked in, and other results change
it as they should."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

SCRIPT = tap.ROOT / "bench/tools/costs.py"


def costs(*words):
    return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)


def paired(what, pairs):
    """A table of two ways, by x."""
    return {"id": "P", "what": what, "variants": [{"name": f"{way}, {x}", "x": x, "median": pair[way]}
                                              for x, pair in pairs.items() for way in (0, 1)]}


def report(opened, closed, copies, waking, **more):
    few = {x: pair for x, pair in opened.items() if x <= 8}
    many = {x: pair for x, pair in opened.items() if x > 8}
    tables = [paired("an open gate, 1 to 8 kernels", few), paired("an open gate, 12 to 32 kernels", many),
              paired("a closed gate, 1 to 32 kernels", closed), paired("a small copy, 64 to 4096 bytes", copies),
              {"id": "P", "what": "a wait that sleeps", "variants": [{"name": "the waking alone", "median": waking}]}]
    return dict({"tables": tables, "device": {"gpu": "GPU", "driver": "CUDA 12.4, release 1"}, "commit": "abc",
                 "started": "2026-01-02T03:04:05Z"}, **more)


def numbers(folder, found):
    """What the header has, if these were the results."""
    for name, one in found.items():
        (Path(folder) / name).mkdir(exist_ok=True)
        (Path(folder) / name / "cuda_choices.json").write_text(json.dumps(one))
    out = Path(folder) / "costs.h"
    done = costs("--results", folder, "--out", out)
    text = out.read_text() if out.exists() else done.stderr
    return tuple(map(int, re.findall(r"^  GKI_COST_\w+ = (\d+),$", text, re.M))), text


def measured(folder):
    """From k kernels on the IF node is cheaper: at 12 where it is open, at 24 of one that yields; and so on."""
    opened = {k: (k * 100, 850 + k * 30) for k in (1, 2, 4, 8, 12, 16, 24, 32)}   # guards cost more from 12.1 on
    closed = {k: (k * 60, 800) for k in opened}                                   # from 13.3 on
    copies = {64: (10, 10), 256: (10, 10), 1024: (10.4, 10), 4096: (40, 10)}
    one = report(opened, closed, copies, 4321.5)
    found, text = numbers(folder, {"one": one})
    if found != (12, 1024, 4300):
        return f"of one device: {found}\n{text}"
    for part in ("one/cuda_choices.json", "GPU, CUDA 12.4, release 1", "commit abc, 2026-01-02"):
        if part not in re.sub(r"\s*\n\s*\*\s*", " ", text):
            return f"where it is from isn't said: {part}\n{text}"
    # A launch that yields meets both; one that runs through meets only the open ones.
    dear = {k: (k * 400, 800) for k in opened}
    found, _ = numbers(folder, {"two": report(opened, dear, copies, 9000)})
    if found != (2, 1024, 4300):
        return f"the least of two devices: {found}"
    wide = {k: (k * 100, 10 + k * 30) for k in opened}
    found, _ = numbers(folder, {"three": report(wide, {k: (0, 10000) for k in opened}, {64: (20, 10)}, -5)})
    return None if found == (0, 0, 0) else f"nothing is worth it: {found}"


def not_measured(folder):
    """Quick runs, runs without figures and tables that aren't whole say nothing."""
    opened = {1: (1, 2), 2: (2, 3)}
    incomplete = report(opened, {1: (1, 2)}, {}, 1)
    incomplete["tables"] = incomplete["tables"][:-2]
    found, text = numbers(folder, {"quick": report(opened, opened, {64: (1, 1)}, 1, quick=True),
                                   "none": {"missing": "no device", "tables": []}, "part": incomplete})
    return None if found == (8, 256, 20000) and text.count("Assumed") == 3 else f"assumed: {found}\n{text}"


def main():
    checked = costs("--check")
    tap.case("the header is what the results make of it", checked.stderr or None)
    with tempfile.TemporaryDirectory() as folder:
        tap.case("results change it", measured(folder))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("what isn't measured is assumed, and says so", not_measured(folder))
        other = Path(folder) / "other.h"
        other.write_text("/* older */\n")
        tap.case("another header is noticed", None if costs("--check", "--out", other).returncode == 1 else "it isn't")
    tap.finish()


main()
