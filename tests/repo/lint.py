#!/usr/bin/env python3
"""What a compiler doesn't see: whitespace, length, banned calls, sources that aren't built."""
import sys
import re
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

FOLDERS = ["include", "common", "cuda", "fallback", "tests", "bench", "docs", ".ci"]
LIBRARY = ("include/", "common/", "cuda/", "fallback/")
CODE = {".c", ".h", ".hpp", ".cpp", ".cu", ".inc", ".comp", ".def", ".py", ".ninja"}
C = {".c", ".h", ".hpp", ".cu", ".inc"}
SKIPPED = {".obj", ".png", ".jpg", ".fatbin", ".hipfb", ".ptx"}
COLUMNS, LINES = 120, 500
LONGER = {"include/gk.h": 520}  # users read one header

# In the library and the examples; each with what to use instead.
BANNED = {
    r"(strcpy|strcat|sprintf|vsprintf|gets|strtok)": "snprintf, strtok_r",
    r"(alloca|system|popen|mktemp|tmpnam)": "nothing",
}
# In the library alone, whose own memory comes from the allocator hook.
BANNED_IN_LIBRARY = {
    r"(malloc|calloc|realloc|strdup|asprintf)": "gk_host_alloc, gki_resize",
    r"(abort|exit|_exit|assert)": "gk_fail",
    r"(printf|puts|perror)": "gk_log",
    r"(getenv)": "secure_getenv, since the caller of a set-user-id program sets its environment",
}
EXEMPT = {
    "common/info/": "a program, with memory of its own, that prints and ends",
    "common/base/memory.c": "malloc is what stands behind the hook",
    "common/base/trace.c": "NVTX itself asks getenv, and gk has to know what it is told",
    "fallback/openmp/backend.c": "so does LLVM's OpenMP runtime",
    "common/base/text.c": "gk_backend.dump answers with memory that common frees by free",
}
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")


def files():
    roots = [path for path in tap.ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        roots += (tap.ROOT / folder).rglob("*")
    for path in sorted(roots):
        if path.is_file() and path.suffix not in SKIPPED and "__pycache__" not in path.parts and path.name != "LICENSE":
            yield path, path.relative_to(tap.ROOT).as_posix()


def without_comments(text):
    """Comments and strings blanked, line numbers kept."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found[0])
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def calls(text, patterns):
    """(line number, name, instead) for each call of a banned function."""
    code = without_comments(text)
    for pattern, instead in patterns.items():
        for found in re.finditer(rf"(?<![\w.>]){pattern}\s*\(", code):
            yield code.count("\n", 0, found.start()) + 1, found[1], instead


def main():
    whitespace, long_lines, banned, unfinished, unbuilt, long_files = [], [], [], [], [], []
    build = "".join(path.read_text() for path, name in files() if path.suffix == ".ninja")
    for path, name in files():
        text = path.read_text(encoding="utf-8")
        if text and not text.endswith("\n"):
            whitespace.append(f"{name}: no newline at its end")
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip() or "\t" in line:
                whitespace.append(f"{name}:{number}: a tab, a carriage return or trailing blanks")
            if path.suffix in CODE and len(line) > COLUMNS:
                long_lines.append(f"{name}:{number}: {len(line)} columns")
            if UNFINISHED.search(line):
                unfinished.append(f"{name}:{number}: {line.strip()}")
        if path.suffix in C and name.startswith((*LIBRARY, "docs/")):
            is_bound = name.startswith(LIBRARY) and not name.startswith(tuple(EXEMPT))
            patterns = dict(BANNED, **(BANNED_IN_LIBRARY if is_bound else {}))
            banned += [f"{name}:{number}: {call}; use {instead}" for number, call, instead in calls(text, patterns)]
        if path.suffix == ".c" and (name.startswith(LIBRARY) or name.endswith("_test.c")) and name not in build:
            unbuilt.append(f"{name} isn't in build.ninja or what it includes")
        if path.suffix in CODE and text.count("\n") > LONGER.get(name, LINES):
            long_files.append(f"{name}: {text.count(chr(10))} lines")
    tap.case("whitespace", "\n".join(whitespace))
    tap.case(f"lines of at most {COLUMNS} columns", "\n".join(long_lines))
    tap.case("no banned calls", "\n".join(banned))
    tap.case("nothing unfinished", "\n".join(unfinished))
    tap.case("every source is built", "\n".join(unbuilt))
    tap.case(f"files of code of at most {LINES} lines", "\n".join(long_files))
    tap.finish()


main()
