#!/usr/bin/env python3
"""Builds the small program in flags/ with gcc and clang in every way in which embedding a file's text may go wrong, and
runs it. Prints TAP; what a compiler here can't do at all (LTO without its plugin) is skipped and says so."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap

HERE = tap.ROOT / "tests/kernels/flags"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SOURCES = ["main.c", "other.c"]

WAYS = {
    "-O0": ["-O0", "-g"],
    "-O2": ["-O2"],
    "-O3, gnu17": ["-O3", "-std=gnu17"],
    "-fPIC": ["-O2", "-fPIC"],
    "-fPIE -pie": ["-O2", "-fPIE", "-pie"],
    "-no-pie": ["-O2", "-fno-pie", "-no-pie"],
    "-static": ["-O2", "-static"],
    "-pipe": ["-O2", "-pipe"],
    "-save-temps": ["-O2", "-save-temps"],
    "-fvisibility=hidden": ["-O2", "-fvisibility=hidden"],
    "sections collected": ["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
    "-fsanitize=address,undefined": ["-O1", "-fsanitize=address,undefined"],
    "-flto": ["-O2", "-flto"],
    "-flto, one partition": ["-O2", "-flto", "-flto-partition=one"],
    "-flto, many partitions": ["-O2", "-flto", "-flto-partition=max"],
    "-flto=thin": ["-O2", "-flto=thin"],
}
# Slips in a parameter list, and what a compiler shall say about them, in few lines.
SLIPS = {
    "inuot(float, y)": "(inuot(float, y))): each parameter is in, out, inout, atomic, value or sum of (type, name)",
    "out(float *, y)": "float * y: the type must be int, uint, int64_t, float, double or a struct",
    "sum(int64_t, y)": "sum(int64_t, y): the type must be int, uint, float or double",
    "atomic(int64_t, y)": "atomic(int64_t, y): the type must be int, uint, float, double, or a struct of these",
    "out(char, y)": "char y: the type must be int, uint, int64_t, float, double or a struct",
    "value(unsigned long, y)": "unsigned long y: the type must be",
}
ONLY = {"-flto, one partition": "gcc", "-flto, many partitions": "gcc", "-flto=thin": "clang"}

def build_and_run(compiler, folder, flags, sources, cwd=None):
    error = tap.run(compiler, *STRICT, f"-I{tap.ROOT}/include", *flags, *sources, "-o", folder / "program", "-lm",
                    cwd=cwd or folder)
    return error or tap.run(folder / "program", cwd=folder)


def copy_sources(folder):
    for source in HERE.iterdir():
        shutil.copy(source, folder)


def each_way(compiler, folder):
    for name, flags in WAYS.items():
        if ONLY.get(name, compiler) != compiler:
            continue
        (folder / "empty.c").write_text("int main(void) { return 0; }\n")
        unable = tap.run(compiler, *flags, "empty.c", "-o", "empty", cwd=folder)
        sources = [str(HERE / source) for source in SOURCES]
        if unable:
            tap.skip(f"{compiler}: {name}", "it can't build an empty program so")
        else:
            tap.case(f"{compiler}: {name}", build_and_run(compiler, folder, flags, sources))


def from_everywhere(compiler, folder):
    """__FILE__ is as the file was found: relative to where the compiler runs, or by -I."""
    inside = folder / "a b/src"
    inside.mkdir(parents=True)
    copy_sources(inside)
    tap.case(f"{compiler}: in its folder", build_and_run(compiler, folder, ["-O2"], SOURCES, inside))
    tap.case(f"{compiler}: from above, a blank in the path",
         build_and_run(compiler, folder, ["-O2"], [f"a b/src/{source}" for source in SOURCES]))
    tap.case(f"{compiler}: from beside",
         build_and_run(compiler, folder, ["-O2"], [f"../src/{source}" for source in SOURCES], inside.parent / "src"))
    for header in ("cloth.h", "vec.h"):
        (folder / "include").mkdir(exist_ok=True)
        shutil.move(inside / header, folder / "include" / header)
    tap.case(f"{compiler}: headers by a relative -I",
         build_and_run(compiler, folder, ["-O2", "-I../../include"], SOURCES, inside))
    tap.case(f"{compiler}: headers by -isystem",
         build_and_run(compiler, folder, ["-O2", "-isystem", f"{folder}/include"], SOURCES, inside))


TWIN = """#include "gk_kernel.h"
%(kernel)s
const gk_kernel *twin_%(number)s(void);
const gk_kernel *twin_%(number)s(void) { return &twin; }
"""
TWIN_KERNEL = "GK_SOURCE(twin)\nGK_KERNEL(twin, (out(int, y))) { y[i] = %s; }\nGK_SOURCE_END"
TWINS_MAIN = """#include "gk_kernel.h"
const gk_kernel *twin_1(void), *twin_2(void);
static int is_own(const gk_source *source) { return source->own && strcmp(source->own, source->text) == 0; }
int main(void) {
  const gk_source *one = twin_1()->source, *two = twin_2()->source;
  return !one->own || !two->own || is_own(one) + is_own(two) != 1;
}
"""


def twins(compiler, folder):
    """Two files of one name, path and length: the linker takes one text for both, and each knows its own."""
    main_file = folder / "twins_main.c"
    main_file.write_text(TWINS_MAIN)
    for flags in (["-O0"], ["-O2", "-fPIC"], ["-O2", "-static"], ["-O1", "-fsanitize=address,undefined"]):
        for header in (False, True):
            objects, error = [], None
            for number in ("1", "2"):
                inside = folder / f"twin{number}"
                inside.mkdir(exist_ok=True)
                kernel = TWIN_KERNEL % number
                (inside / "twin.h").write_text(f"{kernel}\n")
                text = TWIN % {"kernel": '#include "twin.h"' if header else kernel, "number": number}
                (inside / "twin.c").write_text(text)
                objects.append(str(inside / "twin.o"))
                error = error or tap.run(compiler, *STRICT, f"-I{tap.ROOT}/include", *flags, "-c", "twin.c", cwd=inside)
            tap.case(f"{compiler}: {'headers' if header else 'files'} of two folders, {' '.join(flags)}",
                     error or build_and_run(compiler, folder, flags, [str(main_file), *objects]))


def with_prefix_map(compiler, folder):
    """The file isn't found by its new name: an error, never a program without its text; then the build writes it."""
    moved = folder / "moved"
    moved.mkdir()
    copy_sources(moved)
    flags = ["-O2", f"-ffile-prefix-map={moved}=/elsewhere"]
    sources = [str(moved / source) for source in SOURCES]
    error = build_and_run(compiler, folder, flags, sources)
    good = error and "/elsewhere/" in error
    tap.case(f"{compiler}: -ffile-prefix-map is an error", None if good else error or "it was built")
    for name, file in (("vec", "vec.h"), ("cloth", "cloth.h"), ("here", "main.c")):
        text = subprocess.run([sys.executable, tap.ROOT / "common/embed_text.py", moved / file, name], check=True,
                              stdout=subprocess.PIPE).stdout
        (folder / f"{name}_text.c").write_bytes(text)
        sources.append(str(folder / f"{name}_text.c"))
    tap.case(f"{compiler}: -ffile-prefix-map, text by embed_text.py",
         build_and_run(compiler, folder, flags + ["-DGK_TEXT_GENERATED"], sources))
    lto = flags + ["-DGK_TEXT_GENERATED", "-flto"]
    if not tap.run(compiler, "-flto", "empty.c", "-o", "empty", cwd=folder):
        tap.case(f"{compiler}: the same with -flto", build_and_run(compiler, folder, lto, sources))


