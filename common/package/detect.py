"""What configure.py looks for on a machine: the compiler, and all that gk can use."""
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

ROOT = Path(os.path.abspath(__file__)).parent.parent.parent
MINIMUM = {"gcc": 12, "clang": 14}
GLSL_COMPILERS = ["glslangValidator -S comp --target-env vulkan1.2",
                  "glslc -fshader-stage=compute --target-env=vulkan1.2"]
MACHINES = {"__x86_64__": "x86-64", "__aarch64__": "aarch64"}
COMPILERS = ["gcc", "clang"] + [f"{kind}-{n}" for kind in MINIMUM for n in range(25, MINIMUM[kind] - 1, -1)]

Compiler = namedtuple("Compiler", "command kind version machine")
Found = namedtuple("Found", "what detail settings", defaults=[{}])  # detail: a version, or "no: " and the reason


class Missing(Exception):
    """A missing program or library, as a sentence for the user."""


def output(*command):
    """The output of a command, or None if it is missing or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def try_compile(compiler, source, *flags, name="try.c"):
    """The compiler's output for a small program, or None if it doesn't compile and link."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(source)
        return output(*shlex.split(compiler.command), str(path), *flags, "-o", f"{folder}/try")


def inspect(command):
    """A Compiler, from its predefined macros, so wrappers, links and cross compilers work, too."""
    text = output(*shlex.split(command), "-dM", "-E", "-x", "c", "/dev/null")
    if text is None:
        raise Missing(f"{command} isn't there or isn't a C compiler")
    macros = dict(re.findall(r"#define (\w+) (.*)", text))
    other = [name for name in ("__INTEL_LLVM_COMPILER", "__INTEL_COMPILER", "__NVCOMPILER") if name in macros]
    if other or "__GNUC__" not in macros:
        raise Missing(f"{command} is neither gcc nor clang")
    kind = "clang" if "__clang__" in macros else "gcc"
    names = "__clang_major__ __clang_minor__ __clang_patchlevel__" if kind == "clang" else \
        "__GNUC__ __GNUC_MINOR__ __GNUC_PATCHLEVEL__"
    version = ".".join(macros[name] for name in names.split())
    if int(version.split(".")[0]) < MINIMUM[kind]:
        raise Missing(f"{command} is {kind} {version}, which is too old")
    machine = [MACHINES[name] for name in MACHINES if name in macros]
    if "__linux__" not in macros or not machine or "__ILP32__" in macros:
        raise Missing(f"{command} doesn't compile for Linux on x86-64 or aarch64, and gk knows no other system")
    return Compiler(command, kind, version, machine[0])


def find_compiler(wanted):
    """The compiler of that name, or the first suitable one."""
    needs = f"gk needs gcc {MINIMUM['gcc']} or clang {MINIMUM['clang']}, or newer; name one by --cc or $CC"
    reasons = [] if wanted or any(map(shutil.which, COMPILERS)) else ["there is no C compiler"]
    for command in [wanted] if wanted else COMPILERS:
        try:
            return inspect(command)
        except Missing as problem:
            if wanted or shutil.which(command):
                reasons.append(str(problem))
    raise Missing("; ".join(reasons + [needs]))


# ---- what gk can use ------------------------------------------------------------------------------------------------

def find_openmp(compiler):
    program = "#include <omp.h>\nint main(void) {\n#pragma omp parallel\n  { (void)omp_get_num_threads(); }\n}\n"
    trace = try_compile(compiler, program, "-fopenmp", "-Werror", "-Wl,--trace")
    if trace is None:
        package = "libgomp, which comes with it" if compiler.kind == "gcc" else "libomp-dev"
        raise Missing(f"{compiler.command} has no OpenMP: install {package}, or choose another compiler by --cc")
    runtime = "gomp" if compiler.kind == "gcc" else "omp"
    # A program that links libgk.a may use a compiler that doesn't search this compiler's folder for libomp. Every
    # compiler finds libgomp.
    folder = re.search(rf"^(/\S+)/lib{runtime}\.(?:so|a)\S*$", trace or "", re.M) if runtime == "omp" else None
    libs = f"-L{os.path.normpath(folder[1])} -l{runtime}" if folder else f"-l{runtime}"
    return Found("OpenMP", f"lib{runtime}", {"openmp": "-fopenmp", "openmp_libs": libs})


