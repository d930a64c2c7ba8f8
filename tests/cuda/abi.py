#!/usr/bin/env python3
"""cuda/abi.h says of CUDA's driver API and of NVRTC what their own headers say: every value, every struct's size,
alignment and members, every function's type at the version that cuGetProcAddress is asked for. Compared with the
headers of 12.4, from PyPI, and of the toolkit that is installed; so does tests/simgpu/simgpu.h of the entries that only
tests need. What cuda/abi.h asks a driver for is what gk calls. Prints TAP.

Two C++ programs print the same facts, one with cuda/abi.h, the other with cuda.h, cudaTypedefs.h and nvrtc.h. What the
comparison doesn't understand in cuda/abi.h is a failure; and so is a wrong declaration that it doesn't see."""
import functools
import re
import shutil
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import toolkits
from toolkits import tap

HEADER = tap.ROOT / "cuda/abi.h"
FOR_TESTS = tap.ROOT / "tests/simgpu/simgpu.h"
OLDEST_DRIVER = 11040
# Named from that version on; older headers aren't asked.
NEWER = {"CU_GRAPH_COND_TYPE_SWITCH": 12080, "CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED": 12080}
# Structs that newer headers made longer, inside of a union whose size stays.
GROWN = {"CUDA_CHILD_GRAPH_NODE_PARAMS"}
# Their names for what gk's header calls otherwise, with the version of the type.
POINTERS = {"gki_cuGetProcAddress": "PFN_cuGetProcAddress_v11030",
            "gki_cuGetProcAddress_v2": "PFN_cuGetProcAddress_v12000"}

Declared = namedtuple("Declared", "values types members pointers entries functions")
Entry = namedtuple("Entry", "name version since")

PROGRAM = """#include <cstddef>
#include <cstdio>
#include <typeinfo>
@includes@
int main() {
@facts@
}
"""


# ---- what cuda/abi.h declares ---------------------------------------------------------------------------------------

def take(text, pattern, seen):
    """Hands each match to `seen`; the text without them."""
    def one(match):
        seen(match)
        return ""
    return re.sub(pattern, one, text, flags=re.M | re.S)


def parse(header):
    """A Declared, and what is left of the text: nothing, if all was understood."""
    found = Declared([], [], [], [], [], [])
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S).replace("\\\n", " ")

    def enumeration(match):
        found.values.extend(re.findall(r"(\w+)\s*=", match[1]))
        if match[2]:
            found.types.append(match[2])

    def struct(match):
        body = re.sub(r"union\s*{(.*?)}\s*;", r"\1", match[1], flags=re.S)
        found.types.append(match[2])
        found.members.extend((match[2], name) for name in re.findall(r"(\w+)(?:\[\d+\])?\s*;", body))

    def entries(match):
        left = take(match[1], r"X\((\w+), (\d+), (\d+), +\([^()]*\)\)",
                    lambda m: found.entries.append(Entry(m[1], int(m[2]), int(m[3]))))
        rest.append(left)

    def functions(match):
        rest.append(take(match[1], r"X\([\w *]+, (\w+), +\([^()]*\)\)", lambda m: found.functions.append(m[1])))

    rest = []
    text = re.sub(r"^typedef struct (\w+)_st \1;$", "", text, flags=re.M)  # theirs to define; types of entries have it
    text = take(text, r"^#define (?:GKI_CUDA|SIMGPU)_ENTRIES\(X\)([^\n]*)$", entries)
    text = take(text, r"^#define GKI_NVRTC_ENTRIES\(X\)([^\n]*)$", functions)
    text = take(text, r"^(?:typedef )?enum\s*\w*\s*{([^}]*)}\s*(\w*);", enumeration)
    text = take(text, r"^typedef struct \w+ {((?:[^{}]|{[^{}]*})*)}\s*(\w+);", struct)
    text = take(text, r"^typedef \w+ \(\*(\w+)\)\([^()]*\);", lambda m: found.pointers.append(m[1]))
    text = take(text, r"^typedef [\w *]+?(\w+);", lambda m: found.types.append(m[1]))
    text = re.sub(r'^#(?:ifn?def|endif|define GKI_CUDA_ABI_H|include).*$|^extern "C" {|^}$', "", text, flags=re.M)
    return found, "".join(rest + [text]).strip()


# ---- facts ----------------------------------------------------------------------------------------------------------

def theirs(name):
    return name.removeprefix("GKI_")


def facts(declared, version, is_ours):
    """Statements that print a line each; the lines of the one and of the other program must agree."""
    return "\n".join(each_fact(declared, version, is_ours))


