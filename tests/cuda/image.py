#!/usr/bin/env python3
"""The images of cuda/gates.cu: those in cuda/image are what the compilers named there make of the sources as they are;
every compiler that is here takes gates.cu for every architecture that it knows. Prints TAP.

  tests/cuda/image.py --update    makes the images in cuda/image again: needs nvcc, and NVRTC 12.4 from PyPI"""
import ctypes
import hashlib
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import toolkits
from toolkits import tap

IMAGES = tap.ROOT / "cuda/image"
MADE = IMAGES / "made.txt"
SOURCES = [tap.ROOT / "cuda/gates.cu", tap.ROOT / "cuda/gates.h"]
FATBIN = "build/cuda/gates.fatbin"
PTX_TARGET = "compute_60"  # the lowest that NVRTC 12.4 compiles for without a warning: later GPUs take it, too
PTX_VERSION = "8.4"        # what drivers for CUDA 12.4 know
OUTSIDE = "cudaGraphSetConditional"  # what the driver puts in


# ---- compilers ------------------------------------------------------------------------------------------------------

class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def architectures(self):
        count = ctypes.c_int()
        self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.library.nvrtcGetSupportedArchs(numbers)
        return list(numbers)

    def compile(self, architecture, what, moves=False):
        """`what` is PTX or CUBIN: its bytes and None, or None and the problem; a warning is one. moves: COPY and FILL
        alone, as one text, as cuda/kernels.c has it compiled."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        source, header = (path.read_bytes() for path in SOURCES)
        if moves:
            source = b"#define GKI_ONLY_MOVES\n" + header + source
        self.library.nvrtcCreateProgram(ctypes.byref(program), source, b"gates.cu", 0 if moves else 1,
                                        (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(b"gates.h"))
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        result = self.library.nvrtcCompileProgram(program, 1, options)

        def fetch(name):
            getattr(self.library, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
            buffer = ctypes.create_string_buffer(size.value + 1)
            getattr(self.library, f"nvrtcGet{name}")(program, buffer)
            return buffer.raw[:size.value]

        log = fetch("ProgramLog").rstrip(b"\0\n").decode(errors="replace")
        image = None if result else fetch(what).rstrip(b"\0") if what == "PTX" else fetch(what)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return image, log or (f"nvrtcCompileProgram answers {result}" if result else None)


def nvrtc_for_ptx():
    folder = toolkits.wheel("nvidia-cuda-nvrtc-cu12", toolkits.OLDEST_WHOLE) / "lib"
    for name in ("libnvrtc-builtins.so.12.4", "libnvrtc.so.12"):  # else it looks for the first where the linker does
        ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
    return Nvrtc(folder / "libnvrtc.so.12")


def installed_nvrtc():
    for path in sorted(toolkits.installed().glob("lib64/libnvrtc.so.*")):
        return Nvrtc(path)
    raise toolkits.Missing("the toolkit has no libnvrtc")


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
    return re.findall(r"^GKI_ENTRY (\w+)\(", SOURCES[0].read_text(), re.M)


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
        image, problem = nvrtc_for_ptx().compile(PTX_TARGET, "PTX")
    except (toolkits.Missing, OSError) as missing:
        return tap.skip(name, missing)
    same = image == (IMAGES / "gates.ptx").read_bytes()
    return tap.case(name, problem or (None if same else "it makes another one: tests/cuda/image.py --update"))


def check_installed_nvrtc():
    try:
        nvrtc = installed_nvrtc()
    except (toolkits.Missing, OSError) as missing:
        return tap.skip("NVRTC: every architecture", missing)
    for number in nvrtc.architectures():
        ptx, problem = nvrtc.compile(f"compute_{number}", "PTX")
        tap.case(f"NVRTC {nvrtc.version}: PTX for compute_{number}", problem or judge_code(ptx))
        cubin, problem = nvrtc.compile(f"sm_{number}", "CUBIN")
        tap.case(f"NVRTC {nvrtc.version}: cubin for sm_{number}", problem or judge_code(cubin))
    return None


def judge_moves(ptx):
    entries = re.findall(r"\.entry (\w+)", ptx.decode())
    if sorted(entries) != ["gki_copy", "gki_fill"]:
        return f"wanted gki_copy and gki_fill, found {entries}"
    return f"it asks for {OUTSIDE}" if OUTSIDE.encode() in ptx else None


def check_moves():
    """For drivers that know nothing of conditional nodes, by compilers that are as old."""
    for find in (nvrtc_for_ptx, installed_nvrtc):
        try:
            nvrtc = find()
        except (toolkits.Missing, OSError) as missing:
            tap.skip("COPY and FILL alone", missing)
            continue
        for number in nvrtc.architectures():
            if find is nvrtc_for_ptx and number < int(PTX_TARGET.split("_")[1]):  # for which it warns
                continue
            ptx, problem = nvrtc.compile(f"compute_{number}", "PTX", moves=True)
            tap.case(f"COPY and FILL alone, NVRTC {nvrtc.version}, compute_{number}", problem or judge_moves(ptx))


def check_ptxas():
    """What a driver's compiler would say of the PTX."""
    nvcc = tap.config("nvcc")
    ptxas = Path(nvcc[0]).parent / "ptxas" if nvcc else None
    if not ptxas or not ptxas.exists():
        return tap.skip("the checked-in PTX, assembled", "there is no ptxas")
    for number in re.findall(r"code=sm_(\d+)", (tap.ROOT / "build.ninja").read_text()):
        tap.case(f"the checked-in PTX, assembled for sm_{number}",
                 tap.run(ptxas, f"-arch=sm_{number}", IMAGES / "gates.ptx", "-o", "build/cuda/gates.cubin"))
    return None


def update():
    version = nvcc_version()
    problem = build_fatbin() if version else "there is no nvcc that knows all architectures"
    ptx, trouble = (None, problem) if problem else nvrtc_for_ptx().compile(PTX_TARGET, "PTX")
    if problem or trouble:
        sys.exit(f"image.py: {problem or trouble}")
    (IMAGES / "gates.fatbin").write_bytes(Path(FATBIN).read_bytes())
    (IMAGES / "gates.ptx").write_bytes(ptx)
    record(version)


def main():
    if sys.argv[1:] == ["--update"]:
        return update()
    os.makedirs("build/cuda", exist_ok=True)
    for check in (check_images, check_nvcc, check_old_nvrtc, check_ptxas, check_installed_nvrtc, check_moves):
        check()
    return tap.finish()


if __name__ == "__main__":
    main()
