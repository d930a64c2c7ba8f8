#!/usr/bin/env python3
"""Doxygen over the public headers and all pages, without a warning."""
import os
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
    folder = Path("build/doxygen")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = dict(os.environ, GK_DOCS=str(folder), GK_VERSION=tap.version())
    done = subprocess.run(["doxygen", "docs/Doxyfile"], env=env, stderr=subprocess.PIPE, text=True)
    tap.case("doxygen has nothing to say", done.stderr or (f"exit code {done.returncode}" if done.returncode else None))
    tap.finish()


main()
