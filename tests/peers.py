#!/usr/bin/env python3
"""The scripts under bench/peers: their rows are those of the README there, and where a peer is installed (in
build/peers, or for this Python) each of them comes out right."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

FOLDER = tap.ROOT / "bench" / "peers"
SCRIPTS = sorted(FOLDER.glob("*_graph.py"))


def listed():
    """The rows in the README's table."""
    text = (FOLDER / "README.md").read_text()
    return set(re.findall(r"^\| (F\d) \| `([^`]+)` \|", text, re.M))


def trouble(report, code, printed):
    """What is wrong with a script's JSON, or None."""
    rows = {(row["table"], row["what"]): row for row in report["rows"]}
    if set(rows) != listed():
        return f"its rows and those of README.md differ by {sorted(set(rows) ^ listed())}"
    wrong = [what for what, row in rows.items() if "missing" not in row and row["correct"] is not True]
    if wrong or code != 0:
        return f"exit code {code}, wrong results: {wrong}\n{printed}"
    measured = [row for row in rows.values() if "missing" not in row]
    odd = [row["what"] for row in measured if not row["p5"] <= row["median"] <= row["p95"] or not row["how"]]
    return f"figures that can't be: {odd}" if odd or not measured else None


def run(python, script):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        done = subprocess.run([python, script, "--quick", "--json", out], capture_output=True, text=True,
                              errors="replace", timeout=240)
        return json.loads(out.read_text()) if out.exists() else None, done.returncode, done.stdout + done.stderr


def main():
    own = tap.ROOT / "build" / "peers" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    tap.case("README.md lists rows", None if len(listed()) > 4 else "its table can't be read")
    for script in SCRIPTS:
        report, code, printed = run(python, script)
        if report is None:
            tap.case(script.name, f"no JSON, exit code {code}\n{printed}")
        elif "missing" in report and code == 0:
            tap.skip(script.name, report["missing"])
        else:
            tap.case(script.name, printed if "missing" in report else trouble(report, code, printed))
    tap.finish()


main()
