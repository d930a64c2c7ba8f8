#!/usr/bin/env python3
"""Gives composed kernels to every device compiler that is here: NVRTC, nvcc, hipcc, clang 19, glslc, glslangValidator,
spirv-val. hipcc also gets COPY and FILL, and all but clang get the walk over the points of a plan.

The kernels are those of language.h, a row of the common language each, of the examples, the conformance suite and the
particles. NVRTC and nvcc make code of the first for some architectures and of the others for one, NVRTC of 12.4 (from
PyPI) for those of them that it knows; clang makes code of each for one of AMD's architectures, by turns. With
GK_TEST_SCALE above 1 all make code for all architectures that they know. Runs in a build tree; prints TAP. A compiler
that isn't here is skipped and says so.

  tests/kernels/compilers.py [PART ...]    tasks, transfers, walk, functions, or a path in HEADERS"""
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("cuda", "hip")]
import hipclang
import nvrtc
import tap
import toolkits

# A header, and what it is compiled for: of the architectures that gk brings gates for the oldest, the last that knows
# 12.4, the newest. The soft body's kernels take long, and use nothing of an architecture's own.
HEADERS = {"tests/kernels/language.h": [75, 90, 120], "docs/examples/softbody/softbody.kernel.h": [90],
           "tests/conformance/kernels.h": [90], "tests/conformance/random/kernels.h": [90],
           "tests/conformance/stay.h": [90], "docs/examples/embedded/kernels.h": [90],
           "bench/apps/particles.kernel.h": [90]}
ALL = int(os.environ.get("GK_TEST_SCALE", "1")) > 1
OLDEST = 60  # gk's own PTX; before, atomics don't add doubles

# What prints the text of a kernel for a target.
PROGRAM = """#include "gk_backend.h"
#include "@header@"
#include <stdio.h>
static const gk_kernel *const all_kernels[] = {@kernels@};
int main(int argc, char **argv) {
  for (size_t k = 0; argc == 3 && k < GK_COUNT(all_kernels); ++k)
    if (strcmp(all_kernels[k]->name, argv[2]) == 0) {
      char *text = gk_compose(all_kernels[k], argv[1]);
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
static struct { unsigned x; } blockIdx, threadIdx;
struct uint4 { unsigned x, y, z, w; };
struct ulonglong2 { unsigned long long x, y; };
float __uint_as_float(unsigned v);
double __longlong_as_double(long long v);
unsigned long long atomicExch(unsigned long long *at, unsigned long long value);
void __threadfence_system();
#include "gk_kernel.h"
#define gki_task gki_host_task
#define gki_record gki_host_record
#include "lower/task.h"
#undef gki_task
#undef gki_record
#include <stddef.h>
#define SAME(field) \\
  static_assert(offsetof(gki_task, field) == offsetof(gki_host_task, field) && \\
                sizeof(gki_task::field) == sizeof(gki_host_task::field), #field)
SAME(record); SAME(guard); SAME(number);
static_assert(sizeof(gki_task) == sizeof(gki_host_task), "size");
typedef gki_record<1> one_pair;
static_assert(offsetof(one_pair, args) == sizeof(gki_host_record) && offsetof(one_pair, extents) == 32, "record");
#define SAME_CONTROL(field) \
  static_assert(offsetof(gki_control, field) == offsetof(gki_task_control, field) && \
                sizeof(gki_control::field) == sizeof(gki_task_control::field), #field)
SAME_CONTROL(number); SAME_CONTROL(failed); SAME_CONTROL(failures); SAME_CONTROL(posts_as); SAME_CONTROL(arms);
#define SAME_FAILURE(field) \
  static_assert(offsetof(gki_failure, field) == offsetof(gki_bad_count, field) && \
                sizeof(gki_failure::field) == sizeof(gki_bad_count::field), #field)
SAME_FAILURE(number); SAME_FAILURE(node); SAME_FAILURE(extent);
static_assert(sizeof(gki_failure) == sizeof(gki_bad_count) && GKI_LAUNCH_RING == 16, "size");
"""

