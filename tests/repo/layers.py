#!/usr/bin/env python3
"""The folders of the library are layers: each includes and calls the folders that LAYERS gives it, and no others.

Read from the sources' #include lines and from the symbols of the objects, which are built here where they aren't yet.
A node is x.c and x.h together. Circles of nodes, and includes and calls upwards, are failures, unless DEBTS or UPWARDS
lists them; what these list and isn't there any more is a failure, too, so that the lists only shrink. No string and
no identifier of common/ names a backend, but those in NAMED. Prints TAP, and the longest chain of nodes as a
comment."""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap

BASE = {"common/base"}
LIST = BASE | {"common/list"}
SHARED = BASE | {"common/plan", "common/kernel", "common/lower"}
# Folder: the folders that it may include and call, besides itself and include/.
LAYERS = {
    "common/base": set(),
    "common/list": BASE,
    "common/check": LIST | {"common/kernel"},
    "common/plan": LIST,
    "common/dump": BASE | {"common/plan"},
    "common/kernel": BASE,
    "common/lower": BASE | {"common/plan"},
    "common/runtime": LIST | {"common/check", "common/plan", "common/dump", "common/kernel"},
    "cuda": SHARED,
    "fallback/hip": SHARED,
    "fallback/openmp": SHARED,
    "fallback/vulkan": SHARED,
    "common/info": set(),
    "common/embed": BASE | {"common/kernel"},
}
DEBTS = []
UPWARDS = []
PROGRAMS = {"common/info", "common/embed"}  # they may call all public functions
# What a backend's direct*.c, which offer calls of their own, may call of the runtime.
DIRECT = {"gk_device_state", "gk_graph_state", "gk_graph_create_into", "gk_graph_arm", "gk_graph_disarm",
          "gk_graph_launch"}
INCLUDE_PATHS = ["common", "fallback", "."]  # what build.ninja gives with -I, but for include/
BACKENDS = re.compile(r"(?<![a-z])(?:cuda|hip|vulkan|openmp)(?![a-z])", re.I)
# Where common names a backend: file, how the string or identifier begins, why.
NAMED = [
    ("common/kernel/compose.c", '"cuda"', "a language that gk_compose writes"),
    ("common/kernel/compose.c", '"hip"', "another"),
    ("common/kernel/compose.c", '"gk_compose: the target is', "its message"),
    ("common/kernel/glsl.c", '"%s:%u: kernel %s for Vulkan: ', "the device API for which users write a kernel"),
    ("common/dump/as_text.c", '" more without SWITCH nodes, as before CUDA', "the version is CUDA's"),
]
OBJECTS = ["common/library.ninja", "common/info/info.ninja", "cuda/library.ninja", "fallback/hip/library.ninja",
           "fallback/openmp/library.ninja"]
SUFFIXES = {".c", ".h", ".inc", ".cu", ".def", ".ninja"}


def node(path):
    return str(Path(path).with_suffix(""))


def folder(path):
    return str(Path(path).parent)


def sources():
    """Of the library and of gk-info, relative to the root."""
    for name in ("common", "cuda", "fallback"):
        for path in sorted((tap.ROOT / name).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path.relative_to(tap.ROOT)


def resolve(source, name):
    """The file of ours that `#include "name"` in `source` finds, or None: a public header, or generated."""
    for place in [source.parent, *(Path(path) for path in INCLUDE_PATHS)]:
        if (tap.ROOT / place / name).is_file():
            found = (tap.ROOT / place / name).resolve().relative_to(tap.ROOT.resolve())
            return None if found.parts[0] == "include" else found
    return None


def includes():
    """{(node, node): why}"""
    found = {}
    for source in sources():
        for name in re.findall(r'^#include "(.+)"', (tap.ROOT / source).read_text(), re.M):
            target = resolve(source, name)
            if target and node(target) != node(source):
                found.setdefault((node(source), node(target)), f"{source} includes {target}")
    return found


def objects():
    """{object: its source}"""
    text = "".join((tap.ROOT / name).read_text() for name in OBJECTS)
    found = re.findall(r"^build \$\w+/(?:\S+/)?(\S+\.o): cc (\S+\.c)$", text, re.M)
    return {f"build/{folder(source)}/{made}": source for made, source in found}


def symbols(path, *options):
    listing = subprocess.run(["nm", "-P", *options, path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[0] for line in listing.splitlines()}


def calls():
    """{(node, node): why}"""
    sources_of = objects()
    defined = {name: source for made, source in sources_of.items()
               for name in symbols(made, "-g", "--defined-only")}
    found = {}
    for made, source in sources_of.items():
        for name in sorted(symbols(made, "-u")):
            target = defined.get(name, source)
            public = name.startswith("gk_") and folder(source) in PROGRAMS
            direct = name in DIRECT and Path(source).name.startswith("direct")
            if node(target) != node(source) and not public and not direct:
                found.setdefault((node(source), node(target)), f"{source} needs {name} of {target}")
    return found


def names_of_backends():
    """(file, line, code) of each string and identifier of common/ that names a backend; comments may."""
    token = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])+'|" r'"(?:\\.|[^"\\\n])*"|\w+', re.S)
    for source in sources():
        text = (tap.ROOT / source).read_text()
        for found in token.finditer(text) if source.parts[0] == "common" else ():
            if BACKENDS.search(found[0]) and not found[0].startswith("/"):
                yield str(source), text.count("\n", 0, found.start()) + 1, found[0]


