#!/usr/bin/env python3
"""docs/errors.md says what common/base/results.def and common/list/problems.def say; `tests/repo/errors.py --update`
writes it."""
import re
import sys

from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

PAGE = tap.ROOT / "docs" / "errors.md"
TOP = """# What can go wrong

Calls return a result, or NULL. After an error `gk_error()` returns its message in the calling thread. The message
names the call or graph, and the task (its index in the list and its name) or the slot (number and name). It says what
is wrong and what to do. `gk_wait` and `gk_poll` return errors that occur while a launch runs. `GK_LOG=error` prints
each error.

This page lists all results, and every problem and warning that a list can have. `tests/repo/errors.py --update`
writes it from `common/base/results.def` and `common/list/problems.def`.

## Results

| result | what to do |
|---|---|
"""
MIDDLE = """
## Problems of a list

`gk_check` reports these problems, and `gk_graph_create` refuses a list that has one. The code is stable, for tests.
Each message begins with the task, as in "task 7 (scale): ". Words in braces are replaced.

A list without problems may have warnings, the last table: it works, but probably not as intended. `gk_check` returns
`GK_OK` and reports each warning with `is_warning` set. A report switches a warning off by its code:
`if (problem->is_warning && !strcmp(problem->code, "applied-twice")) return;`. `gk_graph_create` makes the graph, and
logs its warnings if the log's level is `GK_LOG_WARN` or higher.
"""


def strings(call):
    """The identifiers and string literals of a macro's arguments, adjacent literals joined."""
    parts = re.split(r",\s*(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", call)
    return ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', p)).replace('\\"', '"') or p.strip() for p in parts]


def page():
    out = TOP
    text = (tap.ROOT / "common/base/results.def").read_text()
    for call in re.findall(r"^RESULT\((.*)\)$", text, re.M):
        code, advice = strings(call)
        out += f"| `{code}` | {advice} |\n"
    out += MIDDLE
    text = (tap.ROOT / "common/list/problems.def").read_text()
    for comment, call in re.findall(r"^/\* ([^*]*?) \*/$|^(?:PROBLEM|WARNING)\((.*?)\)$", text, re.M | re.S):
        if comment and "PROBLEM(" not in comment:
            out += f"\n### {comment[0].upper() + comment[1:]}\n\n| code | what it says |\n|---|---|\n"
        elif call:
            _, code, sentence = strings(re.sub(r'"\s*\n\s*"', "", call))
            out += f"| `{code}` | {sentence} |\n"
    return out


def main():
    text = page()
    if "--update" in sys.argv:
        PAGE.write_text(text)
    same = PAGE.exists() and PAGE.read_text() == text
    tap.case("docs/errors.md is what the tables say",
             None if same else "run tests/repo/errors.py --update and look at the difference")
    tap.finish()


main()