# GLSL's own functions by C's, and what is written in GLSL for want of one, held against C's.
FUNCTIONS = """#include <float.h>
#include <math.h>
#include <stdio.h>
static float sign(float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f; }
#define abs(a) fabsf(a)
#define trunc(a) truncf(a)
#define roundf glsl_roundf
#define fmodf glsl_fmodf
@functions@
#undef roundf
#undef fmodf
static int differ(const char *what, float a, float b, float seen, float wanted) {
  if (seen == wanted || (isnan(seen) && isnan(wanted))) return 0;
  printf("%s of %.9g, %.9g: %.9g, not %.9g\\n", what, (double)a, (double)b, (double)seen, (double)wanted);
  return 1;
}
int main(void) {
  static const float known[] = {0.0f, 0.1f, 0.49999997f, 0.5f, 0.50000006f, 1.0f, 1.5f, 2.5f, 3.0f, 7.0f, 8388607.5f,
                                8388609.0f, 16777215.0f, 1e9f, FLT_MAX, FLT_MIN, 1e-44f, INFINITY, NAN};
  enum { KNOWN = sizeof known / sizeof *known, RANDOM = 20000 };
  int wrong = 0;
  unsigned seed = 1;
  for (int k = 0; k < KNOWN * KNOWN + RANDOM; ++k) {
    float pair[2] = {known[k % KNOWN], known[k / KNOWN % KNOWN]};
    for (int n = 0; n < 2; ++n) {
      if (k >= KNOWN * KNOWN) {
        seed = seed * 1664525u + 1013904223u;
        pair[n] = ldexpf((float)(seed >> 8), (int)(seed % 60) - 40);
      }
      wrong += differ("roundf", pair[n], 0, glsl_roundf(pair[n]), roundf(pair[n]));
      wrong += differ("roundf", -pair[n], 0, glsl_roundf(-pair[n]), roundf(-pair[n]));
    }
    wrong += differ("fmodf", pair[0], pair[1], glsl_fmodf(pair[0], pair[1]), fmodf(pair[0], pair[1]));
    wrong += differ("fmodf", -pair[0], pair[1], glsl_fmodf(-pair[0], pair[1]), fmodf(-pair[0], pair[1]));
    wrong += differ("fmodf", pair[0], -pair[1], glsl_fmodf(pair[0], -pair[1]), fmodf(pair[0], -pair[1]));
  }
  return wrong > 0;
}
"""


# Control kernels: addresses without 64-bit integers in GLSL.
WALK_GLSL = """#version 450
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 1) in;
layout(buffer_reference, scalar) buffer block { uint at[]; };
layout(push_constant, scalar) uniform push { uvec2 points, state, slots, cancel; uint run; };
uint flag(uint slot, uint offset) {
  uvec2 at = uvec2(block(slots).at[2 * slot], block(slots).at[2 * slot + 1]);
  uint carry;
  at.x = uaddCarry(at.x, offset, carry);
  at.y += carry;
  return block(at).at[0];
}
#define GKW_FN
#define gkw_uint uint
#define GKW_POINT(i) block(points).at[i]
#define GKW_STATE(i) block(state).at[i]
#define GKW_FLAG(slot, at) flag(slot, at)
#define GKW_CANCELLED() (block(cancel).at[0] != 0)
@walk@
void main() { gkw_ran(run); gkw_walk(1000); }
"""
WALK_CUDA = """#define GKW_FN static __device__
#define gkw_uint unsigned
__device__ const unsigned *points;
__device__ volatile unsigned *state, *cancel;
__device__ char **slots;
#define GKW_POINT(i) points[i]
#define GKW_STATE(i) state[i]
#define GKW_FLAG(slot, at) (*(volatile unsigned *)(slots[slot] + (at)))
#define GKW_CANCELLED() (*cancel != 0)
@walk@
extern "C" __global__ void control(unsigned run) { gkw_ran(run); gkw_walk(1000u); }
"""