def find_png(compiler, wanted):
    """Only the soft body needs libpng. Without it, `ninja` builds only the library."""
    none = {"png_libs": "", "softbody": "library"}
    if not wanted:
        return Found("libpng", "no: --without-png; no soft body", none)
    program = "#include <png.h>\n#include <stdio.h>\nint main(void) { return !png_get_libpng_ver(NULL); }\n"
    if try_compile(compiler, program, "-lpng") is None:
        return Found("libpng", "no: no soft body (apt-get install libpng-dev)", none)
    return Found("libpng", "yes", {"png_libs": "-lpng", "softbody": "build/softbody"})


def find_xxhash(compiler, wanted):
    """A header; nothing is linked. XXH3 hasn't changed since 0.8."""
    none = {"cache": "common/kernel/cache_none.c"}
    if not wanted:
        return Found("xxHash", "no: --without-xxhash; what is compiled is not kept on disk", none)
    program = "#define XXH_INLINE_ALL\n#include <xxhash.h>\n_Static_assert(XXH_VERSION_NUMBER >= 800, \"\");\n" \
        "int main(void) { return (int)XXH3_128bits(\"\", 0).low64; }\n"
    if try_compile(compiler, program) is None:
        return Found("xxHash", "no: what is compiled is not kept on disk (apt-get install libxxhash-dev)", none)
    return Found("xxHash", "yes", {"cache": "common/kernel/cache.c"})


def find_nvtx(compiler, path, wanted):
    """Headers of NVTX 3, which loads a profiler's library by itself: in the compiler's folders, a CUDA toolkit, or a
    package of this Python, such as PyPI's nvidia-nvtx-cu12."""
    none = {"nvtx": "", "nvtx_headers": ""}
    if not wanted:
        return Found("NVTX", "no: --without-nvtx; profilers see no ranges of gk's", none)
    program = "#include <nvtx3/nvToolsExt.h>\n_Static_assert(NVTX_VERSION == 3, \"\");\n" \
        "int main(void) { return nvtxDomainCreateA(\"\") != NULL; }\n"
    folders = [f"{place}/include" for place in cuda_places(path)]
    folders += [f"{place}/nvidia/nvtx/include" for place in sys.path]
    for folder in [None] + [folder for folder in folders if os.path.exists(f"{folder}/nvtx3/nvToolsExt.h")]:
        flags = ["-isystem", os.path.abspath(folder)] if folder else []
        if try_compile(compiler, program, *flags, "-ldl") is not None:
            return Found("NVTX", f"yes ({folder})" if folder else "yes",
                         {"nvtx": "-DGK_NVTX", "nvtx_headers": shlex.join(flags)})
    return Found("NVTX", "no: profilers see no ranges of gk's (its headers come with CUDA's toolkit, and with PyPI's "
                 "nvidia-nvtx-cu12)", none)


def find_cmocka(compiler):
    program = "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n" \
        "#include <cmocka.h>\nint main(void) { return 0; }\n"
    if try_compile(compiler, program, "-lcmocka") is None:
        return Found("cmocka", "no: the unit tests can't be built (apt-get install libcmocka-dev)")
    return Found("cmocka", "yes")


def why_not_nvcc(nvcc):
    """Why this nvcc can't compile gk's own kernels; None: it can."""
    wanted = set(re.findall(r"code=(sm_\d+)", (ROOT / "build.ninja").read_text()))
    unknown = sorted(wanted - set((output(nvcc, "--list-gpu-code") or "").split()))
    if unknown:
        return f"doesn't know {', '.join(unknown)}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "try.cu"
        path.write_text("__global__ void empty() {}\n")
        if output(nvcc, "-fatbin", "--compress-mode=size", "-arch=sm_90", str(path), "-o", f"{folder}/try") is None:
            return "doesn't compile with this host compiler"
    return None


def find_cplusplus(compiler):
    """The same compiler for C++, without its library: it compiles kernels for the simulated GPU."""
    program = "template <auto f> int call() { return f(); }\nint one() { return 1; }\n" \
        "int main() { return call<one>() - 1; }\n"
    if try_compile(compiler, program, "-std=gnu++17", "-fno-exceptions", "-fno-rtti", name="try.cpp") is None:
        return Found("C++", f"no: the simulated GPU can't be built ({compiler.command} lacks C++: apt-get install g++)")
    return Found("C++", "yes")


def cuda_places(path):
    """Folders where a toolkit may be."""
    return list(filter(None, [path] if path else [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"),
                                                  "/usr/local/cuda"]))


