#!/usr/bin/env python3
"""The code objects of gk's own kernels for HIP: fallback/hip/image has what the compiler named there makes of the
sources as they are, for each architecture. Prints TAP.

  tests/hip/image.py --update    makes them again: needs clang 19 and lld 19, and Debian's HIP headers and libraries"""
import hashlib
import re
import struct
import subprocess
import sys
from pathlib import Path

import hipclang
from hipclang import tap

IMAGE = tap.ROOT / "fallback/hip/image/kernels.hipfb"
MADE = IMAGE.with_name("made.txt")
SOURCES = [tap.ROOT / f"common/lower/{name}" for name in ("device.h", "task.h", "transfer.inc", "ahead.inc")]
SOURCES += [tap.ROOT / "fallback/hip/probe.inc", tap.ROOT / "common/plan/walk.inc"]
TEXT = "build/hip/builtin.hip"  # of these, as hipRTC gets it
OF_AMDGPU = 224
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"


def version():
    said = subprocess.run([hipclang.clang(), "--version"], stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"clang version (\S+)", said)[1]


def make(target):
    """None, or what is wrong."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return tap.run("ninja", TEXT) or hipclang.compile_hip(
        TEXT, target, hipclang.ARCHITECTURES, "-include", "hip/hip_runtime.h")


def sum_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def parts_of(bundle):
    """Code objects by architecture, without the host's empty one."""
    if not bundle.startswith(MAGIC):
        raise ValueError("no bundle")
    (count,), at, found = struct.unpack_from("<Q", bundle, len(MAGIC)), len(MAGIC) + 8, {}
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", bundle, at)
        name, at = bundle[at + 24:at + 24 + length].decode(), at + 24 + length
        if size:
            found[name.split("--")[1]] = bundle[offset:offset + size]
    return found


def judge(bundle):
    kernels = re.findall(r"^GKI_ENTRY (\w+)\(", "".join(path.read_text() for path in SOURCES), re.M)
    parts = parts_of(bundle)
    if sorted(parts) != sorted(hipclang.ARCHITECTURES):
        return f"wanted {sorted(hipclang.ARCHITECTURES)}, found {sorted(parts)}"
    for name, code in parts.items():
        if code[:4] != b"\x7fELF" or struct.unpack_from("<H", code, 18)[0] != OF_AMDGPU or not kernels:
            return f"{name}: no code object of AMD's"
        if hipclang.missing_code(code, kernels):
            return f"{name}: {hipclang.missing_code(code, kernels)}"
    return None


def check_made():
    stale = [name for wanted, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", MADE.read_text(), re.M)
             if sum_of(tap.ROOT / name) != wanted]
    tap.case("the image is made of these sources", stale and
             f"{', '.join(stale)}: changed since; tests/hip/image.py --update, and commit fallback/hip/image")
    tap.case("the image: architectures and kernels", judge(IMAGE.read_bytes()))


def check_compiler():
    name, made = "clang makes the same image", Path("build/hip/kernels.hipfb")
    try:
        wanted, found = re.match(r"# clang (\S+);", MADE.read_text())[1], version()
    except hipclang.Missing as missing:
        return tap.skip(name, missing)
    if found != wanted:
        return tap.skip(name, f"this is clang {found}; it was made by {wanted}")
    problem = make(made)
    same = not problem and made.read_bytes() == IMAGE.read_bytes()
    return tap.case(name, problem or (None if same else "it makes another one: tests/hip/image.py --update"))


def update():
    problem = make(IMAGE) or judge(IMAGE.read_bytes())
    if problem:
        sys.exit(f"image.py: {problem}")
    lines = [f"{sum_of(path)}  {path.relative_to(tap.ROOT).as_posix()}" for path in [*SOURCES, IMAGE]]
    MADE.write_text("\n".join([f"# clang {version()}; see tests/hip/image.py", *lines]) + "\n")


def main():
    if sys.argv[1:] == ["--update"]:
        return update()
    check_made()
    check_compiler()
    return tap.finish()


if __name__ == "__main__":
    main()
