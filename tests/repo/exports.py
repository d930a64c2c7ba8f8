#!/usr/bin/env python3
"""libgk.so exports what the public headers declare: no more, no less."""
import sys
import os
import re
import subprocess

from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

HEADERS = sorted(path.name for path in (tap.ROOT / "include").glob("*.h"))


def declared():
    """Functions declared, not defined, in the headers, as the compiler sees them."""
    text = "".join(f"#include <{header}>\n" for header in HEADERS)
    seen = subprocess.run([*tap.config("cc"), "-std=c11", "-Iinclude", "-E", "-x", "c", "-"], input=text, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    ours, names = False, set()
    lines = []
    for line in seen.splitlines():
        marker = re.match(r'#\s+\d+ "(.*?)"', line)
        if marker:
            ours = os.path.basename(marker[1]) in HEADERS
        elif ours and not line.startswith("#"):
            lines.append(line)
    text = "\n".join(lines)
    while re.search(r"\{[^{}]*\}", text):  # bodies, of functions and structs alike
        text = re.sub(r"\{[^{}]*\}", " @", text)
    for declaration in re.split(r"[;@]", text):
        name = re.search(r"\b(gk_\w+)\s*\(", declaration)
        if name and not re.search(r"\b(typedef|static|struct \w+\s*$)", declaration):
            names.add(name[1])
    return names


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True)
    return {line.split()[2].split("@")[0] for line in listing.stdout.splitlines()}


def main():
    library, promised = f"build/libgk.so.{tap.version()}", declared()
    there = exported(library)
    tap.case("the headers declare functions", None if len(promised) > 20 else f"only {sorted(promised)}")
    tap.case("all that is declared is exported", "\n".join(sorted(promised - there)))
    tap.case("nothing else is", "\n".join(sorted(there - promised)))
    dynamic = subprocess.run(["readelf", "-d", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    tap.case("its soname", None if "[libgk.so.0]" in dynamic else dynamic)
    tap.finish()


main()
