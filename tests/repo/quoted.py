#!/usr/bin/env python3
"""No document quotes a figure that isn't in bench/results; and bench/tools/quoted.py would see one that did."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

TABLE = {"id": "F1", "what": "one, more: task", "variants": [{"name": "gk: a list", "median": 12.349}, {"name": "m"}],
         "ratios": [{"what": "gk against C", "median": 0.25, "verdict": "missed"}]}
PEERS = [{"peer": "warp", "rows": [{"table": "F1", "what": "pass", "ratio": {"median": 0.5, "verdict": "undecided"}}]}]
PAGE = "(bench/results/cpu/README.md \"F1, one, more: task: gk"


def quoted(*words):
    return subprocess.run([sys.executable, tap.ROOT / "bench/tools/quoted.py", *words], capture_output=True, text=True)


def said_of(folder, text, *words):
    """What is said of a README with that text, and what the text is afterwards."""
    results = Path(folder) / "bench/results/cpu"
    results.mkdir(parents=True, exist_ok=True)
    (results / "tasks.json").write_text(json.dumps({"tables": [TABLE], "peers": PEERS}))
    (Path(folder) / "README.md").write_text(text)
    done = quoted("--root", folder, *words)
    return done.returncode, done.stderr.strip(), (Path(folder) / "README.md").read_text()


def trouble(folder):
    fine = (f"It takes [12.3 ns]{PAGE}: a list\"), which is [0.25]{PAGE} against C\") of C\nand [0.50]"
            "(bench/results/cpu/README.md \"F1, pass: gk against warp\").\n\n"
            "    sleep 5 ms\n\n`9 ms` and `0.5\n0.6`, from CUDA 12.4 on; in half of all lists 1,234 items are C11.\n"
            "| 5 % | 3 ns |\n")
    if said_of(folder, fine) != (0, "", fine):
        return f"figures that are right: {said_of(folder, fine)}"
    shown = (f"It is slower by far,\nas [0.25]{PAGE} against C\") shows.\n\n"
             "- `taskset -c 0\n  build/bench/tasks` is hundreds of times faster.\n"
             "- A goal two hundredths beyond one; tasks take turns, several\n  times; half of all.\n")
    if said_of(folder, shown) != (0, "", shown):
        return f"figures in words that are shown: {said_of(folder, shown)}"
    stale = fine.replace("12.3", "15.0")
    code, said, _ = said_of(folder, stale)
    if code != 1 or 'gk: a list" is 12.3, not 15.0' not in said:
        return f"a figure that is wrong: {code} {said}"
    if said_of(folder, stale, "--write") != (0, "", fine):
        return f"written: {said_of(folder, stale, '--write')}"
    for text, wanted in ((f"[1.0]{PAGE} against D\")", "has no row"), ("It takes 5 ns.", '"5 ns"'),
                         ("It is 3.5 times as fast.", '"3.5 times as fast"'),
                         ("Eight percent less.", '"Eight percent"'),
                         ("It takes twice as long.", '"twice as long"'), ("At 900 GB/s.", '"900 GB/s"'),
                         ("It takes 20 times that.", '"20 times that"'), ("A call takes 5 cycles.", '"5 cycles"'),
                         ("A thousand times as long.", '"thousand times as long"'),
                         ("That is a third of Quadrants.", '"a third of Quadrants"'),
                         ("It is\n  a third\n  of that.", 'README.md:2: "a third of that"'),
                         ("It is half of what it was.", '"half of what it"'), ("It is 0.8 of by hand.", '"0.8"'),
                         ("It fell to about 1.2, then to 1.0.", '"1.0"'), ("from about (1.2) to 1", '"1.2"'),
                         ("**[7 %](elsewhere.md)**", '"7 %"'), ("[1.5](elsewhere.md)", '"1.5"'),
                         ("They are within\nthree hundredths.", '"three hundredths"'),
                         (f"- It is many times that.\n- [0.25]{PAGE} against C\")", 'README.md:1: "many times that"'),
                         ("`bench/a.c` has half the speed.", '"half the speed"'),
                         ("A wait\n\nof that kind doubles the time.", 'README.md:3: "doubles the"'),
                         ("It is faster by far.", '"by far"'), ("Ours is far slower.", '"far slower"')):
        code, said, _ = said_of(folder, text)
        if code != 1 or wanted not in said:
            return f"{text}: {code} {said}"
    missed = f"[0.25]{PAGE} against C\")"
    undecided = "[0.5](bench/results/cpu/README.md \"F1, pass: gk against warp\")"
    for text, wanted in ((f"### Missed\n\n{missed}\n\n### Undecided\n\n{undecided}\n\n### Met\n", ""),
                         (missed, ""), (f"### Missed\n\n{missed}\n", 'gk against warp" isn\'t in "Undecided"'),
                         (f"### Undecided\n\n{missed} {undecided}\n", 'gk against C" isn\'t in "Missed"'),
                         (f"### Missed\n\n{undecided}\n\n### Undecided\n\n{undecided}\n",
                          'task: gk against C" isn\'t in "Missed"'),
                         (f"### Missed\n\n- {missed}\n- {undecided}\n\n### Undecided\n\n- {undecided} {missed}\n",
                          'gk against warp" is in "Missed"'),
                         (f"### Missed\n\nNone.\n\n### Undecided\n{missed}, {undecided}", 'isn\'t in "Missed"'),
                         (f"### Missed\n{missed}\n### Undecided\n\n{missed}",
                          'gk against warp" isn\'t in "Undecided"')):
        _, said, _ = said_of(folder, text)
        if (wanted not in said or said.count("\n")) if wanted else said:
            return f"rows that are missed: {text}: {said}"
    return None


def main():
    done = quoted()
    tap.case("documents quote what the results have", done.stderr.strip() or (None if done.returncode == 0 else "?"))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("other figures are seen", trouble(folder))
    tap.finish()


main()