def find_cuda(path, as_checked_in=False):
    """The toolkit. The library needs only the driver, which it finds at run time. Without nvcc, it contains its kernels
    as they are checked in."""
    tools = [f"{place}/bin/nvcc" for place in cuda_places(path)] + ([] if path else [shutil.which("nvcc")])
    ready = {"gates_fatbin": "cuda/image/gates.fatbin"}
    for nvcc in filter(None, tools):
        release = re.search(r"release ([\d.]+)", output(nvcc, "--version") or "")
        if release:
            reason = "isn't asked for them" if as_checked_in else why_not_nvcc(nvcc)
            found = f"{release[1]} ({os.path.dirname(os.path.dirname(nvcc))})"
            if reason:
                return Found("CUDA", f"{found}; it {reason}: gk's own kernels as they are checked in",
                             {"nvcc": nvcc, **ready})
            return Found("CUDA", found, {"nvcc": nvcc, "gates_fatbin": "build/cuda/gates.fatbin"})
    if path:
        raise Missing(f"--cuda {path}: there is no working {path}/bin/nvcc")
    return Found("CUDA", "no: nvcc is neither in PATH nor in /usr/local/cuda (--cuda PATH)", ready)


def without_cuda(toolkit):
    """The settings without the backend. Tests of kernels still use a toolkit."""
    return Found("CUDA", "no: --without-cuda; no CUDA backend, no gk_cuda.h",
                 {**toolkit.settings, "cuda_backend": "", "cuda_left_out": "cuda", "cuda_members": "none",
                  "cuda_installed": "install-tools"})


def find_glsl():
    """The settings for compiling gk's own shaders, by the first compiler that knows their extensions."""
    program = "#version 460\n#extension GL_EXT_buffer_reference_uvec2 : require\n" \
        "#extension GL_EXT_shader_atomic_int64 : require\nvoid main() {}\n"
    for command in GLSL_COMPILERS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "try.comp"
            path.write_text(program)
            if output(*command.split(), str(path), "-o", f"{folder}/try") is not None:
                return {"glsl": command, "shader": "spv"}
    return {"shader": "comp"}


def find_vulkan(compiler, wanted):
    """The headers, and a compiler for gk's own shaders. libvulkan is found at run time."""
    program = "#include <vulkan/vulkan.h>\nint main(void) { return VK_EXT_shader_atomic_float + VK_VERSION_1_2 - 2; }\n"
    left_out = {"vulkan_members": "none", "vulkan_left_out": "vulkan"}
    if not wanted:
        return Found("Vulkan", "no: --without-vulkan; no Vulkan backend", left_out)
    if try_compile(compiler, program) is None:
        return Found("Vulkan", "no: vulkan/vulkan.h (libvulkan-dev) is missing or too old; no Vulkan backend",
                     left_out)
    glsl = find_glsl()
    return Found("Vulkan", "yes" if "glsl" in glsl else
                 "yes; gk's shaders are compiled when a device is opened (apt-get install glslang-tools)",
                 {"vulkan_members": "vulkan", "vulkan_backend": "vulkan",
                  "vulkan_installed": "install-vulkan-header", **glsl,
                  "images": glsl["shader"] if compiler.machine.replace("-", "_") == platform.machine() else "comp"})


def find_hip(wanted):
    """hipcc, with which tests compile kernels. The backend needs nothing: its libraries are found at run time."""
    left_out = {"hip_backend": "", "hip_members": "none", "hip_installed": "install-tools", "hip_left_out": "hip"}
    settings = {} if wanted else left_out
    hipcc = shutil.which("hipcc") or shutil.which("/opt/rocm/bin/hipcc")
    version = re.search(r"HIP version: (\S+)", output(hipcc, "--version") or "") if hipcc else None
    backend = "" if wanted else "; --without-hip: no HIP backend"
    if not version:
        return Found("HIP", f"no: hipcc is neither in PATH nor in /opt/rocm/bin{backend}", settings)
    return Found("HIP", f"{version[1]}{backend}", {"hipcc": hipcc, **settings})


def find_doxygen():
    """Writes the manual pages and the site, from 1.9 on."""
    version = (output("doxygen", "--version") or "").split(" ")[0].strip()
    if not version:
        return Found("Doxygen", "no: no manual pages and no site (apt-get install doxygen)")
    return Found("Doxygen", version, {"docs_installed": "install-docs"})


def find_linker(compiler):
    """LLVM's linker for the hundreds of test programs: it takes half as long as the usual one."""
    found = try_compile(compiler, "int main(void) { return 0; }\n", "-fuse-ld=lld") is not None
    return ["-fuse-ld=lld"] if found else []


def find_launcher():
    """ccache, if it is installed: trees that are made again get their objects from it."""
    return "ccache" if shutil.which("ccache") else ""
