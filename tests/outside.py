#!/usr/bin/env python3
"""A backend of somebody else's: docs/examples/minimal_backend.c as a shared library runs the programs of README.md and
docs/guide.md, whose last lines say what they print."""
import os
import re
import tempfile
from pathlib import Path

import tap

PAGES = {"README.md": "111 passes", "docs/guide.md": "3 passes, 1 yields, 1083 kept"}


def main():
    cc = tap.config("cc")
    shared = ["-Iinclude", "-Lbuild", "-lgk", f"-Wl,-rpath,{Path('build').absolute()}"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "libserial.so"
        tap.case("the module builds", tap.run(*cc, *flags, "-shared", "-fPIC", "docs/examples/minimal_backend.c",
                                              *shared, "-o", module))
        for page, wanted in PAGES.items():
            program, source = Path(folder) / "program", Path(folder) / "program.c"
            source.write_text(re.search(r"^```c\n(.*?)^```", Path(page).read_text(), re.M | re.S)[1])
            problem = tap.run(*cc, *flags, source, *shared, "-lm", "-o", program)
            for backend in ["serial", ""]:
                env = dict(os.environ, GK_MODULES=str(module), GK_BACKEND=backend)
                problem = problem or tap.run("sh", "-c", f"'{program}' | grep -qx '{wanted}'", env=env)
                tap.case(f"{page} on {backend or 'the first backend, which is the module'}", problem)
            env = dict(os.environ, GK_MODULES=f"{folder}/nothing.so", GK_BACKEND="serial")
            said = tap.run(program, env=env) or ""
            tap.case(f"{page} without the module says why",
                     None if "nothing.so" in said and "openmp" in said else said or "it ran")
    tap.finish()


main()
