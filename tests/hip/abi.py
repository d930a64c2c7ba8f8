#!/usr/bin/env python3
"""fallback/hip/abi.h says of HIP and hipRTC what AMD's headers say: values, sizes and places of structs and of
their members, types of functions. Compared with the headers that are installed (Debian has those of HIP 5). TAP.

Two C++ programs print the same facts, one with abi.h, the other with AMD's headers. What isn't understood in abi.h is a
failure; and so is a wrong declaration that the comparison doesn't see. Headers of HIP 5 lack the newer layout of
hipDeviceProp_t: its 1472 bytes and byte 1160 are what hip-python 7.2.2 of PyPI has, compiled with AMD's headers."""
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

HEADER = tap.ROOT / "fallback/hip/abi.h"
INSTALLED = [Path("/usr/include"), Path("/opt/rocm/include")]
# What gk has under another name, or of another type than AMD's: a parameter that is a pointer to a struct of theirs.
OTHERS = {"GKI_HIP_STREAM_NON_BLOCKING": "hipStreamNonBlocking", "GKI_HIP_EVENT_BLOCKING_SYNC": "hipEventBlockingSync",
          "GKI_HIP_EVENT_DISABLE_TIMING": "hipEventDisableTiming",
          "GKI_HIP_STREAM_PER_THREAD": "(size_t)hipStreamPerThread",
          "GKI_HIP_HOST_MALLOC_PORTABLE": "hipHostMallocPortable", "GKI_HIP_HOST_MALLOC_MAPPED": "hipHostMallocMapped",
          "GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER": "(size_t)HIP_LAUNCH_PARAM_BUFFER_POINTER",
          "GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE": "(size_t)HIP_LAUNCH_PARAM_BUFFER_SIZE",
          "GKI_HIP_LAUNCH_PARAM_END": "(size_t)HIP_LAUNCH_PARAM_END", "GKI_HIP_PROPERTIES_5": "sizeof(hipDeviceProp_t)",
          "GKI_HIP_ARCHITECTURE_5": "offsetof(hipDeviceProp_t, gcnArchName)",
          "GKI_HIP_NAME_BYTES": "sizeof(hipDeviceProp_t::gcnArchName)",
          "GKI_HIP_POINTER_ATTRIBUTES": "sizeof(hipPointerAttribute_t)", "gki_hip_dim3": "dim3"}
LAYOUT_6 = {"GKI_HIP_PROPERTIES_6": 1472, "GKI_HIP_ARCHITECTURE_6": 1160}  # of AMD's header of HIP 6, compiled
NEWER = {*LAYOUT_6, "hipGetDevicePropertiesR0600"}  # than Debian's headers
SAME = [("12gki_hip_dim3", "4dim3"), ("P15hipDeviceProp_t", "Pv"),
        ("P21hipPointerAttribute_t", "Pv")]  # in the names of types

OURS = """#include "abi.h"
#define ENTRY(need, type, name, parameters) typedef type(*gki_type_##name) parameters;
GKI_HIP_ENTRIES(ENTRY)
#define FUNCTION(type, name, parameters) typedef type(*gki_type_##name) parameters;
GKI_HIPRTC_ENTRIES(FUNCTION)
"""
THEIRS = """#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
"""
PROGRAM = """#include <cstddef>
#include <cstdio>
#include <typeinfo>
@includes@
int main() {
@facts@
}
"""


def parse(header):
    """Values, types, (struct, member), functions; and what is left of the text: nothing, if all was understood."""
    values, types, members, functions, rest = [], [], [], [], []

    def take(text, pattern, seen):
        return re.sub(pattern, lambda match: seen(match) or "", text, flags=re.M | re.S)

    def enumeration(match):
        values.extend(re.findall(r"(\w+)\s*=", match[1]))
        types.extend([match[2]] if match[2] else [])

    def struct(match):
        types.append(match[2])
        for names in re.findall(r"(\w+(?:, \w+)*);", match[1]):
            members.extend((match[2], name) for name in names.split(", "))

    def entries(match):
        rest.append(take(match[1], r"X\((?:(?:ALL|ONE), )?[\w *]+, (\w+), +\([^()]*\)\)",
                         lambda m: functions.append(m[1])))

    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S).replace("\\\n", " ")
    text = take(text, r"^#define GKI_HIP(?:RTC)?_ENTRIES\(X\)([^\n]*)$", entries)
    text = take(text, r"^(?:typedef )?enum\s*\w*\s*{([^}]*)}\s*(\w*);", enumeration)
    text = take(text, r"^typedef struct \w+ {([^{}]*)}\s*(\w+);", struct)
    text = take(text, r"^typedef [\w *]+?(\w+);", lambda m: types.append(m[1]))
    text = re.sub(r'^#(?:ifn?def|endif|define GKI_HIP_ABI_H|include).*$', "", text, flags=re.M)
    return (values, types, members, functions), "".join(rest + [text]).strip()


def facts(declared, is_ours):
    """Statements that print a line each; the lines of the one and of the other program must agree."""
    return "\n".join(each_fact(declared, is_ours))


