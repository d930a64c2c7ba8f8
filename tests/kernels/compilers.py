#!/usr/bin/env python3
"""Gives the composed text of language.h to every device compiler that is here: NVRTC, nvcc, hipcc, glslc, spirv-val.

Runs where build/tests/kernels/compose lies; prints TAP. A compiler that isn't here is skipped and says so."""
import ctypes
import ctypes.util
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap

COMPOSE = "build/tests/kernels/compose"


def compose(*words):
    return subprocess.run([COMPOSE, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def tool(name, *folders):
    paths = [shutil.which(name)] + [shutil.which(f"{folder}/bin/{name}") for folder in folders]
    return next(filter(None, paths), None)


def load_nvrtc():
    homes = filter(None, [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"])
    paths = [path for home in homes for path in sorted(glob.glob(f"{home}/lib64/libnvrtc.so*"))]
    for path in filter(None, paths + [ctypes.util.find_library("nvrtc")]):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def nvrtc_compile(nvrtc, text):
    """PTX, and the log where there are errors or warnings."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"language.cu", 0, None, None):
        return "", "nvrtcCreateProgram failed"
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
    result = nvrtc.nvrtcCompileProgram(program, 1, options)

    def fetch(what):
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value + 1)
        getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.value.decode(errors="replace")

    log = fetch("ProgramLog").strip()
    ptx = "" if result else fetch("PTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx, (log or "failed without a log") if result or log else None


def missing_entries(ptx, names):
    absent = [name for name in names if not re.search(rf"\.entry {name}\(", ptx)]
    return f"no entry for {', '.join(absent)}" if absent else None


def check_cuda(folder, names):
    text = compose("cuda", names[0])
    source = folder / "language.cu"
    source.write_text(text)
    nvrtc = load_nvrtc()
    if nvrtc:
        ptx, error = nvrtc_compile(nvrtc, text)
        tap.case("NVRTC takes all kernels", error or missing_entries(ptx, names))
        ptx, log = nvrtc_compile(nvrtc, text.replace("y[i] = INSIDE;", "y[i] = OUTSIDE;"))
        line = 1 + next(k for k, line in enumerate(open("tests/kernels/language.h")) if "y[i] = INSIDE;" in line)
        place = f"language.h({line}): error"
        tap.case("NVRTC names file and line", None if place in (log or "") else f"wanted {place} in:\n{log}")
    else:
        tap.skip("NVRTC", "there is no libnvrtc in /usr/local/cuda or $CUDA_HOME")
    nvcc = tool("nvcc", "/usr/local/cuda")
    if nvcc:
        target = folder / "language.ptx"
        error = tap.run(nvcc, "-arch=compute_75", "--ptx", "-Werror", "all-warnings", "-o", target, source)
        tap.case("nvcc takes all kernels", error or missing_entries(target.read_text(), names))
    else:
        tap.skip("nvcc", "there is no nvcc in PATH or /usr/local/cuda")


def check_hip(folder, names):
    hipcc = tool("hipcc", "/opt/rocm")
    if not hipcc:
        return tap.skip("hipcc", "there is no hipcc in PATH or /opt/rocm")
    source = folder / "language.hip.cpp"
    source.write_text(compose("hip", names[0]))
    target = folder / "language.co"
    error = tap.run(hipcc, "--genco", "--offload-arch=gfx90a", "-x", "hip", "-o", target, source)
    tap.case("hipcc takes all kernels", error)


def check_glsl(folder, names):
    glslc, glslang, validator = tool("glslc"), tool("glslangValidator"), tool("spirv-val")
    if not glslc and not glslang:
        return tap.skip("GLSL", "there is neither glslc nor glslangValidator in PATH")
    for name in names:
        source, target = folder / f"{name}.comp", folder / f"{name}.spv"
        source.write_text(compose("glsl", name))
        error = None
        if glslc:
            error = tap.run(glslc, "-Werror", "--target-env=vulkan1.2", "-o", target, source)
        if glslang and not error:
            error = tap.run(glslang, "--target-env", "vulkan1.2", "-o", target, source)
        if validator and not error:
            error = tap.run(validator, "--target-env", "vulkan1.2", "--scalar-block-layout", target)
        tap.case(f"GLSL: {name}", error)
    if not validator:
        tap.skip("SPIR-V is valid", "there is no spirv-val in PATH")


def main():
    if not os.access(COMPOSE, os.X_OK):
        sys.exit(f"{COMPOSE} wasn't built")
    names = compose("list").split()
    with tempfile.TemporaryDirectory() as name:
        for check in (check_glsl, check_cuda, check_hip):
            check(Path(name), names)
    tap.finish()


if __name__ == "__main__":
    main()
