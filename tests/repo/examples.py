#!/usr/bin/env python3
"""Programs in docs/examples/ that use CUDA: each is compiled, with the sanitizers that the simulated driver has, and
run on that driver as it was in several versions; where there is a GPU, there, too. Where a toolkit is they are compiled
with its headers and linked with its libraries, besides, and with cuBLAS run on a GPU. The one that uses Vulkan is run
on lavapipe, under the validation layer. Prints TAP.

  tests/repo/examples.py [--update]    --update: docs/cuda-direct.md shows the difference of the two
  relax_*.c as it is now
"""
import ctypes
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import suites  # noqa: E402
import tap  # noqa: E402

# The program, and what it prints.
EXAMPLES = {
    "shared_stream": ["7 passes, the last number is 7", "4 passes, the last number is 62"],
    "look_inside": ["9 to the power of 4 is 6561"],
    "tuned": ["20 x 12: ", "nodes were updated", "no node was updated", "33 x 17: "],
    "loop_by_hand": ["27: 111 steps", "1: 0 steps", "97: 118 steps", "6171: 261 steps"],
    "list_inside": ["launch 1: root 4.0 after", "launch 2: root 100.0 after", "launch 3: root 316.2", "TOO_LARGE"],
    "relax_before": ["sweeps, at most 0.000", "launches by the host: "],
    "relax_after": ["sweeps, at most 0.000", "launches by the host: 1\n"],
    "power_iteration": ["loose end: 428.165344 after", "none: 3.990944 after"],
}
VERSIONS = ("11.4", "12.4", "13.0")
NATIVE = {"loop_by_hand", "list_inside", "relax_after", "power_iteration"}  # with conditional nodes
WITHOUT_GK = {"relax_before"}
LINES = 15  # a loop of gk's in an existing program takes fewer
FOLDER = tap.ROOT / "docs/examples"
CUBLAS = tap.ROOT / "tests/stubs/cublas"
PAGE = tap.ROOT / "docs/cuda-direct.md"
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-D_GNU_SOURCE"]
INCLUDE = f"-I{tap.ROOT}/include"
# cuda.h and nvrtc.h where no toolkit is.
STAND_INS = [f"-I{tap.ROOT}/tests/stubs/cuda", f"-I{tap.ROOT}/tests", f"-I{tap.ROOT}"]
GPU = Path("/dev/nvidiactl").exists()
# What a program with that header is linked with; a driver that is installed has no link without a number.
LIBRARIES = {"cuda.h": "libcuda.so.1" if GPU else "libcuda.so", "nvrtc.h": "libnvrtc.so",
             "cublas_v2.h": "libcublas.so"}


def simulated(version, **more):
    folder = str(Path("build/simgpu").absolute())
    arch = "80" if version < "12" else "90"  # such as its NVRTC knows
    return dict(os.environ, LD_LIBRARY_PATH=folder, CUDA_HOME=folder, SIMGPU_VERSION=version, SIMGPU_ARCH=arch,
                GK_CACHE="off", **more)


def start(program, env):
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=tap.HANGS, env=env)
    return done.returncode, done.stdout


def run(program, words, env, never=()):
    code, said = start(program, env)
    wrong = [f"it doesn't say: {word}" for word in words if word not in said] + \
        [f"it says: {word}" for word in never if word in said]
    return "\n".join([f"exit code {code}", *wrong, said]) if code or wrong else None


def compiled(name, folder, changed=None):
    """The program with the stand-ins, or one that was changed; and what is wrong with it."""
    source = changed or FOLDER / f"{name}.c"
    program = folder / source.stem
    gk = [] if name in WITHOUT_GK else [INCLUDE, tap.checked("libgk.a")]
    cublas = [f"-I{CUBLAS}", CUBLAS / "cublas.c"] if name == "power_iteration" else []
    problem = tap.run(*tap.config("cc"), *WARNINGS, *STAND_INS, *cublas, source, *tap.config("checked"), *gk,
                      *tap.config("openmp_libs"), "-lpthread", "-ldl", "-lm", "-o", program)
    return program, problem


# ---- with a toolkit -------------------------------------------------------------------------------------------------

def toolkit():
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for place in filter(None, places):
        if (Path(place) / "include/cuda.h").exists():
            return Path(place)
    return None


