#!/usr/bin/env python3
"""The headers as strangers include them: alone, first, as C and C++, with gcc and clang and every warning an error."""
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
HEADERS = sorted(path.name for path in (tap.ROOT / "include").glob("*.h*"))
DIALECTS = [("gcc", ["-std=c11"]), ("gcc", ["-std=gnu17"]), ("clang", ["-std=c11"]), ("g++", ["-std=c++20"]),
            ("g++", ["-std=gnu++17"]), ("clang++", ["-std=c++20"]), ("clang++", ["-std=gnu++17"]),
            ("g++", ["-std=c++11"]), ("clang++", ["-std=c++11"])]
LINK = ["build/libgk.a", *tap.config("openmp_libs"), "-lpthread", "-ldl", "-lm"]


def compile_header(header, compiler, flags, folder):
    cpp = compiler.endswith("++")
    source = folder / ("alone.cpp" if cpp else "alone.c")
    source.write_text(f"#include <{header}>\n#include <{header}>\nint main() {{ return 0; }}\n" if cpp else
                      f"#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n")
    # -isystem would hide the warnings.
    return tap.run(compiler, *flags, *(WARNINGS if flags[0] != "-std=gnu++17" else without_pedantic()), "-Iinclude",
                   "-fsyntax-only", source)


def takes(compiler, flags, header):
    """gk.hpp is for C++ only; without C++'s designated initialisers, the others' macros are of no use."""
    return compiler.endswith("++") if header.endswith(".hpp") else flags != ["-std=c++11"]


def compile_items(number, compiler, flags, folder):
    """GK_ITEMS of that number as gk.h's users write it. Returns what the compiler says."""
    source = folder / ("items.cpp" if compiler.endswith("++") else "items.c")
    source.write_text("#include <gk.h>\nenum { X = 1 };\nextern const gk_task fill;\n"
                      f"const gk_task fill = GK_FILL(X, GK_ITEMS({number}), 0);\n")
    return tap.run(compiler, *flags, "-Iinclude", "-fsyntax-only", source)


def without_pedantic():
    """C++17 has designated initialisers as an extension only."""
    return [flag for flag in WARNINGS if flag != "-Wpedantic"]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for compiler, flags in DIALECTS:
            for header in HEADERS:
                if not takes(compiler, flags, header):
                    continue
                title = f"{header} as {compiler} {' '.join(flags)}"
                if shutil.which(compiler):
                    tap.case(title, compile_header(header, compiler, flags, folder))
                else:
                    tap.skip(title, f"{compiler} isn't installed")
        for compiler in ("gcc", "clang", "g++", "clang++"):
            flags = ["-std=c++20" if compiler.endswith("++") else "-std=c11", *WARNINGS]
            for number, fits in (("1", True), ("sizeof(int)", True), ("2147483647", True), ("0", False), ("-8", False),
                                 ("2147483648", False), ("3000000000u", False)):
                title = f"GK_ITEMS({number}) with {compiler}"
                if not shutil.which(compiler):
                    tap.skip(title, f"{compiler} isn't installed")
                    continue
                said = compile_items(number, compiler, flags, folder)
                told = said and "GK_ITEMS takes 1 to 2147483647" in said
                tap.case(title, said if fits else None if told else said or "it compiles")
        for c, cpp in (("gcc", "g++"), ("clang", "clang++")):
            if not shutil.which(c):
                tap.skip(f"every macro with {c}", f"{c} isn't installed")
                continue
            kernels, program = folder / f"{c}.o", folder / c
            problem = tap.run(c, "-std=c11", *WARNINGS, "-Iinclude", "-c", "tests/consumer/c/every_macro.c", "-o",
                              kernels)
            tap.case(f"every macro as C with {c}", problem or
                     tap.run(c, "-std=c11", *WARNINGS, "-Iinclude", "tests/consumer/c/main.c", kernels, *LINK, "-o",
                             program) or tap.run(program))
            for dialect in ("-std=c++20", "-std=gnu++17"):
                title = f"every macro as C++ with {cpp} {dialect}"
                if not shutil.which(cpp):
                    tap.skip(title, f"{cpp} isn't installed")
                    continue
                flags = WARNINGS if dialect == "-std=c++20" else without_pedantic()
                tap.case(title, "its kernels don't compile" if problem else
                         tap.run(cpp, dialect, *flags, "-Iinclude", "tests/consumer/cpp/every_macro.cpp", kernels,
                                 *LINK, "-o", program) or tap.run(program))
            for dialect in ("-std=c++20", "-std=gnu++17"):
                title = f"gk.hpp with {cpp} {dialect}"
                flags = WARNINGS if dialect == "-std=c++20" else without_pedantic()
                tap.case(title, tap.run(cpp, dialect, *flags, "-Iinclude", "tests/consumer/cpp/gk_hpp.cpp", *LINK, "-o",
                                        program) or tap.run(program))
            refusal = tap.run(cpp, "-fno-exceptions", "-Iinclude", "-fsyntax-only", "-x", "c++", "include/gk.hpp")
            tap.case(f"gk.hpp says what it needs, with {cpp} -fno-exceptions",
                     None if refusal and "#error" in refusal and "use gk.h" in refusal else refusal or "it compiles")
    tap.finish()


main()
