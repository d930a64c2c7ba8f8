#!/usr/bin/env python3
"""Doxygen over the public headers, without a warning."""
import sys
import shutil
import subprocess

from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402


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
