#!/usr/bin/env python3
"""What of common/, fallback/openmp/ and cuda/ the test programs run, in a tree of its own without sanitizers. A line of
the first two that no test runs must be in docs/coverage.md with the reason, and a line in there must be one that no
test runs; the share of branches taken has a floor there, and of cuda/ the share of lines, too. The report for people is
build/coverage/report/index.html.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

ROOT = Path(os.path.realpath(__file__)).parent.parent.parent  # of the sources, whichever tree this is started in
sys.path.insert(0, str(ROOT))
import configure  # noqa: E402
import run  # noqa: E402

FOLDERS = ["common", "cuda", "fallback/openmp"]
IN_ALL = "cuda/"  # counted as a whole, with floors: what only a driver's failure reaches isn't listed line by line
PAGE = ROOT / "docs/coverage.md"
LONG = ["runtime/endurance_test"]  # does the same again and again
SIMULATED = ["conformance on simulated CUDA 13.0"]  # of the suites there: other ways have unit tests
LESS = {"random_lists": ["--random", "500"]}  # what thousands of lists run, the first ones do


@dataclass(frozen=True)
class Line:
    """A line of code; its number isn't part of it, so that edits elsewhere in the file don't matter."""
    file: str
    function: str
    text: str

    def __str__(self):
        return f"{self.file}, {self.function}: {self.text}"


# ---- docs/coverage.md -----------------------------------------------------------------------------------------------

ITEM = re.compile(r"^- (sometimes, )?`(\w+)`: `(.*)`$")


def read_page(text):
    """The lines listed as never run, those as sometimes run, the floor for branches, and what is wrong with the page.
    Lines stand under their file's heading, and behind each group of them stands the reason."""
    never, sometimes, wrong, group, file, floor = set(), set(), [], [], None, None
    for row in text.splitlines() + ["# end"]:
        heading, item = re.match(r"^#+ (?:`(.*)`)?", row), ITEM.match(row)
        share = re.search(r"at least ([\d.]+) %", row)
        if heading:
            wrong += [f"no reason is given for: {line}" for line in group]
            group, file = [], heading[1]
        elif item and file:
            line = Line(file, item[2], item[3].strip())
            if line in never | sometimes:
                wrong.append(f"listed twice: {line}")
            (sometimes if item[1] else never).add(line)
            group.append(line)
        elif row.startswith("- ") and file:
            wrong.append(f"not `function`: `line`: {row}")
        elif row.strip() and file:
            group = []
        elif share:
            floor = float(share[1])
    if floor is None:
        wrong.append("no line says \"at least N %\" of the branches")
    return never, sometimes, floor, wrong


# ---- gcovr's answer -------------------------------------------------------------------------------------------------

def function_at(functions, number):
    """gcov gives the line where a function begins; it ends where the next one does."""
    before = [one for one in functions if one["lineno"] <= number]
    return max(before, key=lambda one: one["lineno"])["name"] if before else "?"


def read_counts(report):
    """Per file: line number -> how often it ran; and (branches taken, branches)."""
    counts, branches = {}, {}
    for one in report["files"]:
        lines = defaultdict(int)
        taken = total = 0
        for line in one["lines"]:
            if line.get("gcovr/noncode"):
                continue
            lines[line["line_number"]] = max(lines[line["line_number"]], line["count"])
            total += len(line["branches"])
            taken += sum(branch["count"] > 0 for branch in line["branches"])
        counts[one["file"]] = dict(lines)
        branches[one["file"]] = (taken, total)
    return counts, branches


def read_lines(report, counts):
    """The lines that ran, and those that didn't, as `Line`s. One that stands several times in a function is one."""
    ran, missed = set(), set()
    for one in report["files"]:
        source = (ROOT / one["file"]).read_text().splitlines()
        for number, count in counts[one["file"]].items():
            line = Line(one["file"], function_at(one["functions"], number), source[number - 1].strip())
            (ran if count else missed).add(line)
    return ran - missed, missed


# ---- running --------------------------------------------------------------------------------------------------------

def run_programs(tree):
    programs = [target for target in run.targets(tree, "test") if Path(target).name not in LONG]
    built = tap.run("ninja", *programs, *run.targets(tree, "suite"), cwd=tree)
    if not tap.case("build", built):
        tap.finish()
    for old in (tree / "build").rglob("*.gcda"):
        old.unlink()
    env = run.environment()
    env.pop("GK_TEST_SCALE", None)
    alone = [(program.removeprefix("build/tests/"), [program, *LESS.get(Path(program).name, [])])
             for program in programs]
    suites = [(name, command) for name, command, *_ in run.SUITES
              if "--sweep" not in command and ("cuda" not in command or name in SIMULATED)]
    for name, command in alone + suites:
        outcome = run.execute([str(tree / command[0]), *command[1:]], tree, env, tap.HANGS)
        tap.case(name, outcome.text if outcome.failed else None)