def driver_is_older(place):
    """Than the toolkit: then neither its cuBLAS nor what its NVRTC makes can be used."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        pass
    wanted = re.search(r"^#define CUDA_VERSION (\d+)", (place / "include/cuda.h").read_text(errors="replace"), re.M)
    return version.value // 1000 < int(wanted[1]) // 1000


def headers_of(name):
    text = (FOLDER / f"{name}.c").read_text()
    if '"by_hand.h"' in text:
        text += (FOLDER / "by_hand.h").read_text()
    return [header for header in LIBRARIES if f"<{header}>" in text]


def build_as_users(name, place, folder):
    """The program, and what is wrong with it."""
    program = folder / f"{name}-real"
    gk = [] if name in WITHOUT_GK else [INCLUDE, "build/libgk.a", *tap.config("openmp_libs")]
    return program, tap.run(*tap.config("cc"), *WARNINGS, "-isystem", place / "include", FOLDER / f"{name}.c", *gk,
                            f"-L{place}/lib64", f"-L{place}/lib64/stubs", f"-Wl,-rpath,{place}/lib64",
                            *[f"-l:{LIBRARIES[header]}" for header in headers_of(name)], "-lpthread", "-ldl", "-lm",
                            "-o", program)


def with_toolkit(folder):
    """NVIDIA's headers, and libraries that are found when the program is linked."""
    place = toolkit()
    for name in filter(headers_of, EXAMPLES):
        title = f"{name} with NVIDIA's headers and libraries"
        missing = [header for header in headers_of(name) if not place or not (place / "include" / header).exists() or
                   not any((place / at / LIBRARIES[header]).exists() for at in ("lib64", "lib64/stubs"))
                   and not LIBRARIES[header].endswith(".1")]
        if missing:
            tap.skip(title, f"no toolkit with {' '.join(missing)} and what to link with in $CUDA_HOME, $CUDA_PATH or "
                     "/usr/local/cuda")
            continue
        program, problem = build_as_users(name, place, folder)
        if not tap.case(title, problem) or not GPU:
            continue
        if driver_is_older(place):
            tap.skip(f"{title}, on the GPU", f"its driver is older than the toolkit in {place}")
        else:
            tap.case(f"{title}, on the GPU", run(program, EXAMPLES[name], dict(os.environ)))


# ---- Vulkan ---------------------------------------------------------------------------------------------------------

def build_particles(folder):
    """The program, by the commands in its comment; and what is wrong with it."""
    program = folder / "vulkan_particles"
    for kind, code in (("vert", "vertex_code"), ("frag", "fragment_code")):
        problem = tap.run("glslangValidator", "-V", "--vn", code, "-o", f"{program}.{kind}.h",
                          FOLDER / f"vulkan_particles.{kind}")
        if problem:
            return program, problem
    return program, tap.run(*tap.config("cc"), *WARNINGS, INCLUDE, f"-I{folder}", FOLDER / "vulkan_particles.c",
                            "build/libgk.a", *tap.config("openmp_libs"), "-lvulkan", "-lpng", "-lpthread", "-ldl",
                            "-lm", "-o", program)


def with_vulkan(folder):
    """It counts the wrong pixels of its picture itself."""
    missing = "glslangValidator" if not shutil.which("glslangValidator") else \
        "the Vulkan backend" if not tap.config("vulkan_backend") else "libpng" if not tap.config("png_libs") else None
    if missing:
        return tap.skip("vulkan_particles", f"there is no {missing}")
    program, problem = build_particles(folder)
    if not tap.case("vulkan_particles is compiled", problem):
        return None
    picture = folder / "picture.png"
    problem = tap.run(*suites.on_lavapipe(program, picture))
    return tap.case("vulkan_particles on lavapipe draws each particle and nothing else", problem or (
        None if picture.read_bytes()[1:4] == b"PNG" else "the picture is no PNG"))


# ---- a loop in an existing program ----------------------------------------------------------------------------------

def difference():
    before, after = ((FOLDER / f"relax_{which}.c").read_text().splitlines() for which in ("before", "after"))
    return list(difflib.unified_diff(before, after, "relax_before.c", "relax_after.c", n=1, lineterm=""))


def shown(text):
    return re.search(r"(?<=^```diff\n).*?(?=^```$)", text, re.M | re.S)


