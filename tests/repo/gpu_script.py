#!/usr/bin/env python3
"""bench/gpu.sh from its first line to its last, on the simulated driver and a little of everything: an hour on a GPU
mustn't be lost to what can be found without one. Then: it says so when something fails, and leaves nothing running."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

sys.path.insert(0, str(tap.ROOT / "bench/tools"))
import gpu  # noqa: E402
import gpu_carry  # noqa: E402
import gpu_process  # noqa: E402
import gpu_suite  # noqa: E402

# In place of compute-sanitizer: what it does with the program that it is given.
CONTENT = '#!/bin/sh\ncase "$*" in *--host-gated*) off=0;; *) off=;; esac\n[ "$GK_CUDA_PROBE" = "$off" ] || exit 3\n' \
    'while [ "$1" != "${1#--}" ]; do shift 2; done\n"$@" && echo "ERROR SUMMARY: 0 errors"\n'
COMPLAINS = '#!/bin/sh\ncase "$*" in *initcheck*host-gated*) echo "ERROR SUMMARY: 1 error"; exit 99;; esac\n' + \
    CONTENT.partition("\n")[2]
SILENT = "#!/bin/sh\nexit 0\n"
MARK = f"86399.{os.getpid()}"  # seconds, of a sleep that is known by them
HANGS = f"#!/bin/sh\nsetsid sleep {MARK} &\nsleep {MARK}\n"
# In place of Python's clock: no time goes by until a file is there, and from then on it is a day later.
CLOCK = """import os, runpy, subprocess, sys, time
over = sys.argv.pop(1)
time.monotonic = subprocess._time = lambda: 86400.0 * os.path.exists(over)
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def left_running():
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if MARK in path.read_text() else []
        except OSError:
            pass
    return found


