#!/usr/bin/env python3
"""Installs this build tree and builds README's program against it: by pkg-config and CMake, shared and static."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import installed_docs
import tap

STAGE = Path("build/stage").absolute()
WORK = Path("build/installed").absolute()
SAYS = "300 steps, 6675 bounces, 4 yields\n"


def readme_program():
    """The first program in README.md."""
    found = re.search(r"^```c\n(.*?)^```", Path("README.md").read_text(), re.M | re.S)
    return found[1] if found else None


def with_math(program):
    """The same with a kernel that calls into libm, as most do: what a program is linked with must have it."""
    kernel = "GK_KERNEL(warm, (inout(float, t))) { t[i] = expf(t[i]); }\nGK_SOURCE_END\n"
    return program.replace("GK_SOURCE_END\n", kernel) + \
        "const gk_kernel *warm_kernel(void);\nconst gk_kernel *warm_kernel(void) { return &warm; }\n"


def runs(program, is_shared, libraries=""):
    """None if the program says what README promises; libraries: where libgk.so lies, for programs that aren't told."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(libraries))
    done = subprocess.run([program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or done.stdout != SAYS:
        return f"{program} says {done.stdout!r}, exit code {done.returncode}"
    needs = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, text=True).stdout
    if ("[libgk.so.0]" in needs) != is_shared:
        return f"{program} isn't linked with the library it should be linked with:\n{needs}"
    return None


def by_pkg_config(cc, prefix, source):
    """One compiler command each, as README has it."""
    for kind, wanted in (("shared", ["--libs"]), ("static", ["--static", "--libs"])):
        title = f"README's program by pkg-config, {kind}"
        if not shutil.which("pkg-config"):
            tap.skip(title, "pkg-config isn't installed")
            continue
        env = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
        asked = subprocess.run(["pkg-config", "--cflags", *wanted, "gk"], env=env, stdout=subprocess.PIPE, text=True)
        flags = asked.stdout.split()
        if kind == "static":  # as long as both are there, the linker takes the shared one
            flags = ["-l:libgk.a" if flag == "-lgk" else flag for flag in flags]
        command = [*cc, "-std=c11", "-Wall", "-Wextra", "-Werror", source, *flags, "-o", WORK / kind]
        is_shared = kind == "shared"
        tap.case(title, tap.run(*command) or runs(WORK / kind, is_shared, prefix / "lib" if is_shared else ""))
        if is_shared:
            folder = subprocess.run(["pkg-config", "--variable=libdir", "gk"], env=env, stdout=subprocess.PIPE,
                                    text=True).stdout.strip()
            tap.case("the same with the library's folder in the program (rpath)",
                     tap.run(*command, f"-Wl,-rpath,{folder}") or runs(WORK / kind, is_shared))


def by_cmake(cc, prefix):
    titles = {kind: f"README's program by CMake, {kind}" for kind in ("shared", "static")}
    if not shutil.which("cmake"):
        for title in titles.values():
            tap.skip(title, "cmake isn't installed")
        return
    folder = WORK / "cmake"
    shutil.copy("tests/consumer/installed/CMakeLists.txt", WORK)
    generator = ["-G", "Ninja", f"-DCMAKE_C_COMPILER={cc[0]}", f"-DCMAKE_PREFIX_PATH={prefix}"]
    problem = tap.run("cmake", "-S", WORK, "-B", folder, *generator) or tap.run("cmake", "--build", folder)
    for kind, title in titles.items():
        tap.case(title, problem or runs(folder / kind, kind == "shared"))  # CMake tells the program where libgk.so lies
    wrong = WORK / "wrong"
    wrong.mkdir()
    (wrong / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(wrong C)\n"
        "find_package(gk 99 QUIET)\nif(gk_FOUND)\n  message(FATAL_ERROR found)\nendif()\n")
    tap.case("CMake doesn't take this version for another",
             tap.run("cmake", "-S", wrong, "-B", wrong / "build", *generator))


def main():
    for folder in (STAGE, WORK):
        shutil.rmtree(folder, ignore_errors=True)
    prefix = STAGE / tap.config("prefix")[0].lstrip("/")
    if not tap.case("ninja install", tap.run("ninja", "install", env=dict(os.environ, DESTDIR=str(STAGE)))):
        tap.finish()
    installed = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
    headers = {f"include/{path.name}" for path in Path("include").glob("*.h*")}
    examples = {f"share/doc/gk/{path.relative_to('docs')}" for path in Path("docs/examples").rglob("*")
                if path.is_file()}
    installed = {name for name in installed if not name.startswith(("share/doc/gk/html/", "share/man/man3/"))}
    wanted = headers | {"lib/libgk.a", "lib/libgk.so", "lib/libgk.so.0", f"lib/libgk.so.{tap.version()}",
                        "lib/pkgconfig/gk.pc", "lib/cmake/gk/gkConfig.cmake", "lib/cmake/gk/gkConfigVersion.cmake",
                        "share/gk/embed_text.py", "share/doc/gk/LICENSE", *examples, "bin/gk-conformance",
                        "bin/gk-info", "bin/gk-embed"}
    tap.case("what is installed", "\n".join(f"{name} is {'missing' if name in wanted else 'too much'}"
                                            for name in sorted(installed ^ wanted)))
    # Elsewhere than it was installed: an installed tree may be moved.
    moved = STAGE / "moved"
    prefix.rename(moved)
    WORK.mkdir()
    tap.case("the conformance suite as it is installed", tap.run(moved / "bin/gk-conformance", "--backend", "openmp",
                                                                 "loops/*", env=dict(os.environ, LD_LIBRARY_PATH="")))
    tap.case("gk-info as it is installed", tap.run(moved / "bin/gk-info", "--json", "--backend", "openmp",
                                                   env=dict(os.environ, LD_LIBRARY_PATH="")))
    if tap.config("docs_installed"):
        installed_docs.check(moved / "share")
    else:
        tap.skip("installed documentation", "doxygen isn't installed")
    program = readme_program()
    if tap.case("README has a program", None if program else "no block that begins with ```c"):
        source = WORK / "program.c"
        source.write_text(with_math(program))
        cc = tap.config("cc")
        by_pkg_config(cc, moved, source)
        by_cmake(cc, moved)
    tap.finish()


if __name__ == "__main__":
    main()