def each_fact(declared, version, is_ours):
    def typename(fact, kind):
        return f'std::printf("{fact}: %s\\n", typeid({kind}).name());'
    known = [name for name in declared.values if NEWER.get(name, 0) <= version]
    for name in known:
        yield f'std::printf("{name}: %lld\\n", (long long){name if is_ours else theirs(name)});'
    for name in declared.types:
        yield typename(name, name)
        if name not in GROWN:
            yield f'std::printf("{name}: %zu bytes, aligned to %zu\\n", sizeof({name}), alignof({name}));'
    for kind, name in declared.members:
        yield f'std::printf("{kind}.{name}: at %zu\\n", offsetof({kind}, {name}));'
        yield typename(f"{kind}.{name}", f"decltype({kind}::{name})")
    for name in declared.pointers:
        yield typename(name, name if is_ours else POINTERS.get(name, name))
    for entry in declared.entries:
        yield typename(f"{entry.name} {entry.version}",
                       f"gki_type_{entry.name}" if is_ours else f"PFN_{entry.name}_v{entry.version}")
    for name in declared.functions:
        yield typename(name, f"gki_type_{name}" if is_ours else f"decltype(&{name})")


OURS = """#include "abi.h"
#define ENTRY(name, version, since, parameters) typedef CUresult(*gki_type_##name) parameters;
GKI_CUDA_ENTRIES(ENTRY) SIMGPU_ENTRIES(ENTRY)
#define FUNCTION(type, name, parameters) typedef type(*gki_type_##name) parameters;
GKI_NVRTC_ENTRIES(FUNCTION)
"""
THEIRS = "#include <cuda.h>\n#include <cudaTypedefs.h>\n#include <nvrtc.h>\n"


@functools.lru_cache(maxsize=None)
def printed(compiler, includes, statements, folders):
    """The lines that the program prints, and what is wrong, if it doesn't compile."""
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name) / "facts.cpp", Path(name) / "facts"
        source.write_text(PROGRAM.replace("@includes@", includes).replace("@facts@", statements))
        problem = tap.run(compiler, "-std=c++17", "-w", *(f"-I{folder}" for folder in folders), source, "-o", program)
        if problem:
            return [], problem
        return subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines(), None


def text_for_tests():
    """What simgpu.h declares of the driver API, beyond cuda/abi.h."""
    return FOR_TESTS.read_text().split("/* Entries that gk never calls", 1)[1].split("#ifdef", 1)[0].split("*/", 1)[1]


def never_called():
    """Entries that each driver must have, and no line of gk's calls, or finds by dlsym."""
    sources = "".join(path.read_text() for path in HEADER.parent.glob("*.c"))
    entries = parse(HEADER.read_text())[0].entries
    return [entry.name for entry in entries if not re.search(rf"(?:->|\.|\"){entry.name}\b", sources)]


def compare(compiler, header, folders):
    """What is wrong with a text of cuda/abi.h, or None."""
    version = toolkits.version_of(folders)
    declared, left = parse(header)
    wrong = [f"not understood, hence not compared: {left}"] if left else []
    for entry in declared.entries:
        since = entry.version if entry.version > OLDEST_DRIVER else 0
        if entry.since != since:
            wrong.append(f"{entry.name} {entry.version}: `since` is {entry.since}, it must be {since}")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "abi.h").write_text(header)
        ours, problem = printed(compiler, OURS, facts(declared, version, True), (name,))
    real, real_problem = printed(compiler, THEIRS, facts(declared, version, False), tuple(folders))
    wrong += [text for text in (problem, real_problem) if text]
    if not problem and not real_problem:
        wrong += [f"gk has {one}, CUDA has {other}" for one, other in zip(ours, real) if one != other]
        if len(ours) != len(real) or len(ours) < 200:
            wrong.append(f"{len(ours)} facts of gk's, {len(real)} of CUDA's")
    return "\n".join(wrong) or None


# ---- errors that it must see ----------------------------------------------------------------------------------------