def each_fact(declared, is_ours):
    values, types, members, functions = declared

    def name_of(name):
        return name if is_ours else OTHERS.get(name, name)

    def typename(fact, kind):
        return f'std::printf("{fact}: %s\\n", typeid({kind}).name());'
    for name in values:
        if name not in NEWER:
            yield f'std::printf("{name}: %lld\\n", (long long){name_of(name)});'
    for name in types:
        yield typename(name, name_of(name))
        yield f'std::printf("{name}: %zu bytes, aligned to %zu\\n", sizeof({name_of(name)}), alignof({name_of(name)}));'
    for kind, name in members:
        yield f'std::printf("{kind}.{name}: at %zu\\n", offsetof({name_of(kind)}, {name}));'
        yield typename(f"{kind}.{name}", f"decltype({name_of(kind)}::{name})")
    for name in functions:
        if name not in NEWER:
            yield typename(name, f"gki_type_{name}" if is_ours else f"decltype(&{name})")


@functools.lru_cache(maxsize=None)
def printed(compiler, includes, statements, folder):
    """The lines that the program prints, and what is wrong, if it doesn't compile."""
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name) / "facts.cpp", Path(name) / "facts"
        source.write_text(PROGRAM.replace("@includes@", includes).replace("@facts@", statements))
        problem = tap.run(compiler, "-std=c++17", "-w", f"-I{folder}", source, "-o", program)
        if problem:
            return [], problem
        text = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    for one, other in SAME:
        text = text.replace(one, other)
    return text.splitlines(), None


def compare(compiler, header, folder):
    """What is wrong with a text of abi.h, or None."""
    declared, left = parse(header)
    wrong = [f"not understood, hence not compared: {left}"] if left else []
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "abi.h").write_text(header)
        ours, problem = printed(compiler, OURS, facts(declared, True), name)
    real, real_problem = printed(compiler, THEIRS, facts(declared, False), folder)
    wrong += [text for text in (problem, real_problem) if text]
    if not problem and not real_problem:
        wrong += [f"gk has {one}, HIP has {other}" for one, other in zip(ours, real) if one != other]
        if len(ours) != len(real) or len(ours) < 100:
            wrong.append(f"{len(ours)} facts of gk's, {len(real)} of HIP's")
    return "\n".join(wrong) or None


# Errors that it must see.
PLANTED = [
    ("a wrong value", "hipErrorNotReady = 600", "hipErrorNotReady = 601", "hipErrorNotReady: 601, HIP"),
    ("a wrong attribute", "hipDeviceAttributeWarpSize = 87", "hipDeviceAttributeWarpSize = 86", "WarpSize: 86, HIP"),
    ("a wrong value of a macro", "GKI_HIP_LAUNCH_PARAM_END = 3", "GKI_HIP_LAUNCH_PARAM_END = 0", "PARAM_END: 0, HIP"),
    ("a wrong place of the architecture", "GKI_HIP_ARCHITECTURE_5 = 396", "GKI_HIP_ARCHITECTURE_5 = 400",
     "GKI_HIP_ARCHITECTURE_5: 400, HIP"),
    ("a name that there isn't", "hipErrorNotFound", "hipErrorNotFund", "hipErrorNotFund"),
    ("members in another order", "  void **extra;\n  void *func;\n", "  void *func;\n  void **extra;\n",
     "hipKernelNodeParams.func: at"),
    ("a missing member", "  unsigned int sharedMemBytes;\n", "", "hipKernelNodeParams: 5"),
    ("a parameter of another type", "(void **memory, size_t bytes))", "(void **memory, unsigned bytes))",
     "hipMalloc: "),
    ("a parameter without const", "(hipModule_t *module, const void *image)", "(hipModule_t *module, void *image)",
     "hipModuleLoadData: "),
    ("a result of hipRTC", "X(const char *, hiprtcGetErrorString", "X(char *, hiprtcGetErrorString",
     "hiprtcGetErrorString: "),
    ("a declaration that it doesn't know", "typedef void *hipDeviceptr_t;",
     "typedef void *hipDeviceptr_t;\nextern int other;",
     "not understood, hence not compared: extern int other;"),
]


def main():
    compiler = shutil.which("g++") or shutil.which("clang++")
    folder = next((place for place in INSTALLED if (place / "hip/hip_runtime_api.h").exists()), None)
    name = "fallback/hip/abi.h agrees with the headers that are installed"
    if not compiler or not folder:
        tap.skip(name, "HIP's headers aren't installed" if compiler else "there is neither g++ nor clang++")
        tap.finish()
    header = HEADER.read_text()
    found = {key: int(value) for key, value in re.findall(r"(GKI_HIP_\w+_6) = (\d+)", header)}
    tap.case("the layout of hipDeviceProp_t in HIP 6", None if found == LAYOUT_6 else f"{found}, not {LAYOUT_6}")
    if tap.case(name, compare(compiler, header, folder)):
        for what, right, wrong, wanted in PLANTED:
            if header.count(right) != 1:
                tap.case(f"sees {what}", f"{right} is in {HEADER} {header.count(right)} times, not once")
                continue
            seen = compare(compiler, header.replace(right, wrong), folder)
            tap.case(f"sees {what}", None if wanted in (seen or "") else f"wanted {wanted} in:\n{seen}")
    tap.finish()


if __name__ == "__main__":
    main()
