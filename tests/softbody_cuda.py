#!/usr/bin/env python3
"""The soft body on the simulated driver: two small balls touch, a launch yields and is resumed, a buffer grows, and all
ends where it does on OpenMP, within the rounding that bench/tools/gpu.py allows on a real GPU, too. For a tree without
sanitizers; the simulated driver's own are loaded first if it has any."""
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

sys.path.insert(0, str(tap.ROOT / "bench/tools"))
from gpu import FREE_METRES  # noqa: E402

STEPS, RINGS = 40, 4


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


def environment(version):
    needs = subprocess.run(["ldd", "build/simgpu/libcuda.so.1"], stdout=subprocess.PIPE, text=True).stdout
    first = re.search(r"\S*/libasan\S*", needs)
    return {**os.environ, "LD_LIBRARY_PATH": "build/simgpu", "CUDA_HOME": "build/simgpu", "SIMGPU_VERSION": version,
            "LD_PRELOAD": first[0] if first else "", "ASAN_OPTIONS": "detect_leaks=0"}


def fall(folder, backend, env):
    """The numbers of its last line and where the vertices are, or what went wrong."""
    done = subprocess.run(["build/softbody", folder / "balls.obj", "--backend", backend, "--steps", str(STEPS),
                           "--pairs", "1", "--quiet", "--out", folder / backend], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=tap.HANGS)
    if done.returncode != 0:
        return None, None, f"{backend}: exit code {done.returncode}\n{done.stdout}"
    last = done.stdout.splitlines()[-1].split()
    text = (folder / backend / "final.obj").read_text()
    return dict(zip(last[0::2], map(float, last[1::2]))), \
        [float(word) for line in text.splitlines() if line.startswith("v ") for word in line.split()[1:4]], None


def compare(folder, version):
    ours, here, wrong = fall(folder, "cuda", environment(version))
    theirs, there, other = fall(folder, "openmp", None)
    if wrong or other:
        return wrong or other
    counted = ["newton", "yields", "resumes", "growths"]
    if [ours[name] for name in counted] != [theirs[name] for name in counted] or not all(ours[n] for n in counted):
        return f"other counts, or none: {ours}, {theirs}"
    apart = max(abs(a - b) for a, b in zip(here, there))
    return None if len(here) == len(there) and apart <= FREE_METRES else f"{apart} m apart"


with tempfile.TemporaryDirectory() as name:
    (Path(name) / "balls.obj").write_text(balls())
    for asked in sys.argv[1:] or ["13.0"]:  # with 12.3 gated by the host
        tap.case(f"as on OpenMP, simulated CUDA {asked}", compare(Path(name), asked))
tap.finish()
