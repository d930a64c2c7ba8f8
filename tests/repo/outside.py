#!/usr/bin/env python3
"""A third-party backend: docs/examples/minimal_backend.c as a shared library runs the programs of README.md and
docs/guide.md, whose last lines say what they print, and passes the conformance suite; with a mistake in it, it doesn't.
"""
import sys
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

SUITE = "build/gk-conformance"
# Mistakes for the suite to find: what is wrong, what is replaced by what, the case that must fail, and its words.
CALL = "gk_result result = node->call(args, NULL);"
MISTAKES = [
    ("negative flags are false", "answer = *(const int32_t *)(const void *)((const char *)values[node->flag].ptr + "
     "node->offset);", "answer = *(const int32_t *)values[node->flag].ptr > 0;", "loops/negative_flag_continues",
     "passes of loop"),
    ("sums replace what was there", "*(uint32_t *)to += ", "*(uint32_t *)to = ", "sections/three", "X[0] is"),
    ("items beyond the first 256 are forgotten", "kernel->host(args, items);",
     "if (items.end > 256) items.end = 256;\n  kernel->host(args, items);", "plain/rebind_larger_size", "a buffer"),
    ("FILL forgets its offset", "(char *)values[to].ptr + node->offset;", "(char *)values[to].ptr;",
     "plain/copy_and_fill", "the reference has"),
    ("counts are read at the wrong place", "(dimension == 0 ? node->offset : 0)", "0 * dimension",
     "loops/dynamic_size_in_inner_body", "the reference has"),
    ("a library call's answer is lost", CALL, "gk_result result = (node->call(args, NULL), GK_OK);",
     "plain/library_call_recorded", "GK_OK, not GK_ERROR_UNSUPPORTED"),
    ("it crashes", CALL, "gk_result result = node->call(args, NULL);\n  __builtin_trap();",
     "plain/library_call_recorded", "killed by a signal"),
    ("it hangs", CALL, "gk_result result = GK_OK;\n  for (;;) node->call(args, NULL);",
     "plain/library_call_recorded", "no end after 2 seconds"),
]
PAGES = {"README.md": "300 steps, 6675 bounces, 4 yields", "docs/guide.md": "3 passes, 1 yields, 1083 kept"}


def output(*command):
    """(exit code, what it printed)."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def suite_passes(module):
    code, said = output(SUITE, "--module", module, "--expect", "docs/examples/minimal_backend.expect")
    tap.case("the module passes the conformance suite", said if code or "not ok" in said else None)
    data = module.with_suffix(".json")
    code, said = output(SUITE, "--module", module, "--matrix", "--json", data, "plain", "loops")
    tap.case("the table of what it supports", said if code or "| loops/counter | pass |" not in said or
             "| PARALLEL | in series" not in said else None)
    backend = json.loads(data.read_text())["backends"][0]
    wrong = [case for case in backend["cases"] if case["outcome"] != "pass"]
    series = {"construct": "PARALLEL", "how": "in series", "why": "there is one thread"}
    tap.case("the same as data", backend if wrong or len(backend["cases"]) < 30 or backend["backend"] != "serial" or
             series not in backend["constructs"] else None)


def test_device_is_a_module(folder, build):
    """A backend with all entries for tapes, and its own thread, needs nothing but public functions and walk.inc."""
    module = Path(folder) / "libtest_device.so"
    sources = [f"tests/device/{name}.c" for name in ("test_device", "queue", "tasks")]
    problem = build(*sources, "-D_GNU_SOURCE", "-Itests", "-Icommon", "-pthread", to=module)
    code, said = problem and (-1, problem) or output(SUITE, "--module", module)
    tap.case("the test device passes as a module, too", said if code or said.count("\nok ") < 190 else None)


def mistakes_are_found(folder, build):
    """Each is the module with one mistake; the suite runs the chapter that must see it."""
    whole = Path("docs/examples/minimal_backend.c").read_text()
    for title, old, new, case, words in MISTAKES:
        source, module = folder / "wrong.c", folder / "libwrong.so"
        source.write_text(whole.replace(old, new))
        problem = f"{old}: not in minimal_backend.c once" if whole.count(old) != 1 else build(source, to=module)
        if not problem:
            code, said = output(SUITE, "--module", module, "--seconds", "2" if "hangs" in title else "60",
                                case if "hangs" in title else case.split("/")[0] + "/*")
            found = re.search(rf"^not ok \d+ - serial: {case}$", said, re.M)
            again = f"--backend serial --module {module} '{case}'"
            problem = None if code == 1 and found and words in said and again in said else said
        tap.case(f"the suite finds that {title}", problem)
    # The last one but two fails one case for sure: what a list of known failures makes of that.
    source.write_text(whole.replace(*MISTAKES[5][1:3]))
    case, expect = MISTAKES[5][3], folder / "known.expect"
    problem = build(source, to=module)
    for title, text, name, wanted, last in [
            ("is no failure", f"# why\n\n{case}: calls come later\n", case, 0, "# TO" "DO calls come later"),
            ("must fail", f"{case}: so\nplain/two_tasks: so\n", "two_tasks", 1, "unexpected pass: take it out of"),
            ("must have a reason", f"{case}:\n", case, 2, "no `chapter/name: reason`"),
            ("must be a case", "plain/no_such_case: so\n", case, 2, "no case is named plain/no_such_case")]:
        expect.write_text(text)
        code, said = problem and (-1, problem) or output(SUITE, "--module", module, "--expect", expect, name)
        tap.case(f"a failure that is known {title}", None if code == wanted and last in said else said)


def main():
    cc = tap.config("cc")
    shared = ["-Iinclude", "-Lbuild", "-lgk", f"-Wl,-rpath,{Path('build').absolute()}"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "libserial.so"

        def build(*sources, to):
            return tap.run(*cc, *flags, "-shared", "-fPIC", *sources, *shared, "-o", to)
        tap.case("the module builds", build("docs/examples/minimal_backend.c", to=module))
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
        suite_passes(module)
        test_device_is_a_module(folder, build)
        mistakes_are_found(Path(folder), build)
    tap.finish()


main()