def check_difference():
    lines = difference()
    added = [line for line in lines[2:] if line.startswith("+")]
    removed = [line for line in lines[2:] if line.startswith("-")]
    tap.case(f"a loop of gk's takes {len(added)} lines, in place of {len(removed)}",
             None if len(added) < LINES else "\n".join([f"{LINES} or more:", *added]))
    text = "".join(("" if line.startswith("@@") else line) + "\n" for line in lines[3:] if line.strip())
    page = PAGE.read_text()
    there = shown(page)
    if "--update" in sys.argv and there:
        PAGE.write_text(page[:there.start()] + text + page[there.end():])
        return
    tap.case("docs/cuda-direct.md shows these", None if there and there[0] == text else
             f"tests/repo/examples.py --update writes them there:\n{text}")
    source = (FOLDER / "relax_before.c").read_text() + (FOLDER / "by_hand.h").read_text()
    tap.case("before there is nothing of gk's", re.search(r"^.*(#include.*gk|gk_\w+\().*$", source, re.M))


def check_same(folder, where, env):
    """The same sweeps and the same plate, by one launch."""
    said = {}
    for which in ("before", "after"):
        code, text = start(folder / f"relax_{which}", env)
        found = re.search(r"^(\d+ sweeps, .*)\nlaunches by the host: (\d+)$", text, re.M)
        if code or not found:
            return tap.case(f"relax on {where}", f"relax_{which}: exit code {code}\n{text}")
        said[which] = found
    launches = [int(said[which][2]) for which in ("before", "after")]
    right = said["before"][1] == said["after"][1] and launches[0] > 100 and launches[1] == 1
    return tap.case(f"relax on {where}: the same by {launches[1]} launch, not {launches[0]}",
                    None if right else f"{said['before'][0]}\n{said['after'][0]}")


def check_refused(folder, version):
    code, said = start(folder / "relax_after", simulated(version, SIMGPU_ALLOW="leak"))
    right = code == 1 and "gk_cuda_begin" in said and "conditional nodes" in said
    tap.case(f"relax_after on simulated CUDA {version} says why it can't", None if right else f"{code}\n{said}")


# ---- cuBLAS ---------------------------------------------------------------------------------------------------------

def check_cublas(folder, program):
    """Gated by the host; and that the stand-in finds what cuBLAS couldn't record."""
    words = EXAMPLES["power_iteration"]
    for version, more in (("11.4", {}), ("13.0", {"GK_CUDA_PROBE": "0"})):
        tap.case(f"power_iteration on simulated CUDA {version}, gated by the host",
                 run(program, [*words, "the host gates it"], simulated(version, **more)))
    source = (FOLDER / "power_iteration.c").read_text()
    for name, pattern, to, why in (
            ("no workspace", r"cublasSetWorkspace\([^)]*\)", "CUBLAS_STATUS_SUCCESS", "nodes that take memory"),
            ("a result for the host", "CUBLAS_POINTER_MODE_DEVICE", "CUBLAS_POINTER_MODE_HOST", "be waited for")):
        text, count = re.subn(pattern, to, source)
        wrong = folder / "wrong.c"
        wrong.write_text(text)
        other, problem = compiled("power_iteration", folder, wrong)
        if not problem:
            code, said = start(other, simulated("13.0", SIMGPU_ALLOW="leak"))
            right = count == 1 and code == 1 and why in said and "multiply" in said
            problem = None if right else f"{count} changes, exit code {code}\n{said}"
        tap.case(f"power_iteration with {name} is refused", problem)


def main():
    check_difference()
    if "--update" in sys.argv:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for name, words in EXAMPLES.items():
            program, problem = compiled(name, folder)
            if not tap.case(f"{name} is compiled", problem):
                continue
            if name == "power_iteration":
                check_cublas(folder, program)
            for version in VERSIONS[1:] if name in NATIVE else VERSIONS:
                tap.case(f"{name} on simulated CUDA {version}",
                         run(program, words, simulated(version), ["the host gates it"] if name in NATIVE else []))
            if GPU:
                tap.case(f"{name} on the GPU", run(program, words, dict(os.environ)))
        for version in VERSIONS[1:]:
            check_same(folder, f"simulated CUDA {version}", simulated(version))
        if GPU:
            check_same(folder, "the GPU", dict(os.environ))
        for version in ("11.4", "12.3"):
            check_refused(folder, version)
        with_toolkit(folder)
        with_vulkan(folder)
    tap.finish()


main()
