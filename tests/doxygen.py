#!/usr/bin/env python3
"""Doxygen over the public headers, without a warning."""
import shutil
import subprocess

import tap


def main():
    if not shutil.which("doxygen"):
        tap.skip("doxygen", "doxygen isn't installed")
        tap.finish()
    shutil.rmtree("build/doxygen", ignore_errors=True)
    problem = tap.run("doxygen", "docs/Doxyfile")
    tap.case("doxygen has nothing to say", problem or
             subprocess.run(["doxygen", "docs/Doxyfile"], stderr=subprocess.PIPE, text=True).stderr)
    tap.finish()


main()