def collect(tree):
    objects = tree / "build/checked"
    report, data = ROOT / "build/coverage/report", ROOT / "build/coverage/report.json"
    shutil.rmtree(report, ignore_errors=True)
    report.mkdir()
    filters = [word for folder in FOLDERS for word in ("-f", re.escape(f"{ROOT}/{folder}/"))]
    filters += ["-e", re.escape(f"{ROOT}/common/info/")]  # no part of the library; tests/info.py is its test
    problem = tap.run("gcovr", "-r", ROOT, *filters, "--json", data, "--html-details", report / "index.html",
                      "--html-title", "gk: what the tests run",
                      *[objects / folder for folder in [*FOLDERS, "tests/counted"]], cwd=ROOT)
    if not tap.case("gcovr", problem):
        tap.finish()
    return json.loads(data.read_text())


def read_floors(text):
    """Of cuda/: the shares of lines and of branches, in percent."""
    found = re.search(r"no less than ([\d.]+) % of the lines of `cuda/` and ([\d.]+) % of its branches", text)
    return tuple(map(float, found.groups())) if found else (101, 101)


def shares(counts, branches, files):
    """The shares of lines that run and of branches that are taken, in percent."""
    lines = [count > 0 for file in files for count in counts[file].values()]
    taken, total = (sum(branches[file][k] for file in files) for k in (0, 1))
    return 100 * sum(lines) / max(len(lines), 1), 100 * taken / max(total, 1)


def print_table(counts, branches):
    print(f"# {'file':<34}{'lines':>16}{'branches':>16}")
    rows = [(file, (sum(map(bool, lines.values())), len(lines)), branches[file]) for file, lines in counts.items()]
    rows.append(("in all", *(tuple(map(sum, zip(*[row[k] for row in rows]))) for k in (1, 2))))
    for file, *shares in sorted(rows[:-1]) + rows[-1:]:
        cells = [f"{part}/{whole} {100 * part / whole if whole else 100:6.1f} %" for part, whole in shares]
        print(f"# {file:<28}{cells[0]:>22}{cells[1]:>22}")


def main():
    if not shutil.which("gcovr"):
        tap.skip("coverage", "gcovr isn't installed")
        tap.finish()
    try:
        compiler = configure.inspect(configure.has_compiler("gcc") or "gcc")
        tree = ROOT / configure.tree_of_its_own("coverage", compiler, ["--coverage", "--ready-gates"])
    except configure.Missing as problem:
        tap.skip("coverage", problem)
        tap.finish()
    if configure.find_cmocka(compiler).detail != "yes":
        tap.skip("coverage", "cmocka isn't installed")
        tap.finish()
    run_programs(tree)
    report = collect(tree)
    counts, branches = read_counts(report)
    ran, missed = (set(line for line in lines if not line.file.startswith(IN_ALL))
                   for lines in read_lines(report, counts))
    never, sometimes, floor, wrong = read_page(PAGE.read_text())
    print_table(counts, branches)
    tap.case("docs/coverage.md can be read", "\n".join(wrong))
    tap.case("each line runs or has its reason in docs/coverage.md",
             "\n".join(sorted(f"no test runs it: {line}" for line in missed - never - sometimes)))
    tap.case("what is listed there doesn't run", "\n".join(sorted(f"a test runs it: {line}" for line in never & ran)))
    tap.case("what is listed there exists",
             "\n".join(sorted(f"no such line: {line}" for line in (never | sometimes) - ran - missed)))
    _, share = shares(counts, branches, [file for file in counts if not file.startswith(IN_ALL)])
    tap.case(f"{share:.2f} % of the branches, at least {floor} %", None if share >= (floor or 0) else "it has sunk")
    whole = shares(counts, branches, [file for file in counts if file.startswith(IN_ALL)])
    for what, is_now, least in zip(("lines", "branches"), whole, read_floors(PAGE.read_text())):
        tap.case(f"{is_now:.2f} % of the {what} of {IN_ALL}, no less than {least} %",
                 None if is_now >= least else "it has sunk, or docs/coverage.md names no floor")
    tap.finish()


if __name__ == "__main__":
    main()