class Kernels:
    """A header of kernels, and a program that composes them."""

    def __init__(self, header, folder):
        self.path, self.architectures = tap.ROOT / header, HEADERS[header]
        self.name = header
        self.kernels = re.findall(r"^GK_KERNEL(?:_[23]D)?\((\w+),", self.path.read_text(), re.M)
        source, self.program = folder / "compose.c", folder / "compose"
        source.write_text(PROGRAM.replace("@header@", str(self.path)).replace(
            "@kernels@", ", ".join(f"&{kernel}" for kernel in self.kernels)))
        self.problem = tap.run(*tap.config("cc"), "-std=c11", "-D_GNU_SOURCE", f"-I{tap.ROOT}/include", f"-I{tap.ROOT}",
                               f"-I{tap.ROOT}/tests", source, "build/libgk.a", *tap.config("openmp_libs"),
                               "-lpthread", "-ldl", "-lm", "-o", self.program)

    def compose(self, target, kernel):
        """The text and None, or None and what is wrong."""
        done = subprocess.run([self.program, target, kernel], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return (done.stdout, None) if done.returncode == 0 else (None, done.stderr or f"exit code {done.returncode}")


def tool(name, *folders):
    paths = [shutil.which(name)] + [shutil.which(f"{folder}/bin/{name}") for folder in folders]
    return next(filter(None, paths), None)


def load_nvrtcs():
    """Those that are here, and for the others what is to be skipped and why."""
    loaded, skips = [], []
    for what, load in (("NVRTC", nvrtc.installed), ("NVRTC 12.4", nvrtc.oldest)):
        try:
            loaded.append(load())
        except toolkits.Missing as reason:
            skips.append((what, reason))
    return loaded, skips


def missing_code(cubin, kernels):
    if cubin[:4] != b"\x7fELF":
        return "no cubin"
    absent = [kernel for kernel in kernels if f".text.{kernel}\0".encode() not in cubin]
    return f"no code for {', '.join(absent)}" if absent else None


def missing_entries(ptx, kernels):
    absent = [kernel for kernel in kernels if not re.search(rf"\.entry {kernel}\(", ptx)]
    return f"no entry for {', '.join(absent)}" if absent else None


def check_nvrtcs(name, text, entries, architectures):
    """PTX and cubin for each architecture."""
    loaded, skips = load_nvrtcs()
    for what, reason in skips:
        tap.skip(f"{name}: {what}", reason)

    def compile_one(found, number):
        made, problem = found.compile(text.encode(), f"sm_{number}", ["PTX", "CUBIN"])
        return problem or missing_entries(made["PTX"].decode(errors="replace"), entries) or \
            missing_code(made["CUBIN"], entries)
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for found in loaded:
            numbers = [number for number in found.architectures()
                       if number in architectures or (ALL and number >= OLDEST)]
            for number, problem in zip(numbers, pool.map(lambda one, found=found: compile_one(found, one), numbers)):
                tap.case(f"{name}: NVRTC {found.version}: sm_{number}", problem)
    return loaded


def check_nvrtc(kernels, folder):
    """All kernels at once; and an error is said to be where the user wrote it."""
    text, problem = kernels.compose("cuda", kernels.kernels[0])
    if problem:
        return tap.case(f"{kernels.name}: NVRTC", problem)
    lines = kernels.path.read_text().splitlines()
    loaded = check_nvrtcs(kernels.name, text, kernels.kernels, kernels.architectures)
    returns = [(k + 1, line) for k, line in enumerate(lines) if re.match(r"  return .*;$", line) and line in text]
    for found, (number, line) in itertools.product(loaded, returns[:1]):
        wrong = text.replace(line + "\n", "  return undefined_name;\n", 1)
        log = found.compile(wrong.encode(), f"sm_{kernels.architectures[0]}", [])[1] or ""
        wanted = f"{kernels.path}({number}): error"
        tap.case(f"{kernels.name}: NVRTC {found.version} names file and line", None if wanted in log else
                 f"wanted {wanted} in:\n{log}")
    return None


def check_nvcc(kernels, folder):
    """SASS for each architecture."""
    nvcc, source = tool("nvcc", "/usr/local/cuda"), folder / "kernels.cu"
    if not nvcc:
        return tap.skip(f"{kernels.name}: nvcc", "there is no nvcc in PATH or /usr/local/cuda")
    text, problem = kernels.compose("cuda", kernels.kernels[0])
    if problem:
        return tap.case(f"{kernels.name}: nvcc", problem)
    source.write_text(text)
    listed = subprocess.run([nvcc, "--list-gpu-code"], stdout=subprocess.PIPE, text=True).stdout
    known = sorted(map(int, re.findall(r"^sm_(\d+)$", listed, re.M)))
    known = [one for one in known if ALL or one in kernels.architectures]

    def compile_one(architecture):
        target = folder / f"sm_{architecture}.cubin"
        return tap.run(nvcc, "-cubin", f"-arch=sm_{architecture}", "-o", target, source) or \
            missing_code(target.read_bytes(), kernels.kernels)
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for architecture, wrong in zip(known, pool.map(compile_one, known)):
            tap.case(f"{kernels.name}: nvcc: sm_{architecture}", wrong)
    return tap.case(f"{kernels.name}: nvcc knows architectures",
                    None if known else f"none of {kernels.architectures} in:\n{listed}")


def check_hipcc(kernels, folder):
    hipcc = tool("hipcc", "/opt/rocm")
    if not hipcc:
        return tap.skip(f"{kernels.name}: hipcc", "there is no hipcc in PATH or /opt/rocm")
    source = folder / "kernels.hip.cpp"
    text, problem = kernels.compose("hip", kernels.kernels[0])
    source.write_text(text or "")
    return tap.case(f"{kernels.name}: hipcc", problem or tap.run(
        hipcc, "--genco", "--offload-arch=gfx90a", "-x", "hip", "-o", folder / "kernels.co", source))


def check_clang(kernels, folder):
    source, known = folder / "kernels.hip", list(hipclang.ARCHITECTURES)
    try:
        hipclang.clang()
    except hipclang.Missing as missing:
        return tap.skip(f"{kernels.name}: clang for AMD's GPUs", missing)
    text, problem = kernels.compose("hip", kernels.kernels[0])
    source.write_text(text or "")

    def compile_one(architecture):
        target = folder / f"{architecture}.co"
        return problem or hipclang.compile_hip(source, target, [architecture]) or \
            hipclang.missing_code(target.read_bytes(), kernels.kernels)
    wanted = known if ALL else [known[list(HEADERS).index(kernels.name) % len(known)]]
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for architecture, wrong in zip(wanted, pool.map(compile_one, wanted)):
            tap.case(f"{kernels.name}: clang: {architecture}", wrong)
    return None


def check_glsl(kernels, folder):
    glslc, glslang, validator = tool("glslc"), tool("glslangValidator"), tool("spirv-val")
    if not glslc and not glslang:
        return tap.skip(f"{kernels.name}: GLSL", "there is neither glslc nor glslangValidator in PATH")
    if not validator:
        tap.skip(f"{kernels.name}: valid SPIR-V", "there is no spirv-val in PATH")
    for kernel in kernels.kernels:
        text, problem = kernels.compose("glsl", kernel)
        tap.case(f"{kernels.name}: GLSL: {kernel}", problem or compile_glsl(text, folder / f"{kernel}.comp"))
    return None


def compile_glsl(text, source):
    """By all compilers that are here; what is wrong, or None."""
    glslc, glslang, validator = tool("glslc"), tool("glslangValidator"), tool("spirv-val")
    problem, target = None, source.with_suffix(".spv")
    source.write_text(text)
    if glslc:
        problem = tap.run(glslc, "-Werror", "--target-env=vulkan1.2", "-o", target, source)
    if glslang:
        problem = problem or tap.run(glslang, "--target-env", "vulkan1.2", "-o", target, source)
    if validator:
        problem = problem or tap.run(validator, "--target-env", "vulkan1.2", "--scalar-block-layout", target)
    return problem


def check_walk():
    """walk.inc in a control kernel of each language. tests/unit/plan compiles it as C."""
    walk = (tap.ROOT / "common/plan/walk.inc").read_text()
    with tempfile.TemporaryDirectory() as name:
        if tool("glslc") or tool("glslangValidator"):
            tap.case("the walk: GLSL", compile_glsl(WALK_GLSL.replace("@walk@", walk), Path(name) / "walk.comp"))
        else:
            tap.skip("the walk: GLSL", "there is neither glslc nor glslangValidator in PATH")
        for compiler, flags, head in (("nvcc", ["-cubin", "-arch=sm_90"], ""),
                                      ("hipcc", ["--genco", "--offload-arch=gfx90a", "-x", "hip"],
                                       "#include <hip/hip_runtime.h>\n")):
            path, source = tool(compiler, "/usr/local/cuda", "/opt/rocm"), Path(name) / "walk.cu"
            source.write_text(head + WALK_CUDA.replace("@walk@", walk))
            if path:
                tap.case(f"the walk: {compiler}", tap.run(path, *flags, "-o", Path(name) / "walk.o", source))
            else:
                tap.skip(f"the walk: {compiler}", f"there is no {compiler}")


def check_transfers():
    """CUDA's compilers get them in tests/cuda/image.py."""
    hipcc = tool("hipcc", "/opt/rocm")
    if not hipcc:
        return tap.skip("COPY and FILL: hipcc", "there is no hipcc in PATH or /opt/rocm")
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "transfer.hip.cpp"
        parts = ("device.h", "task.h", "transfer.inc", "ahead.inc")
        source.write_text("#include <hip/hip_runtime.h>\n" +
                          "".join((tap.ROOT / f"common/lower/{part}").read_text() for part in parts))
        return tap.case("COPY and FILL: hipcc", tap.run(
            hipcc, "--genco", "--offload-arch=gfx90a", "-x", "hip", f"-I{tap.ROOT}/common", "-o",
            Path(name) / "transfer.co", source))


def check_tasks():
    compiler = tool("g++") or tool("clang++")
    if not compiler:
        return tap.skip("one task for host and device", "there is neither g++ nor clang++ in PATH")
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "tasks.cpp"
        source.write_text(TASKS)
        return tap.case("one task for host and device", tap.run(
            compiler, "-fsyntax-only", f"-I{tap.ROOT}/include", f"-I{tap.ROOT}/common", source))


def check_functions():
    text = (tap.ROOT / "include/gk_kernel.h").read_text()
    found = re.search(r"^float roundf\(.*?^}$", text, re.M | re.S)
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name) / "functions.c", Path(name) / "functions"
        source.write_text(FUNCTIONS.replace("@functions@", found[0] if found else ""))
        tap.case("GLSL's functions are C's", tap.run(
            *tap.config("cc"), "-std=c11", "-ffp-contract=off", source, "-lm", "-o", program) or tap.run(program))


def check_kernels(header):
    with tempfile.TemporaryDirectory() as name:
        kernels = Kernels(header, Path(name))
        if tap.case(f"{kernels.name}: a program to compose it", kernels.problem or (
                None if kernels.kernels else "no kernels were found")):
            for check in (check_glsl, check_nvrtc, check_nvcc, check_hipcc, check_clang):
                check(kernels, Path(name))


def main():
    """Without arguments all of it; else what begins so."""
    parts = {"tasks": check_tasks, "transfers": check_transfers, "walk": check_walk, "functions": check_functions}
    parts.update((header, lambda header=header: check_kernels(header)) for header in HEADERS)
    for name, check in parts.items():
        if len(sys.argv) == 1 or name.startswith(tuple(sys.argv[1:])):
            check()
    tap.finish()


if __name__ == "__main__":
    main()
