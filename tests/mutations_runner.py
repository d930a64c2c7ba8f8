#!/usr/bin/env python3
"""Of tests/mutations.py: what it says of wrong tables, and what counts as a catch, with shell scripts as tests."""
import contextlib
import io
import tempfile
from pathlib import Path

import mutations
import tap

RECORD = """# a comment
@mutation area-sign
The sign
is wrong.
@file sum.c
@before
  int sum = 0;
  sum += 1;
@after
  int sum = 0;
  sum -= 1;
@end area-sign
"""
SOURCE = "int f(void) {\n  int sum = 0;\n  sum += 1;\n  return sum;\n}\n"
# Each prints TAP; the folder of the copy is the current one, and what a test keeps between runs is in runs.NAME.
COUNT = 'echo >>runs.$(basename $0); n=$(wc -l <runs.$(basename $0))\n'
TESTS = {
    "blind": "echo ok 1 - all",
    "sees": 'grep -q "sum += 1" sum.c && echo ok 1 - adds || echo not ok 1 - adds',
    "broken": "echo not ok 1 - never passes",
    "unlucky": f'{COUNT}[ $n = 1 ] && echo not ok 1 - at first || echo ok 1 - at first',
    "dies": 'grep -q "sum += 1" sum.c || exit 3',
}


def table(**changes):
    """RECORD with lines replaced by others: the mutations and the problems."""
    text = RECORD
    for old, new in changes.items():
        assert f"@{old}" in text
        text = text.replace(f"@{old}", new)
    return mutations.parse(text, "area")


def differs(found, expected):
    return None if found == expected else f"{found!r} instead of {expected!r}"


def tables():
    found, problems = table()
    part = mutations.Part("sum.c", ["  int sum = 0;", "  sum += 1;"], ["  int sum = 0;", "  sum -= 1;"])
    tap.case("a table is read", differs((found, problems), (
        [mutations.Mutation("area-sign", "The sign is wrong.", [part])], [])))
    for name, changes, expected in (
            ("a record of another area", {"mutation area-": "@mutation aria-", "end area-": "@end aria-"},
             ["area.txt:2: the name aria-sign doesn't begin with area-"]),
            ("a record without lines before", {"before\n": ""},
             ["area.txt:6: text where @before is expected", "area.txt:7: text where @before is expected",
              "area.txt:8: @after where @before is expected"]),
            ("a record without an end", {"end area-sign\n": ""}, ["area.txt: ends where @file or @end is expected"]),
            ("a record inside another", {"end area-sign\n": "@mutation area-next\n"},
             ["area.txt:12: @mutation where @file or @end is expected"]),
            ("a record with another's end", {"end area-sign": "@end area-next"},
             ["area.txt:12: @end area-next where @end area-sign is expected"]),
            ("a record without a sentence", {"mutation area-sign\nThe sign\nis wrong.": "@mutation area-sign"},
             ["area.txt: area-sign has no sentence"])):
        tap.case(name, differs(table(**changes)[1], expected))


def fits(root):
    """What a record does to a file, and what is said if its lines aren't there once."""
    mutation = table()[0][0]
    part = mutation.parts[0]
    tap.case("the lines are replaced", differs(mutations.mutated(mutation, root), (
        {"sum.c": SOURCE.replace("+=", "-=")}, None)))
    (root / "twice.c").write_text(SOURCE + SOURCE)
    for what, file, before, expected in (
            ("lines that aren't there", "sum.c", ["  sum += 2;"], "sum.c has the lines of @before 0 times, not once"),
            ("a part of a line", "sum.c", ["sum += 1;"], "sum.c has the lines of @before 0 times, not once"),
            ("lines there twice", "twice.c", part.before, "twice.c has the lines of @before 2 times, not once"),
            ("no lines", "sum.c", [], "sum.c has the lines of @before 0 times, not once"),
            ("a file that isn't there", "gone.c", part.before, "there is no gone.c")):
        mutation.parts = [mutations.Part(file, before, part.after)]
        tap.case(what, differs(mutations.mutated(mutation, root)[1], f"area-sign: {expected}"))
    mutation.parts = [mutations.Part("sum.c", part.before, part.before)]
    tap.case("the same lines again", differs(mutations.mutated(mutation, root)[1], "area-sign: changes nothing"))
    mutation.parts = [part, mutations.Part("sum.c", ["  sum -= 1;"]),
                      mutations.Part("twice.c", ["}", "int f(void) {"])]
    tap.case("several parts and files", differs(mutations.mutated(mutation, root)[0], {
        "sum.c": SOURCE.replace("  sum += 1;\n", ""), "twice.c": (SOURCE + SOURCE).replace("}\nint f(void) {\n", "")}))


