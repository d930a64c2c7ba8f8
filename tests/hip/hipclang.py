"""Clang 19 as a compiler of HIP for more architectures than Debian's hipcc knows, with Debian's device libraries. What
these lack for a newer architecture is one constant."""
import fcntl
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

# What device libraries call an architecture.
ARCHITECTURES = {"gfx90a": 9010, "gfx942": 9402, "gfx1030": 10300, "gfx1100": 11000, "gfx1201": 12001}
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")  # of Debian's rocm-device-libs
ISA = "@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {}\n"
LAYOUT = 'target triple = "amdgcn-amd-amdhsa"\n'


class Missing(Exception):
    """What isn't installed."""


def clang():
    for name, path in (("clang++-19", shutil.which("clang++-19")), ("ld.lld-19", shutil.which("ld.lld-19")),
                       ("clang-offload-bundler-19", shutil.which("clang-offload-bundler-19")),
                       ("rocm-device-libs", (LIBRARIES / "ocml.bc").exists()),
                       ("hip_runtime.h", Path("/usr/include/hip/hip_runtime.h").exists())):
        if not path:
            raise Missing(f"there is no {name}")
    return shutil.which("clang++-19")


def device_libraries():
    """A folder with Debian's and those that it hasn't; made once per build tree."""
    folder = Path("build/hip/device-libs").absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "device-libs.lock", "w") as lock:  # several tests may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            for path in LIBRARIES.glob("*.bc"):
                (partial / path.name).symlink_to(path)
            for name, number in ARCHITECTURES.items():
                make_isa(partial, name.removeprefix("gfx"), number)
            partial.rename(folder)
    return folder


def make_isa(folder, name, number):
    target, source = folder / f"oclc_isa_version_{name}.bc", folder / f"{name}.ll"
    if target.exists():
        return
    source.write_text(LAYOUT + ISA.format(number))
    problem = tap.run(clang(), "-x", "ir", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c", source,
                      "-o", target)
    if problem:
        raise Missing(problem)


def compile_hip(source, target, architectures, *flags):
    """Writes a bundle of code objects; None, or what is wrong. Runtimes from HIP 5 on take code objects of version 4.
    Nothing in them depends on where the source is."""
    return tap.run(clang(), "-x", "hip", "--offload-device-only", *(f"--offload-arch={one}" for one in architectures),
                   "-O3", "-mcode-object-version=4", "-fuse-cuid=none", f"--rocm-device-lib-path={device_libraries()}",
                   "-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", *flags, source, "-o", target)


def missing_code(code, kernels):
    """None, or which kernels a code object, or a bundle of one, lacks."""
    absent = [kernel for kernel in kernels if f"{kernel}.kd\0".encode() not in code]
    return f"no code for {', '.join(absent)}" if absent else None
