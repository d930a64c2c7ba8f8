"""The programs that bench/tools/gpu.py runs: each has a time limit and a log, and none outlives the script."""
import ctypes
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(os.path.abspath(__file__)).parents[2]
LOGS = ROOT / "build/gpu-logs"
DRY = os.environ.get("GK_GPU_DRY") == "1"


class Stop(Exception):
    """A signal came."""


stopped = threading.Event()


def stop_on_signals():
    def stop(number, _):
        stopped.set()
        kill_below(os.getpid(), itself=False)
        raise Stop(signal.Signals(number).name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)


def descendants(of):
    """The ids of a process's descendants, the deepest last."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [of]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def kill_below(pid, itself):
    """Kills twice, since a process may have been starting another one."""
    for _ in range(2):
        for one in ([pid] if itself else []) + descendants(pid):
            try:
                os.kill(one, signal.SIGKILL)
            except OSError:
                pass


def adopt_orphans():
    """Makes orphaned descendants, of any session, children of this process, so that they can be found and ended."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans():
    kill_below(os.getpid(), itself=False)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Ended:
    def __init__(self, code, text, log, late):
        self.code, self.text, self.log, self.late = code, text, log, late

    def trouble(self, lines=15):
        """None if it ended well, else the way it ended and its last lines."""
        if self.code == 0 and not self.late:
            return None
        how = f"no end after {self.late:.0f} seconds" if self.late else \
            f"killed by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return "\n".join([f"{how}; {self.log.name}:"] + self.text.splitlines()[-lines:])


class Part:
    """A running part: its checks and its time limit."""

    def __init__(self, name, ends, tree, real):
        self.name, self.ends, self.tree, self.real = name, ends, tree, real
        self.checks, self.figures, self.started = [], {}, time.monotonic()
        self.lock = threading.Lock()

    def left(self):
        return self.ends - time.monotonic()

    def call(self, name, command, seconds=None, env=None, cwd=None):
        """Runs a command until it ends or its time is over. Its output goes to a log."""
        log = LOGS / f"{self.name}-{re.sub(r'[^a-zA-Z0-9_.-]+', '-', name)}.log"
        words, limit = [str(word) for word in command], max(0.1, min(seconds or 1e9, self.left()))
        if stopped.is_set() or self.left() <= 0:
            return Ended(1, "no time was left", log, 0)
        with open(log, "w") as to:
            print("$ " + " ".join(words), file=to, flush=True)
            try:
                process = subprocess.Popen(words, cwd=cwd or self.tree, env=env or self.real,
                                           stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT,
                                           start_new_session=True)
            except OSError as problem:
                return Ended(127, str(problem), log, 0)
            late = 0
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                late = limit
                kill_below(process.pid, itself=True)
                process.wait()
        return Ended(process.returncode, log.read_text(errors="replace").partition("\n")[2], log, late)

    def check(self, name, problem, note=""):
        """Keeps and prints one result. problem: None if all is well."""
        with self.lock:
            self.checks.append({"name": name, "passed": not problem, "note": problem or note})
            first, *more = str(problem or note).splitlines() or [""]
            print(f"  {'FAIL' if problem else 'ok  '} {name}" + (f": {first}" if first else ""))
            print("".join(f"       | {line}\n" for line in more), end="", flush=True)
        return not problem

    def failed(self):
        return not self.checks or any(not one["passed"] for one in self.checks)
