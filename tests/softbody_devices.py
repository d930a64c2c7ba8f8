#!/usr/bin/env python3
"""The soft body on the simulated CUDA driver, on a simulated HIP, or on Mesa's lavapipe: two small balls touch, a
launch yields and is resumed, a buffer grows, and all ends where it does on OpenMP, within the rounding that
bench/tools/gpu.py allows on a real GPU, too. For a tree without sanitizers; the simulated libraries' own are loaded
first if they have any.

  tests/softbody_devices.py [PLACE[:WAY]...]

PLACE: cuda13.0 or another version (the default), hip7.2 or another version, lavapipe, or whole: the demo's 240 steps on
lavapipe, by the limits that bench/tools/gpu.py has for them. WAY: host, for GK_HOST_GATED; on HIP graphs or stream; on
lavapipe condition, grid or guard, the gates."""
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import suites
import tap

sys.path.insert(0, str(tap.ROOT / "bench/tools"))
from gpu import FREE_METRES, check_whole  # noqa: E402

STEPS, RINGS = 40, 4
ASKED = re.compile(r"cuda\d+\.\d+(:host)?|hip\d\.\d(:(host|graphs|stream))?|whole|"
                   r"lavapipe(:(host|condition|grid|guard))?")


def balls():
    """As text: each of 26 vertices, one above the other."""
    lines, around = [], 2 * RINGS
    count = around * (RINGS - 1) + 2
    for x, y in ((0, 0), (0.15, 2.4)):
        first = len(lines) and count
        ring = [(math.pi * r / RINGS, math.pi * 2 * k / around) for r in range(1, RINGS) for k in range(around)]
        points = [(x, y - 1, 0)] + [(x + math.sin(a) * math.cos(b), y - math.cos(a), math.sin(a) * math.sin(b))
                                    for a, b in ring] + [(x, y + 1, 0)]
        lines += ["v %.9g %.9g %.9g" % point for point in points]
        for k in range(around):
            n, last = (k + 1) % around, count - 1
            faces = [(0, 1 + k, 1 + n), (last, last - around + n, last - around + k)]
            for a in range(1, 1 + around * (RINGS - 2), around):
                faces += [(a + k, a + around + k, a + around + n), (a + k, a + around + n, a + n)]
            lines += ["f " + " ".join(str(1 + first + corner) for corner in face) for face in faces]
    return "\n".join(lines) + "\n"


def environment(libraries, **more):
    needs = subprocess.run(["ldd", "build/simgpu/libcuda.so.1"], stdout=subprocess.PIPE, text=True).stdout
    first = re.search(r"\S*/libasan\S*", needs)
    return {**os.environ, "LD_LIBRARY_PATH": libraries, "CUDA_HOME": "build/simgpu",
            "LD_PRELOAD": first[0] if first else "", "ASAN_OPTIONS": "detect_leaks=0", **more}


def started(command, env=None):
    """The numbers of its last line and where the vertices are, or what went wrong. Its word behind --out: a folder."""
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return None, None, f"{command}: exit code {done.returncode}\n{done.stdout}"
    last = done.stdout.splitlines()[-1].split()
    text = Path(command[command.index("--out") + 1], "final.obj").read_text()
    return dict(zip(last[0::2], map(float, last[1::2]))), \
        [[float(word) for word in line.split()[1:4]] for line in text.splitlines() if line.startswith("v ")], None


def fall(folder, mesh, words, asked):
    """asked: as on the command line, or openmp."""
    place, _, way = asked.partition(":")
    command = ["build/softbody", str(mesh), *words, "--quiet", "--out", str(folder / asked),
               *(["--host-gated"] if way == "host" else [])]
    if place == "openmp":
        return started([*command, "--backend", "openmp"])
    if place == "lavapipe":
        return started(suites.on_lavapipe(*command, gate=way if way in ("grid", "guard") else "condition"))
    if place.startswith("hip"):
        graphs = {"graphs": "1", "stream": "0"}.get(way, "")
        return started([*command, "--backend", "hip"],
                       environment(f"build/simgpu/hip{place[3]}:build/simgpu", GK_HIP_GRAPHS=graphs))
    return started([*command, "--backend", "cuda"],
                   environment("build/simgpu", SIMGPU_VERSION=place.removeprefix("cuda")))


def check_balls(here, ours, there, theirs):
    counted = ["newton", "yields", "resumes", "growths"]
    if [ours[name] for name in counted] != [theirs[name] for name in counted] or not all(ours[n] for n in counted):
        return f"other counts, or none: {ours}, {theirs}"
    apart = max(abs(a - b) for p, q in zip(here, there) for a, b in zip(p, q))
    return None if len(here) == len(there) and apart <= FREE_METRES else f"{apart} m apart"


def check_demo(here, ours, there, theirs):
    problem, note = check_whole(here, ours, there, theirs)
    if not problem and not ours["yields"]:
        problem = "it didn't yield"
    return problem and f"{problem}; {note}\n{ours}\n{theirs}"


def compare(folder, mesh, words, asked, check):
    ours, here, wrong = fall(folder, mesh, words, asked)
    theirs, there, other = fall(folder, mesh, words, "openmp")
    return wrong or other or check(here, ours, there, theirs)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mesh, words = folder / "balls.obj", ["--steps", str(STEPS), "--pairs", "1"]
        mesh.write_text(balls())
        for asked in sys.argv[1:]:
            if not ASKED.fullmatch(asked):
                sys.exit(f"softbody_devices.py: {asked} is no PLACE[:WAY]\n{__doc__}")
        for asked in sys.argv[1:] or ["cuda13.0"]:  # with 12.3 gated by the host
            if asked.startswith(("lavapipe", "whole")) and "VK_ICD_FILENAMES=/nowhere" in suites.on_lavapipe():
                tap.skip(f"as on OpenMP, {asked}", "there is no lavapipe (mesa-vulkan-drivers)")
            elif asked == "whole":
                tap.case("the demo on lavapipe, its whole fall", compare(
                    folder, "docs/examples/softbody/spot.obj", [], "lavapipe", check_demo))
            else:
                tap.case(f"as on OpenMP, {asked}", compare(folder, mesh, words, asked, check_balls))
    tap.finish()


main()
