#!/usr/bin/env python3
"""The images of cuda/gates.cu: those in cuda/image are what the compilers named there make of the sources as they are;
every compiler that is here takes gates.cu for every architecture that it knows. Prints TAP.

  tests/cuda/image.py --update    makes the images in cuda/image again: needs nvcc, and NVRTC 12.4 from PyPI"""
import hashlib
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import nvrtc
import toolkits
from toolkits import tap

sys.path.insert(0, str(tap.ROOT / "common"))
import embed_text

IMAGES = tap.ROOT / "cuda/image"
MADE = IMAGES / "made.txt"
GATES = tap.ROOT / "cuda/gates.cu"
TRANSFERS = [tap.ROOT / f"common/lower/{name}" for name in ("device.h", "task.h", "transfer.inc", "ahead.inc")]
WALK = tap.ROOT / "common/plan/walk.inc"
SOURCES = [GATES, *(tap.ROOT / f"cuda/gates{name}" for name in (".h", "_walk.inc", "_points.inc")), *TRANSFERS, WALK]
FATBIN = "build/cuda/gates.fatbin"
PTX_TARGET = "compute_60"  # the lowest that NVRTC 12.4 compiles for without a warning: later GPUs take it, too
PTX_VERSION = "8.4"        # what drivers for CUDA 12.4 know
OUTSIDE = "cudaGraphSetConditional"  # what the driver puts in


# ---- compilers ------------------------------------------------------------------------------------------------------

def compile_gates(loaded, architecture, what):
    """`what` is PTX or CUBIN: its bytes and None, or None and the problem; a warning is one."""
    headers = [(str(path.relative_to(path.parents[1])).removeprefix("cuda/").encode(), path.read_bytes())
               for path in SOURCES[1:]]
    made, problem = loaded.compile(GATES.read_bytes(), architecture, [what], "gates.cu", headers)
    return made.get(what), problem


def compile_transfers(loaded, architecture):
    """PTX of COPY, FILL and the walk alone: of one text, as the build embeds it and cuda/kernels.c has it compiled."""
    text = b"".join(path.read_bytes() for path in TRANSFERS)
    text = embed_text.bare(text.replace(b'#include "plan/walk.inc"\n', WALK.read_bytes()))
    made, problem = loaded.compile(text, architecture, ["PTX"], "transfer.inc")
    return made.get("PTX"), problem


def nvcc_version():
    """13.0.88, or None where the build doesn't compile gates.cu."""
    if tap.config("gates_fatbin") != [FATBIN]:
        return None
    done = subprocess.run([*tap.config("nvcc"), "--version"], stdout=subprocess.PIPE, text=True)
    return re.search(r"V([\d.]+)", done.stdout)[1]


def build_fatbin():
    """None, or what is wrong."""
    return tap.run("ninja", FATBIN)


# ---- images ---------------------------------------------------------------------------------------------------------

def kernels():
    return re.findall(r"^GKI_ENTRY (\w+)\(", "".join(path.read_text() for path in SOURCES), re.M)


def sum_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def record(nvcc):
    paths = SOURCES + [IMAGES / "gates.fatbin", IMAGES / "gates.ptx"]
    lines = [f"{sum_of(path)}  {path.relative_to(tap.ROOT).as_posix()}" for path in paths]
    lines.insert(0, f"# nvcc {nvcc}, NVRTC {toolkits.OLDEST_WHOLE}; see tests/cuda/image.py")
    MADE.write_text("\n".join(lines) + "\n")


def recorded_nvcc():
    return re.match(r"# nvcc ([\d.]+),", MADE.read_text())[1]


def code_in(fatbin):
    """[75, 80 ...]: the architectures for which there is machine code, and those for which there is PTX. The header of
    the file, and of each part, says how long it is."""
    magic, _, header, size = struct.unpack_from("<IHHQ", fatbin)
    if magic != 0xba55ed50 or header + size != len(fatbin):
        raise ValueError("no fatbin")
    found, at = {1: [], 2: []}, header
    while at < len(fatbin):
        kind, _, header, size = struct.unpack_from("<HHIQ", fatbin, at)
        found[kind].append(struct.unpack_from("<I", fatbin, at + 28)[0])
        at += header + size
    return sorted(found[2]), sorted(found[1])


def judge_fatbin(path):
    wanted = [int(number) for number in re.findall(r"code=sm_(\d+)", (tap.ROOT / "build.ninja").read_text())]
    code, ptx = code_in(path.read_bytes())
    return None if code == sorted(wanted) and not ptx else f"wanted code for {wanted}, found {code}, and PTX for {ptx}"


def judge_ptx(text):
    version, target = re.search(r"^\.version (\S+)$", text, re.M)[1], re.search(r"^\.target (\w+)", text, re.M)[1]
    wanted = (PTX_VERSION, PTX_TARGET.replace("compute", "sm"))
    if (version, target) != wanted:
        return f"wanted {wanted}, found {(version, target)}"
    entries = re.findall(r"^\.visible \.entry (\w+)\(", text, re.M)
    outside = re.findall(r"^\.extern .*?(\w+)$", text, re.M)
    if sorted(entries) != sorted(kernels()) or outside != [OUTSIDE]:
        return f"entries {entries}, from outside {outside}"
    return None


