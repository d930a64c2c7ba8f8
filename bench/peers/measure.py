"""Shared by the scripts of the peers: turns, statistics, and the JSON that README.md describes.

A peer may have several configurations (all cores, one core). Each gets a process of its own, since a runtime chooses
its threads when it starts. The configurations take turns: the parent asks one after the other for a value of each row,
again and again, so that other work on the machine affects all of them equally. The first turns warm up and don't count.
"""
import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections import namedtuple

# turn() does the work once and returns that turn's value; right(): whether the results so far are right.
Row = namedtuple("Row", "table what unit turn right")
# cores: the number that the process may use; 0: all. env: additions to its environment.
Configuration = namedtuple("Configuration", "how cores env", defaults=(0, {}))

WARM, TURNS, QUICK_TURNS = 2, 31, 2


def now():
    return time.perf_counter_ns()


def least(times, thing):
    """The least nanoseconds of `calls` calls, so that caches are warm and a lost time slice doesn't count."""
    best = None
    for _ in range(times):
        begin = now()
        thing()
        took = now() - begin
        best = took if best is None else min(best, took)
    return best


def slope(few, many, more):
    """The nanoseconds of each of `more` further tasks. Both functions are called three times."""
    fewer = least(3, few)
    return (least(3, many) - fewer) / more


def pass_row(table, passes, loop):
    """loop(count) runs a loop of `count` passes. @return its time, and whether the loop came to its end"""
    bad = []

    def run(count):
        took, right = loop(count)
        if not right:
            bad.append(count)
        return took

    def turn():
        fewer = min(run(passes) for _ in range(3))
        return (min(run(2 * passes) for _ in range(3)) - fewer) / passes
    return Row(table, "one more pass", "ns", turn, lambda: not bad)


def percentile(values, share):
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)]


# ---- a child: one configuration -------------------------------------------------------------------------------------

def serve(how, rows_of):
    """Answers each line on stdin by a line of values, or by the reason why there are none. The peer's own output goes
    to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what):
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        rows = rows_of(how)
        answer([[row.table, row.what, row.unit] for row in rows])
        for _ in sys.stdin:
            values = []
            for row in rows:
                value = row.turn()
                values.append([value, bool(row.right())])
            answer(values)
    except Exception as why:  # a peer may raise anything
        traceback.print_exc()
        answer({"failed": f"{type(why).__name__}: {why}".splitlines()[0]})
        return 1
    return 0


# ---- the parent -----------------------------------------------------------------------------------------------------

class Child:
    def __init__(self, script, configuration):
        def confine():
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, cores[-configuration.cores:])

        self.how, self.failed = configuration.how, None
        self.process = subprocess.Popen([sys.executable, script, "--serve", self.how], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **configuration.env},
                                        preexec_fn=confine if configuration.cores else None)
        self.rows = self.read() or []
        self.values = [[] for _ in self.rows]
        self.right = [True] * len(self.rows)

    def read(self):
        """The process's answer; None: it failed."""
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"failed": f"its process ended with code {self.process.wait()}"}
        if isinstance(answer, dict):
            self.failed = answer["failed"]
            return None
        return answer

    def turn(self, counts):
        try:
            self.process.stdin.write("turn\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its last output wasn't read yet
        for k, (value, right) in enumerate(self.read() or []):
            if counts:
                self.values[k].append(value)
            self.right[k] = self.right[k] and right

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        self.process.wait()


def figures(children):
    """A row of JSON for each row: the configuration with the lowest median, then the others."""
    variants = {}
    for child in children:
        for (table, what, unit), values, right in zip(child.rows, child.values, child.right):
            spread = {f"p{share}": percentile(values, share / 100) for share in (5, 25, 75, 95)}
            variant = {"how": child.how, "median": percentile(values, 0.5), **spread, "turns": len(values),
                   "correct": right}
            variants.setdefault((table, what, unit), []).append(variant)
    rows = []
    for (table, what, unit), candidates in variants.items():
        best, *others = sorted(candidates, key=lambda variant: (variant["median"] <= 0, variant["median"]))
        row = {"table": table, "what": what, "unit": unit, **best}
        row["correct"] = all(variant["correct"] for variant in candidates)
        if others:
            row["others"] = others
        rows.append(row)
    return rows


def print_rows(rows):
    for row in rows:
        print(f"{row['table']}  {row['what']}")
        if "missing" in row:
            print(f"      none: {row['missing']}")
            continue
        for variant in [row, *row.get("others", [])]:
            wrong = "" if variant["correct"] else "  WRONG RESULT"
            print(f"      {variant['median']:14.2f} {row['unit']:5}  (p5 {variant['p5']:.2f}, p95 {variant['p95']:.2f})"
                  f"  {variant['how']}{wrong}")


def measure(children, turns):
    for turn in range(WARM + turns):
        for child in children:
            if not child.failed:
                child.turn(turn >= WARM)


def found(packages):
    """The installed package of these, and its version."""
    for package in packages:
        try:
            return package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    raise importlib.metadata.PackageNotFoundError(packages[0])


def main(peer, package, tried, script, configurations, rows_of, absent, unusable=lambda: None):
    """package, tried: its name for pip (or several names), and the version that the script was written for. absent:
    rows that the peer can't have, as (table, what) -> reason. unusable: why the peer can't run here, or None."""
    parser = argparse.ArgumentParser(description=f"Measures {peer}; README.md says what and how.")
    parser.add_argument("--json", metavar="OUT", help="where the figures go")
    parser.add_argument("--quick", action="store_true", help="few turns: does it run, and is it right?")
    parser.add_argument("--serve", metavar="HOW", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, rows_of)

    report, failed, children = {"peer": peer}, [], []
    try:
        why = unusable()
        package, report["version"] = found([package] if isinstance(package, str) else package)
        report["python"] = platform.python_version()
        if why:
            report["missing"] = why
        for configuration in configurations if not why else []:
            children.append(Child(script, configuration))
        measure(children, QUICK_TURNS if options.quick else TURNS)
        failed = [{"how": child.how, "why": child.failed} for child in children if child.failed]
        whole = [child for child in children if not child.failed]
        if failed:
            report["failed"] = failed
        if whole:
            report["rows"] = figures(whole) + [{"table": table, "what": what, "missing": why}
                                               for (table, what), why in absent.items()]
        elif failed:
            report["missing"] = f"{package} failed: {failed[0]['why']}"
    except importlib.metadata.PackageNotFoundError as none:
        report["missing"] = why or f"{none.name} isn't installed: pip install {none.name}=={tried}"
    finally:
        for child in children:
            child.end()
    for one in failed:
        print(f"{peer}, {one['how']}: {one['why']}", file=sys.stderr)
    if "missing" in report:
        print(f"{peer}: {report['missing']}", file=sys.stderr)
    else:
        print(f"{peer} {report['version']}, Python {report['python']}")
        print_rows(report["rows"])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    right = all(row.get("correct", True) for row in report.get("rows", []))
    return 0 if right and not failed else 1