FULL_TEXT = r"""/* more than
one line */ int a; // and one
#define LONG(x) \
  /* amid a macro */ \
  (x) /**/
#ifdef HOST /* host */
#if 1
int b;
#else
int c;
#endif
#elif 1
char d[] = "/* text \" // ", e = '"'; /* "no" */
#else
int f;
#endif
#ifdef HOST
int g;
#endif
"""
BARE_TEXT = r"""
int a;
#define LONG(x) \
\
(x)
#ifdef HOST





#elif 1
char d[] = "/* text \" // ", e = '"';
#else
int f;
#endif
#ifdef HOST

#endif
"""


def bare_text(folder):
    (folder / "full").write_text(FULL_TEXT)
    (folder / "bare").write_text(BARE_TEXT)
    embed = [sys.executable, tap.ROOT / "common/embed_text.py"]
    made, wanted = (subprocess.run([*embed, folder / file, "name", *more], check=True, stdout=subprocess.PIPE).stdout
                    for file, more in (("full", ["--bare=#ifdef HOST"]), ("bare", [])))
    tap.case("embed_text.py --bare", None if made == wanted else made.decode())
    said = tap.run(*embed, folder / "full", "name", "--bare=#ifdef NONE")
    tap.case("embed_text.py --bare, no such directive", None if said and "there is no #ifdef NONE" in said else said)