def judge_code(cubin):
    absent = [name for name in [*kernels(), OUTSIDE] if name.encode() not in cubin]
    return f"there is no {', '.join(absent)}" if absent else None


# ---- cases ----------------------------------------------------------------------------------------------------------

def check_images():
    stale = [name for wanted, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", MADE.read_text(), re.M)
             if sum_of(tap.ROOT / name) != wanted]
    tap.case("the images are made of these sources", stale and
             f"{', '.join(stale)}: changed since; tests/cuda/image.py --update, and commit cuda/image")
    tap.case("the checked-in fatbin: architectures", judge_fatbin(IMAGES / "gates.fatbin"))
    tap.case("the checked-in PTX: version, target, kernels", judge_ptx((IMAGES / "gates.ptx").read_text()))


def check_nvcc():
    name, version = "nvcc makes the same fatbin", nvcc_version()
    if not version:
        return tap.skip(name, "there is no nvcc that knows all architectures")
    problem = build_fatbin()
    if not tap.case("nvcc: every architecture", problem or judge_fatbin(Path(FATBIN))):
        return None
    if version != recorded_nvcc():
        return tap.skip(name, f"this is nvcc {version}; it was made by {recorded_nvcc()}")
    same = Path(FATBIN).read_bytes() == (IMAGES / "gates.fatbin").read_bytes()
    return tap.case(name, None if same else "it makes another one: tests/cuda/image.py --update")


def check_old_nvrtc():
    name = f"NVRTC {toolkits.OLDEST_WHOLE} makes the same PTX"
    try:
        image, problem = compile_gates(nvrtc.oldest(), PTX_TARGET, "PTX")
    except toolkits.Missing as missing:
        return tap.skip(name, missing)
    same = image == (IMAGES / "gates.ptx").read_bytes()
    return tap.case(name, problem or (None if same else "it makes another one: tests/cuda/image.py --update"))


def check_installed_nvrtc():
    try:
        found = nvrtc.installed()
    except toolkits.Missing as missing:
        return tap.skip("NVRTC: every architecture", missing)
    numbers = found.architectures()
    for number in numbers:
        cubin, problem = compile_gates(found, f"sm_{number}", "CUBIN")
        tap.case(f"NVRTC {found.version}: cubin for sm_{number}", problem or judge_code(cubin))
    for number in (numbers[0], numbers[-1]):
        ptx, problem = compile_gates(found, f"compute_{number}", "PTX")
        tap.case(f"NVRTC {found.version}: PTX for compute_{number}", problem or judge_code(ptx))
    return None


def judge_transfers(ptx):
    entries = re.findall(r"\.entry (\w+)", ptx.decode())
    if sorted(entries) != ["gki_ahead", "gki_copy", "gki_fill"]:
        return f"wanted gki_ahead, gki_copy and gki_fill, found {entries}"
    return f"it asks for {OUTSIDE}" if OUTSIDE.encode() in ptx else None


def check_transfers():
    """For drivers that know nothing of conditional nodes, by compilers that are as old."""
    for find in (nvrtc.oldest, nvrtc.installed):
        try:
            found = find()
        except toolkits.Missing as missing:
            tap.skip("COPY and FILL alone", missing)
            continue
        lowest = int(PTX_TARGET.split("_")[1])  # below, the oldest warns
        numbers = [number for number in found.architectures() if number >= lowest]
        for number in (numbers[0], numbers[-1]):
            ptx, problem = compile_transfers(found, f"compute_{number}")
            tap.case(f"COPY and FILL alone, NVRTC {found.version}, compute_{number}", problem or judge_transfers(ptx))


def check_ptxas():
    """What a driver's compiler would say of the PTX."""
    nvcc = tap.config("nvcc")
    ptxas = Path(nvcc[0]).parent / "ptxas" if nvcc else None
    if not ptxas or not ptxas.exists():
        return tap.skip("the checked-in PTX, assembled", "there is no ptxas")
    embedded = Path("build/cuda/gates_embedded.ptx")
    embedded.write_bytes(embed_text.bare((IMAGES / "gates.ptx").read_bytes()))
    for number in re.findall(r"code=sm_(\d+)", (tap.ROOT / "build.ninja").read_text()):
        tap.case(f"the checked-in PTX, assembled for sm_{number}",
                 tap.run(ptxas, f"-arch=sm_{number}", embedded, "-o", "build/cuda/gates.cubin"))
    return None


def update():
    version = nvcc_version()
    problem = build_fatbin() if version else "there is no nvcc that knows all architectures"
    ptx, trouble = (None, problem) if problem else compile_gates(nvrtc.oldest(), PTX_TARGET, "PTX")
    if problem or trouble:
        sys.exit(f"image.py: {problem or trouble}")
    (IMAGES / "gates.fatbin").write_bytes(Path(FATBIN).read_bytes())
    (IMAGES / "gates.ptx").write_bytes(ptx)
    record(version)


def main():
    if sys.argv[1:] == ["--update"]:
        return update()
    os.makedirs("build/cuda", exist_ok=True)
    for check in (check_images, check_nvcc, check_old_nvrtc, check_ptxas, check_installed_nvrtc, check_transfers):
        check()
    return tap.finish()


if __name__ == "__main__":
    main()