def start(folder, words, sanitizer=None, **variables):
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin/compute-sanitizer"
    program.unlink(missing_ok=True)
    if sanitizer:
        program.write_text(sanitizer)
        program.chmod(0o755)
    env = {**os.environ, "GK_GPU_DRY": "1", "PATH": f"{folder}/bin:{os.environ['PATH']}", "PYTHON": sys.executable,
           "OMP_WAIT_POLICY": "passive", **variables}
    command = [tap.ROOT / "bench/gpu.sh", folder / "out", "--quick", "--tree", os.getcwd(), *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(folder, words, sanitizer=None, **variables):
    process = start(folder, words, sanitizer, **variables)
    text = process.communicate(timeout=tap.HANGS)[0]
    try:
        return process.returncode, json.loads((folder / "out/summary.json").read_text()), text
    except (OSError, ValueError):
        return process.returncode, {"parts": []}, text


def whole_way(folder):
    code, summary, text = run(folder, [], CONTENT)
    names, files = [part["name"] for part in summary["parts"]], list((folder / "out").rglob("*"))
    if code or not summary["passed"] or names != list(gpu.PARTS):
        return f"exit code {code}, parts {names}\n{text}"
    if len(files) > 8 or any(path.is_dir() or path.stat().st_size >= 16 << 20 for path in files):
        return f"too much comes back: {files}"
    figures = {part["name"]: part["figures"] for part in summary["parts"]}
    if not figures["probe"]["answers"] or "2 steps" not in figures["softbody"]:
        return "figures are missing"
    if tables_missing(figures["bench"]["tables"]):
        return f"tables are missing: {tables_missing(figures['bench']['tables'])}"
    lists = [f"{name}: 40 lists" for name in ("condition", "grid", "guard", "host-gated")]
    measured = figures["vulkan"].get("tables", {})
    tables = [name for name in ("vulkan_tasks", "vulkan_apps") if measured.get(name, {}).get("tables")]
    ran = len(tables) == 2 and all(f"random lists, {line}" in text for line in lists)
    if "device" in figures["vulkan"] and not ran:
        return f"Vulkan: {tables}\n{text}"
    return None if summary["machine"]["simulated"] and "ok   compare" in text else text


def chosen(folder):
    """Two programs alone, with the slow one last."""
    code, summary, text = run(folder, ["--part", "bench", "--only", "cuda_solver", "--only", "cuda_choices"])
    tables = next((part["figures"].get("tables") for part in summary["parts"] if part["name"] == "bench"), None)
    if code or sorted(tables or []) != ["cuda_choices", "cuda_solver"]:
        return f"exit code {code}, {sorted(tables or [])}\n{text}"
    return None if "tables: cuda_choices cuda_solver" in text else text


def misspelt(folder):
    """A wrong name is refused: else everything would be measured."""
    code, summary, text = run(folder, ["--part", "bench", "--only", "cuda_loop"])
    said = "--only cuda_loop: there is none; there are " in text and "cuda_loops" in text
    return None if code == 2 and not summary["parts"] and said else f"exit code {code}\n{text}"


def tables_missing(reports):
    """Of the programs on CUDA, and of peers, each of which says that there is no device for it."""
    listed = subprocess.run(["ninja", "-t", "targets", "rule", "single"], stdout=subprocess.PIPE, text=True)
    wanted = {Path(name).name for name in listed.stdout.split() if name.startswith("build/bench/cuda_")}
    absent = [name for name in wanted if not reports.get(name, {}).get("tables")]
    silent = {peer.name for peer in gpu.run_peers.listed().values() if peer.needs_gpu}
    silent -= {one["peer"] for one in reports["peers"]["peers"] if "no CUDA driver" in one.get("missing", "")}
    return absent + sorted(silent) if wanted else "there is no program"


def complains(folder):
    code, summary, text = run(folder, ["--part", "sanitizer", "--part", "tests"], COMPLAINS)
    passed = {part["name"]: part["passed"] for part in summary["parts"]}
    bad = [one["name"] for part in summary["parts"] for one in part["checks"] if not one["passed"]]
    if (code, passed, bad) != (1, {"build": True, "tests": True, "sanitizer": False}, ["initcheck, host-gated-0"]):
        return f"exit code {code}, {passed}, {bad}\n{text}"
    return None


def silent(folder):
    code, summary, text = run(folder, ["--part", "sanitizer"], SILENT)
    bad = [one for part in summary["parts"] for one in part["checks"] if not one["passed"]]
    return None if code == 1 and len(bad) == 8 else text


def no_driver(folder):
    """Every part runs, and none passes because nothing ran that could fail."""
    names = ["probe", "conformance", "softbody", "vulkan"]
    code, summary, text = run(folder, [word for name in names for word in ("--part", name)], GK_GPU_DRY="0",
                              LD_LIBRARY_PATH="", VK_ICD_FILENAMES="/nowhere", VK_DRIVER_FILES="/nowhere")
    passed = {part["name"]: part["passed"] for part in summary["parts"]}
    said = "there is no Vulkan driver of a GPU here" in text
    return None if code == 1 and said and passed == dict.fromkeys(["build", *names], False) else text


def await_hanging(process):
    while process.poll() is None and not left_running():
        time.sleep(0.1)
    return process.poll() is None


def hangs(folder):
    """The minutes run out while a part hangs, however long the parts before took."""
    over, clock, python = folder / "over", folder / "clock.py", folder / "python"
    clock.write_text(CLOCK)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{clock}" "{over}" "$@"\n')
    python.chmod(0o755)
    process = start(folder, ["--part", "sanitizer", "--minutes", "5"], HANGS, PYTHON=str(python))
    begun = await_hanging(process)
    over.touch()
    text = process.communicate(timeout=tap.HANGS)[0]
    if not begun or process.returncode != 1 or "no end after" not in text:
        return f"exit code {process.returncode}\n{text}"
    return f"still running: {left_running()}" if left_running() else None


def is_stopped(folder):
    process = start(folder, ["--part", "sanitizer"], HANGS)
    begun = await_hanging(process)
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=tap.HANGS)[0]
    if not begun or process.returncode != 1 or "FAIL the rest" not in text:
        return f"exit code {process.returncode}\n{text}"
    return f"still running: {left_running()}" if left_running() else None


def carried(folder):
    """Only missing packages are taken from those that were brought."""
    for name in gpu_carry.PACKAGES:
        (folder / name).mkdir()
    answers = iter([["ninja-build"], []])
    gpu_carry.packages_missing = lambda: next(answers)
    gpu_process.LOGS = folder
    before, part = dict(os.environ), gpu_process.Part("build", 1e18, tap.ROOT, dict(os.environ))
    try:
        gpu_carry.use_carried(part, folder)
        path = os.environ["PATH"]
    finally:
        os.environ.clear()
        os.environ.update(before)
    if not path.startswith(f"{folder}/ninja-build/usr/bin:") or "libpng" in path or part.failed():
        return f"PATH is {path}, {part.checks}"
    return None