class Fakes(mutations.Programs):
    """Scripts of the copy, in the order given but for one that caught the mutation before; nothing is built."""

    def __init__(self, *names):
        self.names, self.sound, self.caught = names, {}, {}

    def by_area(self, area):
        return [(name, [name], False) for name in self.names]

    def build(self, target):
        return None


def trial(root, programs):
    """What became of the mutation, what was printed, and how many cases failed, which aren't cases of this script."""
    for path in root.glob("runs.*"):
        path.unlink()
    mutation = table()[0][0]
    before, said = (tap.count, tap.failures), io.StringIO()
    with contextlib.redirect_stdout(said):
        answer = mutations.try_out(mutation, mutations.mutated(mutation, root)[0], programs)
    failures = tap.failures - before[1]
    tap.count, tap.failures = before
    whole = (root / "sum.c").read_text() == SOURCE
    return answer if whole else "the mutation is still there", said.getvalue(), failures


def catches(root):
    missed = ("no test catches it: The sign is wrong.", None)
    for name, tests, expected, failures, words in (
            ("a test that sees it", ["blind", "sees"], (None, ("sees", False)), 0, "caught by sees: adds"),
            ("a test that ends badly", ["dies"], (None, ("dies", False)), 0, "caught by dies: exit code 3"),
            ("no test sees it", ["blind"], missed, 0, ""),
            ("a test that fails by itself is no catch, but a failure", ["broken"], missed, 1,
             "- without a mutation: broken"),
            ("behind a test that fails by itself the search goes on", ["broken", "sees"], (None, ("sees", False)), 1,
             "it fails, too: never passes"),
            ("a test that fails once is no catch", ["unlucky"], missed, 0,
             "unlucky failed once, and not again, which doesn't count: at first"),
            ("behind a test that fails once the search goes on", ["unlucky", "sees"], (None, ("sees", False)), 0, "")):
        answer, said, failed = trial(root, Fakes(*tests))
        tap.case(name, differs((answer, failed), (expected, failures)) or (words not in said and said))
    programs = Fakes("broken", "sees")
    trial(root, programs)
    tap.case("what fails by itself is tried once", differs(trial(root, programs)[1:], (
        "# area-sign: caught by sees: adds\n", 0)))
    programs = Fakes("dies", "sees")
    programs.caught = {"area-sign": "sees", "other": "dies"}
    tap.case("the test that caught it before comes first", differs(trial(root, programs)[0], (None, ("sees", False))))
    programs = Fakes("blind", "sees")
    programs.caught = {"area-sign": "blind"}
    tap.case("a note of another test is wrong", differs(trial(root, programs)[0], (
        "caught.json says blind, it is sees: correct it by --write", ("sees", False))))


def main():
    tables()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        mutations.ROOT, mutations.TREE = root / "sources", root / "copy"
        for path in (mutations.ROOT, mutations.TREE):
            path.mkdir()
            (path / "sum.c").write_text(SOURCE)
        for name, text in TESTS.items():
            (mutations.TREE / name).write_text(f"#!/bin/sh\n{text}\n")
            (mutations.TREE / name).chmod(0o755)
        catches(mutations.TREE)
        fits(mutations.ROOT)
    tap.finish()


main()
