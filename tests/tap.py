"""TAP for the scripts among the tests, and what several of them need."""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.path.abspath(__file__)).parent.parent  # of the sources; a build tree is where a script is started
HANGS = 20 * 60  # seconds after which a program is taken to hang: busy machines are slow
count = failures = 0


def case(name, problem=None):
    """One case; `problem` says what is wrong with it, if anything."""
    global count, failures
    count += 1
    if problem:
        failures += 1
        print("".join(f"# {line}\n" for line in str(problem).splitlines()), end="")
    print(f"{'not ok' if problem else 'ok'} {count} - {name}", flush=True)
    return not problem


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def finish():
    print(f"1..{count}")
    sys.exit(1 if failures else 0)


def run(*command, **options):
    """None if all went well, else the command and what it printed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
    if done.returncode == 0:
        return None
    return f"$ {shlex.join(str(word) for word in command)}\n{done.stdout}(exit code {done.returncode})"


def config(name, tree="."):
    """A setting of the build tree, as a list of words."""
    found = re.search(rf"^{name} = (.*)$", (Path(tree) / "build/config.ninja").read_text(), re.M)
    return shlex.split(found[1].replace("$$", "$")) if found else []


def checked(name):
    """The path of what the tests are made of: the library and more, with sanitizers where the tree has some."""
    return f"{config('checked_tree')[0]}/{name}"


def version(tree="."):
    return re.search(r"^version = (\S+)$", (Path(tree) / "build.ninja").read_text(), re.M)[1]