# Slips around a kernel: C or C++, the text, what is said in one error. DEEP is a list of 17 parameters.
DEEP = ", ".join(f"in(float, x{k})" for k in range(16)) + ", out(float, y)"
AROUND = {
    "no parameter": ("c", "GK_SOURCE(slip)\nGK_KERNEL(bad, ()) { }\n", "and there is one at least"),
    "17 parameters": ("c", f"GK_SOURCE(slip)\nGK_KERNEL(bad, ({DEEP})) {{ y[i] = x0[i]; }}\n",
                      "the kernel bad has more than 16 parameters; put some of them into a GK_STRUCT"),
    "no GK_SOURCE": ("c", "\nGK_KERNEL(bad, (out(float, y))) { y[i] = 0.0f; }\n",
                     "gki_one_GK_SOURCE_in_a_file_above_its_GK_KERNELs_or_define_GK_THIS_SOURCE"),
    "two GK_SOURCEs": ("c", "GK_SOURCE(slip)\nGK_SOURCE(other)\n",
                       "gki_one_GK_SOURCE_in_a_file_above_its_GK_KERNELs_or_define_GK_THIS_SOURCE"),
    "GK_FILL of a float": ("c", "enum { Y = 1, N };\ngk_task fill = GK_FILL(Y, N, 1.5f);\n", "use_GK_FILL_F32"),
    "a kernel in C++": ("cpp", "GK_SOURCE(slip)\nGK_KERNEL(bad, (in(float, x), out(float, y))) { y[i] = x[i]; }\n",
                        "GK_KERNEL(bad, ...) is C: write it in a .c file"),
}


def explained(compiler, folder, name, dialect, text, message, lines):
    (folder / name).write_text(f'#include "gk_kernel.h"\n{text}')
    said = tap.run(compiler, dialect, f"-I{tap.ROOT}/include", "-c", name, cwd=folder)
    errors = len(re.findall(r"\berror: ", said or ""))
    good = said and message in said and f"{name}:3:" in said and len(said.splitlines()) < lines and errors == 1
    return None if good else said or "it was taken"


def slips(compiler, folder):
    for parameter, message in SLIPS.items():
        text = f"GK_SOURCE(slip)\nGK_KERNEL(bad, ({parameter}, in(float, x))) {{ }}\n"
        tap.case(f"{compiler}: {parameter} is explained",
                 explained(compiler, folder, "slip.c", "-std=c11", text, message, 48))
    for what, (language, text, message) in AROUND.items():
        command = compiler.replace("gcc", "g++").replace("clang", "clang++") if language == "cpp" else compiler
        if not shutil.which(command):
            tap.skip(f"{compiler}: {what} is explained", f"{command} isn't installed")
            continue
        dialect = "-std=c++20" if language == "cpp" else "-std=c11"
        tap.case(f"{compiler}: {what} is explained",
                 explained(command, folder, f"slip.{language}", dialect, text, message, 48))


def in_a_library(compiler, folder):
    error = tap.run(compiler, *STRICT, "-O2", "-fPIC", "-shared", "-Wl,-z,defs", f"-I{tap.ROOT}/include",
                    HERE / "other.c", "-o", "libother.so", "-lm", cwd=folder)
    tap.case(f"{compiler}: the same text in a shared library and a program", error or build_and_run(
        compiler, folder, ["-O2"], [str(HERE / "main.c"), "libother.so", "-Wl,-rpath,."]))


def for_aarch64(folder):
    """The assembler of another machine takes the directives; an object file, as there is nothing to run it."""
    (folder / "math.h").write_text("")
    (folder / "string.h").write_text("#include <stddef.h>\nvoid *memcpy(void *to, const void *from, size_t bytes);\n")
    (folder / "plain.c").write_text("int zero;\n")
    command = ["clang", "--target=aarch64-linux-gnu", "-O2", "-ffreestanding", "-nostdlibinc", f"-I{folder}",
               f"-I{tap.ROOT}/include", "-c"]
    if tap.run(*command, "plain.c", "-o", "plain.o", cwd=folder):
        return tap.skip("clang: for aarch64", "clang here has no aarch64")
    error = tap.run(*command, HERE / "other.c", "-o", "other.o", cwd=folder)
    if not error and b"GK_SOURCE(cloth, &vec)" not in (folder / "other.o").read_bytes():
        error = "the text isn't in the object file"
    return tap.case("clang: for aarch64", error)


def main():
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            tap.skip(compiler, f"there is no {compiler} in PATH")
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for check in (each_way, from_everywhere, twins, with_prefix_map, in_a_library, slips):
                check(compiler, folder)
    with tempfile.TemporaryDirectory() as name:
        bare_text(Path(name))
    if shutil.which("clang"):
        with tempfile.TemporaryDirectory() as name:
            for_aarch64(Path(name))
    tap.finish()


if __name__ == "__main__":
    main()