def carried_peers(folder):
    """Peers are unpacked only for the Python they were packed for, if it lacks them, and it finds them then."""
    site, before = folder / "site", (gpu_carry.PEER, gpu_carry.PEERS)
    (site / "made_up-1.5.dist-info").mkdir(parents=True)
    (site / "made_up-1.5.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.5\n")
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    gpu_carry.PEER, gpu_carry.PEERS = "made-up", folder / "there"
    try:
        nothing = gpu_carry.use_peers(folder)
        gpu_carry.write_peers(site, gpu_carry.peers_archive(folder, "2.7"))
        other = gpu_carry.use_peers(folder)
        gpu_carry.write_peers(site, gpu_carry.peers_archive(folder, own))
        found = gpu_carry.use_peers(folder)
        words = ["/usr/bin/env", f"PYTHONPATH={gpu_carry.PEERS}", sys.executable]
        again = gpu_carry.run_peers.has(words, "made-up==1.5")
    finally:
        gpu_carry.PEER, gpu_carry.PEERS = before
    right = (nothing, other, found, again) == (None, "peers-python-2.7.tar.xz: this is another Python", "made-up", True)
    return None if right else f"{nothing}, {other}, {found}, {again}"


def compared():
    found = gpu.differences({"a": "pass", "b": "pass", "c": "skip"}, {"a": "pass", "b": "FAIL", "d": "pass"}, "case")
    wanted = ["case b: real pass, simulated FAIL", "case c: real skip, simulated -", "case d: real -, simulated pass"]
    if found != wanted:
        return found
    found = gpu.answers('{"device":0,"why":""}\n{"device":0,"probe":"P1a","answer":"yes"}\nthis is no line of it\n'
                        '{"device":0,"probe":"P2","answer":"no"}\n{"device":1,"probe":"P2","answer":"yes"}\n')
    return None if found == {"P1a": "yes", "P2": "no"} else found


def logs(folder):
    """Logs keep their length, unless a limit is given."""
    def packed(each, whole):
        gpu.LOGS = folder / "logs"
        shutil.rmtree(gpu.LOGS, ignore_errors=True)
        gpu.LOGS.mkdir()
        for name, size in (("short", 100), ("long", 5000)):
            (gpu.LOGS / name).write_bytes(os.urandom(size))
        gpu.pack_logs(folder, each, whole)
        with tarfile.open(folder / "logs.tar.gz") as archive:
            return {one.name: one.size for one in archive}
    before = gpu.LOGS
    try:
        found = [packed(None, None), packed(1000, None), packed(None, 2000)]
    finally:
        gpu.LOGS = before
    right = found[0] == {"short": 100, "long": 5000} and 1000 < found[1]["long"] < 1100 and found[2] == {"short": 100}
    return None if right and found[1]["short"] == 100 else found


def cases():
    """The script's list of cases is the suite's."""
    listed = subprocess.run(["build/tests/conformance/conformance", "--list"], stdout=subprocess.PIPE, text=True)
    found = gpu_suite.all_cases()
    some = ["loops/counter", "sections/two"]  # parts of other names
    again = subprocess.run(["build/tests/conformance/conformance", "--list", *gpu_suite.filters(some)],
                           stdout=subprocess.PIPE, text=True)
    if again.stdout.split() != some:
        return again.stdout
    if sorted(listed.stdout.split()) != sorted(found):
        return set(listed.stdout.split()) ^ set(found)
    return None if found["plain/two_devices_or_threads"] == {"DO_WHILE"} else found


def main():
    tap.case("cases and their needs", cases())
    tap.case("where real and simulated differ", compared())
    for name, test in (("the whole way", whole_way), ("some benchmarks alone", chosen),
                       ("one that there isn't", misspelt),
                       ("a complaint fails its part, and no other", complains),
                       ("a sanitizer that says nothing", silent), ("no driver", no_driver),
                       ("what hangs is ended in time", hangs), ("a signal ends all", is_stopped),
                       ("what was carried", carried), ("peers that were", carried_peers),
                       ("how much of the logs is kept", logs)):
        with tempfile.TemporaryDirectory() as folder:
            tap.case(name, test(Path(folder)))
    tap.finish()


main()