PLANTED = [
    ("a wrong value", "CU_GRAPH_NODE_TYPE_CONDITIONAL = 13", "CU_GRAPH_NODE_TYPE_CONDITIONAL = 12",
     "CU_GRAPH_NODE_TYPE_CONDITIONAL: 12, CUDA has CU_GRAPH_NODE_TYPE_CONDITIONAL: 13"),
    ("a wrong value of a macro", "GKI_CU_MEMHOSTALLOC_DEVICEMAP = 2", "GKI_CU_MEMHOSTALLOC_DEVICEMAP = 4",
     "GKI_CU_MEMHOSTALLOC_DEVICEMAP: 4, CUDA"),
    ("a name that there isn't", "CUDA_ERROR_NOT_READY", "CUDA_ERROR_NOT_REDY", "CUDA_ERROR_NOT_REDY"),
    ("a wrong value of NVRTC", "NVRTC_ERROR_COMPILATION = 6", "NVRTC_ERROR_COMPILATION = 7", "COMPILATION: 7, CUDA"),
    ("members in another order", "  unsigned int size;\n  CUgraph *phGraph_out;\n",
     "  CUgraph *phGraph_out;\n  unsigned int size;\n", "CUDA_CONDITIONAL_NODE_PARAMS.size: at"),
    ("a missing member", "  CUgraph *phGraph_out;\n  CUcontext ctx;\n", "  CUgraph *phGraph_out;\n",
     "CUDA_CONDITIONAL_NODE_PARAMS: 24 bytes"),
    ("a member of another type", "  cuuint64_t flags;\n", "  cuuint64_t *flags;\n",
     "CUDA_GRAPH_INSTANTIATE_PARAMS.flags: "),
    ("a shorter array", "reserved1[29]", "reserved1[28]", "CUgraphNodeParams: 248 bytes"),
    ("another type", "typedef unsigned long long CUdeviceptr;", "typedef unsigned long CUdeviceptr;", "CUdeviceptr: m"),
    ("a parameter of another type", "(CUdeviceptr *memory, size_t bytes)", "(CUdeviceptr *memory, unsigned bytes)",
     "cuMemAlloc 3020: "),
    ("a parameter without const", "(CUmodule *module, const void *image,", "(CUmodule *module, void *image,",
     "cuModuleLoadDataEx 2010: "),
    ("a missing parameter", "const CUgraphEdgeData *edges, size_t count, \\\n     CUgraphNodeParams",
     "size_t count, \\\n     CUgraphNodeParams", "cuGraphAddNode 12030: "),
    ("a version with other parameters", "cuGraphAddNode, 12030, 12030", "cuGraphAddNode, 12020, 12020",
     "cuGraphAddNode 12020: "),
    ("a version that there isn't", "cuMemAlloc, 3020", "cuMemAlloc, 3010", "PFN_cuMemAlloc_v3010"),
    ("too early a driver", "cuGraphExecNodeSetParams, 12020, 12020", "cuGraphExecNodeSetParams, 12020, 0",
     "`since` is 0, it must be 12020"),
    ("a parameter of cuGetProcAddress", "int version, cuuint64_t flags);", "int version, unsigned flags);",
     "gki_cuGetProcAddress: "),
    ("a parameter of NVRTC", "(int *major, int *minor)", "(int *major, unsigned *minor)", "nvrtcVersion: "),
    ("a result of NVRTC", "X(const char *, nvrtcGetErrorString", "X(char *, nvrtcGetErrorString",
     "nvrtcGetErrorString: "),
    ("a parameter of what only tests call", "(CUgraph *clone, CUgraph graph)", "(CUgraph *clone, CUgraph *graph)",
     "cuGraphClone 10000: "),
    ("a declaration that it doesn't know", "typedef int CUdevice;", "typedef int CUdevice;\nextern int other;",
     "not understood, hence not compared: extern int other;"),
]


def check_errors_are_seen(compiler, header, folders):
    for what, right, wrong, wanted in PLANTED:
        if header.count(right) != 1:
            tap.case(f"sees {what}", f"{right} is in {HEADER} {header.count(right)} times, not once")
            continue
        seen = compare(compiler, header.replace(right, wrong), folders)
        tap.case(f"sees {what}", None if wanted in (seen or "") else f"wanted {wanted} in:\n{seen}")


def main():
    compiler = shutil.which("g++") or shutil.which("clang++")
    unused = never_called()
    tap.case("each entry that a driver must have is called", unused and "gk never calls " + ", ".join(unused))
    header, compared = HEADER.read_text() + text_for_tests(), []
    for what, find in (("12.4", toolkits.headers_of_oldest), ("the toolkit installed", lambda: [
            toolkits.installed() / "include"])):
        name = f"cuda/abi.h and tests/simgpu/simgpu.h agree with the headers of {what}"
        try:
            folders = find()
        except toolkits.Missing as reason:
            tap.skip(name, reason)
            continue
        if not compiler:
            tap.skip(name, "there is neither g++ nor clang++")
            continue
        if tap.case(name, compare(compiler, header, folders)):
            compared.append(folders)
    if compared:
        check_errors_are_seen(compiler, header, compared[0])
    tap.finish()


if __name__ == "__main__":
    main()
