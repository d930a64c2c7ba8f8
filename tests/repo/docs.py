#!/usr/bin/env python3
"""Compiles and runs the code in README.md and docs/*.md, and follows the links between all pages.

The word behind ```c decides:
  ```c            a whole program: is compiled and run, and must end with 0
  ```c file       declarations: is compiled; what follows on the same page may use them
  ```c fragment   statements: is compiled in a function, behind the page's `file` blocks and tests/repo/docs_prelude.h
  ```cpp          a whole program in C++: is compiled and run, as one in C
"""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

CXX = ["g++"] if shutil.which("g++") else ["clang++"]
FLAGS = ["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude"]
LIBS = ["build/libgk.a", *tap.config("openmp_libs"), "-lpthread", "-ldl", "-lm"]
PICTURE = Path("docs/balls.svg")
UNUSED = ["-Wno-unused-variable", "-Wno-unused-const-variable", "-Wno-unused-function", "-Wno-unused-but-set-variable"]


def blocks(path):
    """(line, word, text) of each block of C."""
    text = path.read_text()
    for found in re.finditer(r"^```c([^\n]*)\n(.*?)^```", text, re.M | re.S):
        yield text.count("\n", 0, found.start()) + 2, found[1].strip(), found[2]


def units(path):
    """(title, source, compiler of a whole program, or None) of each thing to compile on a page."""
    before = '#include "tests/repo/docs_prelude.h"\n'
    for line, word, text in blocks(path):
        title = f"{path}:{line}"
        if word in ("", "pp"):
            yield title, text, CXX if word else tap.config("cc")
        elif word == "file":
            before += text
            yield title, before, None
        elif word == "fragment":
            yield title, f"{before}\nvoid fragment(void);\nvoid fragment(void) {{\n{text}}}\n", None
        else:
            yield title, f"#error ```c {word} isn't one of ```c, ```c file, ```c fragment, ```cpp\n", None


def run(program):
    """It must end with 0, and its lists get no warning of gk_check."""
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=tap.HANGS, env=dict(os.environ, GK_LOG="warn"))
    codes = re.findall(r'^WARNING\(\w+, "(.*?)"', Path("common/list/problems.def").read_text(), re.M)
    warned = re.search(rf"^gk: list .*?: (?:{'|'.join(codes)}): .*$", done.stdout, re.M)
    return warned[0] if warned else f"{done.stdout}(exit code {done.returncode})" if done.returncode else None


def attempt(unit):
    title, source, cc = unit
    with tempfile.TemporaryDirectory() as folder:
        file, program = Path(folder) / f"block.{'cpp' if cc == CXX else 'c'}", Path(folder) / "block"
        file.write_text(source)
        if not cc:
            return title, tap.run(*tap.config("cc"), "-std=c11", *FLAGS, *UNUSED, "-I.", "-c", file, "-o", program)
        standard = "-std=c++20" if cc == CXX else "-std=c11"
        problem = tap.run(*cc, standard, *FLAGS, file, *LIBS, "-o", program) or run(program)
        return title, problem


def without_code(text):
    return re.sub(r"^(```.*?^```|    .*?)$", "", text, flags=re.M | re.S)


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", without_code(path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", head).lower()).replace(" ", "-") for head in heads}


def broken_links():
    """Of all pages in the repository, those links to files and headings that lead nowhere."""
    pages = [page for page in Path().rglob("*.md") if page.parts[0] not in ("build", "carry", "shared")]
    for page in sorted(pages):
        for target in re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", without_code(page.read_text())):
            name, _, anchor = target.partition("#")
            to = page.parent / name if name else page
            if "://" not in target and (not to.exists() or anchor and anchor not in anchors(to)):
                yield f"{page}: {target}"


def drawn():
    """The list of README's program as gk_dump draws it."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "draw.c", Path(folder) / "draw"
        text = next(text for _, word, text in blocks(Path("README.md")) if not word)
        source.write_text(text.replace("int main(void)", "static int ordinary(void)") + """
#include <gk_info.h>
int main(int count, char **words) {
  (void)words;
  char *text = gk_dump(&list, NULL, "dot");
  if (text) fputs(text, stdout);
  gk_free_text(text);
  return count > 1 ? ordinary() : 0;
}
""")
        problem = tap.run(*tap.config("cc"), "-std=c11", *FLAGS, source, *LIBS, "-o", program)
        return subprocess.run([program], stdout=subprocess.PIPE, text=True).stdout if not problem else problem


def picture_is_old():
    """Whether other words are in the picture than in the drawing."""
    words = {line.strip() for label in re.findall(r'label="(.*?)"', drawn()) for line in label.split("\\n")}
    seen = {html.unescape(word).strip() for word in re.findall(r"<text .*?>(.*?)</text>", PICTURE.read_text())}
    odd = (words - {""}) ^ seen
    return f"{PICTURE}: tests/repo/docs.py --draw draws it anew: {odd}" if odd else None


def main():
    if "--draw" in sys.argv:
        subprocess.run(["dot", "-Tsvg", "-o", PICTURE], input=drawn(), text=True, check=True)
    tap.case("README's picture is of its program", picture_is_old())
    tap.case("links lead somewhere", "\n".join(broken_links()) or None)
    index = Path("docs/examples/README.md").read_text()
    tap.case("the index of the examples has all", "\n".join(
        path.name for path in Path("docs/examples").iterdir()
        if (path.is_dir() or path.suffix == ".c") and not re.search(rf"\[{re.escape(path.name)}\]\(", index)))
    pages = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]
    found = [unit for page in pages for unit in units(page)]
    with ThreadPoolExecutor() as pool:
        for title, problem in pool.map(attempt, found):
            tap.case(title, problem)
    tap.finish()


main()