def differ_named():
    """What names a backend and isn't listed, or is listed and isn't there."""
    found, listed = list(names_of_backends()), [(file, begin) for file, begin, _ in NAMED]
    return "\n".join([f"new: {source}:{line}: {code}; let the backend tell it" for source, line, code in found
                      if not any(source == file and code.startswith(begin) for file, begin in listed)] +
                     [f"gone; take it out of NAMED in tests/repo/layers.py: {file}: {begin}" for file, begin in listed
                      if not any(source == file and code.startswith(begin) for source, _, code in found)])


def components(edges):
    """The strongly connected components, callees first: Tarjan's algorithm."""
    index, low, stack, waiting, found = {}, {}, [], set(), []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        waiting.add(at)
        for to in sorted(edges.get(at, ())):
            if to not in index:
                visit(to)
                low[at] = min(low[at], low[to])
            elif to in waiting:
                low[at] = min(low[at], index[to])
        if low[at] == index[at]:
            found.append([])
            while not found[-1] or found[-1][-1] != at:
                found[-1].append(stack.pop())
                waiting.remove(found[-1][-1])

    for at in sorted(edges):
        if at not in index:
            visit(at)
    return found


def longest(edges, parts):
    """The longest chain of nodes in which each needs the next; a circle counts as one."""
    part_of = {at: k for k, part in enumerate(parts) for at in part}
    best = {}
    for k, part in enumerate(parts):  # callees come first
        after = [best[part_of[to]] for at in part for to in edges.get(at, ()) if part_of[to] != k]
        best[k] = [sorted(part)[0]] + max(after, key=len, default=[])
    return max(best.values(), key=len)


def differ(found, listed):
    """What is found and not listed, or listed and not found."""
    return "\n".join([f"new: {line}" for line in found if line not in listed] +
                     [f"gone; take it out of the list in tests/repo/layers.py: {line}" for line in listed
                      if line not in found])


def main():
    is_configured = Path("build/config.ninja").exists()
    problem = None if is_configured else tap.run(sys.executable, "configure.py")
    if not problem and tap.config("vulkan_backend"):
        OBJECTS.append("fallback/vulkan/library.ninja")
    problem = problem or tap.run("ninja", *objects())
    if not tap.case("the objects are built", problem):
        tap.finish()
    needs = {**calls(), **includes()}
    folders = {folder(at) for pair in needs for at in pair}
    tap.case("each folder has its layer", "\n".join(sorted(folders - set(LAYERS))))
    upwards = sorted(why for (at, to), why in needs.items()
                     if folder(to) != folder(at) and folder(to) not in LAYERS.get(folder(at), set()))
    tap.case("nothing includes or calls upwards", differ(upwards, UPWARDS))
    tap.case("common names no backend", differ_named())
    edges = {}
    for at, to in needs:
        edges.setdefault(at, set()).add(to)
    parts = components(edges)
    circles = sorted(sorted(part) for part in parts if len(part) > 1)
    tap.case("no circles of files", differ([" ".join(part) for part in circles], DEBTS))
    print("# the longest chain: " + " > ".join(longest(edges, parts)))
    tap.finish()


if __name__ == "__main__":
    main()
