#!/usr/bin/env python3
"""Gives composed kernels to every device compiler that is here: NVRTC, nvcc, hipcc, glslc, glslangValidator, spirv-val.

The kernels are those of language.h, a row of the common language each, and the soft body's. Runs in a build tree;
prints TAP. A compiler that isn't here is skipped and says so."""
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

HEADERS = ["tests/kernels/language.h", "docs/examples/softbody/softbody.kernel.h"]

# What prints the text of a kernel for a target.
PROGRAM = """#include "gk_backend.h"
#include "@header@"
#include <stdio.h>
int main(int count, char **words) {
  static const gk_kernel *const kernels[] = {@kernels@};
  for (size_t k = 0; count == 3 && k < GK_COUNT(kernels); ++k)
    if (strcmp(kernels[k]->name, words[2]) == 0) {
      char *text = gk_compose(kernels[k], words[1]);
      if (text) fputs(text, stdout);
      else fprintf(stderr, "%s\\n", gk_error());
      gk_free_text(text);
      return text ? 0 : 1;
    }
  return 2;
}
"""

# The struct that every entry takes is declared twice: for device compilers, which get no header, and for gk's own host.
TASKS = """#define __CUDACC__
#define __device__
#define __global__
#define __forceinline__
#define __restrict__ __restrict
#include "gk_kernel.h"
#include "gates.h"
#include <stddef.h>
#define SAME(field) \\
  static_assert(offsetof(gki_task, field) == offsetof(gki_cuda_task, field) && \\
                sizeof(gki_task::field) == sizeof(gki_cuda_task::field), #field)
SAME(slots); SAME(word); SAME(number); SAME(items); SAME(read); SAME(offset); SAME(args); SAME(to_offset);
SAME(from_offset); SAME(element); SAME(pattern); SAME(reserved);
static_assert(sizeof(gki_task) == sizeof(gki_cuda_task), "size");
"""


class Kernels:
    """A header of kernels, and a program that composes them."""

    def __init__(self, header, folder):
        self.path = tap.ROOT / header
        self.name = self.path.stem.split(".")[0]
        self.kernels = re.findall(r"^GK_KERNEL(?:_[23]D)?\((\w+),", self.path.read_text(), re.M)
        source, self.program = folder / "compose.c", folder / "compose"
        source.write_text(PROGRAM.replace("@header@", str(self.path)).replace(
            "@kernels@", ", ".join(f"&{kernel}" for kernel in self.kernels)))
        self.problem = tap.run(*tap.config("cc"), "-std=c11", "-D_GNU_SOURCE", f"-I{tap.ROOT}/include", source,
                               "build/libgk.a", *tap.config("openmp_libs"), "-lpthread", "-ldl", "-lm", "-o",
                               self.program)

    def compose(self, target, kernel):
        """The text and None, or None and what is wrong."""
        done = subprocess.run([self.program, target, kernel], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return (done.stdout, None) if done.returncode == 0 else (None, done.stderr or f"exit code {done.returncode}")


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
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None):
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


def missing_entries(ptx, kernels):
    absent = [kernel for kernel in kernels if not re.search(rf"\.entry {kernel}\(", ptx)]
    return f"no entry for {', '.join(absent)}" if absent else None


def check_nvrtc(kernels, folder):
    """All at once; and an error is said to be where the user wrote it."""
    nvrtc = load_nvrtc()
    if not nvrtc:
        return tap.skip(f"{kernels.name}: NVRTC", "there is no libnvrtc in /usr/local/cuda or $CUDA_HOME")
    text, problem = kernels.compose("cuda", kernels.kernels[0])
    if text:
        ptx, problem = nvrtc_compile(nvrtc, text)
        problem = problem or missing_entries(ptx, kernels.kernels)
    if not tap.case(f"{kernels.name}: NVRTC", problem):
        return None
    lines = kernels.path.read_text().splitlines()
    number, line = next((k + 1, line) for k, line in enumerate(lines) if re.match(r"  return .*;$", line))
    ptx, log = nvrtc_compile(nvrtc, text.replace(line + "\n", "  return undefined_name;\n", 1))
    wanted = f"{kernels.path}({number}): error"
    return tap.case(f"{kernels.name}: NVRTC names file and line", None if wanted in (log or "") else
                    f"wanted {wanted} in:\n{log}")


def check_nvcc(kernels, folder):
    nvcc = tool("nvcc", "/usr/local/cuda")
    if not nvcc:
        return tap.skip(f"{kernels.name}: nvcc", "there is no nvcc in PATH or /usr/local/cuda")
    source, target = folder / "kernels.cu", folder / "kernels.ptx"
    text, problem = kernels.compose("cuda", kernels.kernels[0])
    source.write_text(text or "")
    problem = problem or tap.run(nvcc, "-arch=compute_75", "--ptx", "-o", target, source)
    return tap.case(f"{kernels.name}: nvcc", problem or missing_entries(target.read_text(), kernels.kernels))


def check_hipcc(kernels, folder):
    hipcc = tool("hipcc", "/opt/rocm")
    if not hipcc:
        return tap.skip(f"{kernels.name}: hipcc", "there is no hipcc in PATH or /opt/rocm")
    source = folder / "kernels.hip.cpp"
    text, problem = kernels.compose("hip", kernels.kernels[0])
    source.write_text(text or "")
    return tap.case(f"{kernels.name}: hipcc", problem or tap.run(
        hipcc, "--genco", "--offload-arch=gfx90a", "-x", "hip", "-o", folder / "kernels.co", source))


def check_glsl(kernels, folder):
    glslc, glslang, validator = tool("glslc"), tool("glslangValidator"), tool("spirv-val")
    if not glslc and not glslang:
        return tap.skip(f"{kernels.name}: GLSL", "there is neither glslc nor glslangValidator in PATH")
    if not validator:
        tap.skip(f"{kernels.name}: valid SPIR-V", "there is no spirv-val in PATH")
    for kernel in kernels.kernels:
        source, target = folder / f"{kernel}.comp", folder / f"{kernel}.spv"
        text, problem = kernels.compose("glsl", kernel)
        source.write_text(text or "")
        if glslc:
            problem = problem or tap.run(glslc, "-Werror", "--target-env=vulkan1.2", "-o", target, source)
        if glslang:
            problem = problem or tap.run(glslang, "--target-env", "vulkan1.2", "-o", target, source)
        if validator:
            problem = problem or tap.run(validator, "--target-env", "vulkan1.2", "--scalar-block-layout", target)
        tap.case(f"{kernels.name}: GLSL: {kernel}", problem)
    return None


def check_tasks():
    compiler = tool("g++") or tool("clang++")
    if not compiler:
        return tap.skip("one task for host and device", "there is neither g++ nor clang++ in PATH")
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "tasks.cpp"
        source.write_text(TASKS)
        return tap.case("one task for host and device", tap.run(
            compiler, "-fsyntax-only", f"-I{tap.ROOT}/include", f"-I{tap.ROOT}/cuda", source))


def main():
    check_tasks()
    for header in HEADERS:
        with tempfile.TemporaryDirectory() as name:
            kernels = Kernels(header, Path(name))
            if tap.case(f"{kernels.name}: a program to compose it", kernels.problem or (
                    None if kernels.kernels else "no kernels were found")):
                for check in (check_glsl, check_nvrtc, check_nvcc, check_hipcc):
                    check(kernels, Path(name))
    tap.finish()


if __name__ == "__main__":
    main()
