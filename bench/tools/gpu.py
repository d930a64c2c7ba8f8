#!/usr/bin/env python3
"""Everything that only a machine with an NVIDIA GPU can answer, part by part.

  bench/gpu.sh FOLDER [--part NAME ...] [--only NAME ...] [--minutes M] [--carry FOLDER] [--tree FOLDER] [--quick]
  bench/gpu.sh --pack FOLDER [--pack-peers PYTHON]

FOLDER gets summary.txt, summary.json and logs.tar.gz. The parts, in this order; without --part all of them:

  build        what the chosen parts need, in build/gpu, without sanitizers (done in any case)
  probe        questions about this driver that its documentation leaves open
  tests        the test suite, without tests that don't depend on the driver
  conformance  the suite and random lists, native and host-gated
  sanitizer    the suite under compute-sanitizer: host-gated, and native for graphs without conditional nodes, since it
               reports false errors in their bodies
  softbody     the demo on the GPU, compared with OpenMP
  bench        the tables of CUDA, and the peers that are installed or in carry/
  vulkan       through the GPU's Vulkan driver, if there is one: gk-info, the suite and random lists by each way of
               gating, the soft body, the tables of Vulkan. Only if it is asked for by --part, a missing driver is a
               failure
  hip          the HIP backend through an adapter over this machine's CUDA driver and NVRTC (tests/simgpu/hip.c), by
               plain launches, by graphs and host-gated: the suite, random lists, the soft body
  compare      probe and suite on the simulated driver, compared with the real one case by case

A part that fails or runs out of time doesn't keep the next from running. With --minutes the script ends within that
time, with the results so far. Without it each part has a generous limit, so that nothing hangs. If one command may not
take that long, --part selects parts, and --only selects programs and peers of bench. --log-bytes cuts the middle out of
longer logs; --logs-bytes leaves the longest logs out of the archive. Exit code 0: everything selected ran and was
right. No process is left running.

--pack is for a machine with a network but without a GPU. It fetches packages that the GPU machine may lack (Debian's
cmocka, libpng and ninja, and NVRTC). Copy them to the folder carry/ in the repository's root there, or name their
folder by --carry. --pack-peers adds Quadrants for that version of Python, such as 3.12. Only missing packages are used.
It is a failure if they take more than --pack-bytes. GK_GPU_DRY=1 uses the simulated driver in place of the real one,
and compute-sanitizer only if it is in PATH.
"""
import argparse
import datetime
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from gpu_carry import PEERS, configure, pack, run_peers, use_carried
from gpu_process import DRY, LOGS, ROOT, Part, Stop, adopt_orphans, end_orphans, stop_on_signals
from gpu_suite import cases_of, check_suite, conformance, native_on_real, random_lists, run_suite, sanitizer
import gpu_vulkan

HIP = "build/simgpu/hip7"
SPOT = "docs/examples/softbody/spot.obj"
TREE = ROOT / "build/gpu"

# Tests of tests/run.py that use no device, or that take minutes and give the same result on any machine.
NO_DEVICE = ["coverage", "mutations", "lint", "exports", "headers", "installed", "docs", "doxygen", "errors", "outside",
             "printed", "peers", "kernel compilers", "kernel flags", "cuda images", "CUDA's headers", "analyzer",
             "valgrind", "gpu script", "tidy", "aarch64", "configured", "composed kernels on Vulkan",
             "mutations runner", "bench pages", "bench compare", "quoted figures", "from sources"]

# Until the body touches something, steps add up roundings; final.obj has nine digits. After that, contacts amplify the
# last bit: OpenMP with one thread and with two is centimetres apart after 40 steps. Only the fall as a whole can be
# compared then.
FREE_STEPS, FREE_METRES, WHOLE_METRES, WHOLE_ENERGY = 20, 1e-6, 0.1, 0.05


# ---- the machine ----------------------------------------------------------------------------------------------------

ASK = """
import ctypes, json
cuda, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int
look_up = getattr(cuda, "cuGetProcAddress_v2", None) or cuda.cuGetProcAddress
def call(name, *arguments):
    entry = ctypes.c_void_p()
    look_up(name.encode(), ctypes.byref(entry), 11040, ctypes.c_uint64(0), ctypes.byref(number()))
    code = ctypes.CFUNCTYPE(number)(entry.value)(*arguments)
    if code: raise SystemExit("%s answers %d" % (name, code))
version, device, major, minor, name = number(), number(), number(), number(), ctypes.create_string_buffer(200)
call("cuInit", 0)
call("cuDriverGetVersion", ctypes.byref(version))
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDeviceGetName", name, 200, device)
call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
print(json.dumps({"device": name.value.decode(), "arch": 10 * major.value + minor.value,
                  "driver": "%d.%d" % (version.value // 1000, version.value % 1000 // 10)}))
"""


def about_machine(part):
    """Facts about the GPU and its driver, asked of the driver itself."""
    asked = part.call("machine", [sys.executable, "-c", ASK], 60)
    try:
        about = json.loads(asked.text.splitlines()[-1])
    except (ValueError, IndexError):
        about = {"device": "unknown", "driver": "unknown", "trouble": (asked.text.splitlines() or ["?"])[-1]}
    smi = configure.output("nvidia-smi", "--query-gpu=name,driver_version,memory.total,vbios_version",
                           "--format=csv,noheader") if not DRY else None
    about.update(nvidia_smi=(smi or "").strip(), simulated=DRY, host=" ".join(os.uname()), cpus=os.cpu_count(),
                 date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                 nvcc=(configure.output("/usr/local/cuda/bin/nvcc", "--version") or "no").strip().splitlines()[-1])
    return about


def commit():
    text = configure.output("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12")
    return os.environ.get("BENCH_COMMIT") or (text or "unknown").strip()


# ---- build ----------------------------------------------------------------------------------------------------------

def build_targets(tree, chosen, options):
    """The targets that the chosen parts need, and those that build.ninja lacks."""
    listed = configure.output("ninja", "-C", str(tree), "-t", "targets", "all") or ""
    known = {line.partition(":")[0]: line.partition(":")[2].strip() for line in listed.splitlines()}
    stand_ins = [name for name in known if re.fullmatch(r"build/simgpu/lib[^/]*", name)]
    runner, lists = "build/tests/conformance/conformance", "build/tests/conformance/random_lists"
    needs = {"probe": ["build/tests/cuda/probe", "build/gk-info"],
             "conformance": [runner, lists], "sanitizer": [runner], "softbody": ["build/softbody"],
             "compare": [runner, "build/tests/cuda/probe", *stand_ins],
             "bench": [name for name, rule in known.items() if rule == "single" and name.startswith("build/bench/")],
             "vulkan": ["build/gk-info", runner, lists, "build/softbody", "build/bench/vulkan_tasks",
                        "build/bench/vulkan_apps"],
             "hip": ["build/gk-info", runner, lists, "build/softbody",
                     *(name for name in known if re.fullmatch(f"{HIP}/lib[^/]*", name))],
             "build": ["all", runner, lists, "build/tests/cuda/probe"],
             "tests": [] if options.quick else
             ["all"] + [name for name, rule in known.items() if rule in ("test", "suite", "suite_shared", "single")]}
    wanted = {target for name in chosen for target in needs[name]} | set(stand_ins if DRY else [])
    missing = sorted(wanted - set(known))
    if "compare" in chosen and not stand_ins:
        missing.append("build/simgpu/lib*")
    return sorted(wanted & set(known)), missing


def build(part, options):
    if part.tree == TREE:
        compiler = configure.find_compiler(os.environ.get("CC"))
        configure.tree_of_its_own(TREE.name, compiler, ["--sanitize=none"], werror=False)
    targets, missing = build_targets(part.tree, options.part, options)
    done = part.call("ninja", ["ninja", "-k", "0", *targets], env=dict(os.environ))
    part.check("builds", done.trouble(40), f"{len(targets)} targets")
    if missing:
        part.check("all is known to build.ninja", "there is no " + ", ".join(missing))


# ---- probe, tests ---------------------------------------------------------------------------------------------------

def objects(text):
    """The objects of those lines that are JSON."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return [one for one in found if isinstance(one, dict)]


def answers(text):
    """{question: yes, no, both, not shown or not asked}, of the first device."""
    return {one["probe"]: one["answer"] for one in objects(text) if one.get("device") == 0 and "probe" in one}


def probe(part, options):
    done = part.call("probe", ["build/tests/cuda/probe"])
    found = answers(done.text)
    part.figures.update(answers=found, lines=objects(done.text))
    odd = {one["probe"]: one for one in part.figures["lines"] if one.get("answer", "yes") != "yes"}
    part.check("answers", done.trouble() or (None if found else "it gives none\n" + done.text[-2000:]),
               f"{len(found)}, {len(odd)} of them not yes" + "".join(
                   f"\n{name} {one['answer']}: {one.get('question', '')}" for name, one in odd.items()))
    info = part.call("gk-info", ["build/gk-info", "--backend", "cuda"])
    part.check("gk-info", info.trouble())
    # A node sees each time what the kernel before it wrote, whatever else the device does.
    times = 3 if options.quick else 300
    busy = part.call("probe-busy", ["build/tests/cuda/probe", str(times), "busy"])
    again = answers(busy.text)
    changed = {name: (found[name], again.get(name)) for name in found
               if again.get(name) != found[name] and found[name] != "not shown"}
    part.figures.update(busy=objects(busy.text))
    part.check("the same with copies beside", busy.trouble() or (f"other answers: {changed}" if changed else None),
               f"{times} times")


def tests(part, options):
    without = [word for name in NO_DEVICE for word in ("--without", name)]
    chosen = ["base/error_test", "list/blocks_test"] if options.quick else []
    command = [sys.executable, "tests/run.py", "--tree", str(part.tree), *without, *chosen]
    if options.quick:
        command.append("--no-build")
        built = part.call("ninja", ["ninja", *(f"build/tests/unit/{name}" for name in chosen)])
        part.check("builds", built.trouble())
    done = part.call("suite", command, cwd=ROOT)
    counts = re.findall(r"^\d+ passed, \d+ failed, \d+ skipped$", done.text, re.M)
    part.figures["counts"] = counts[-1] if counts else ""
    failed = re.findall(r"^failed: (.*)$", done.text, re.M)
    part.check("suite", "\n".join([counts[-1], *failed]) if failed and counts else done.trouble(),
               counts[-1] if counts else "")


# ---- the soft body --------------------------------------------------------------------------------------------------

def fall(part, backend, steps, mesh, words=()):
    """Runs the demo. @return its last vertices, the numbers of its last line, and the problem or None"""
    out = LOGS / f"softbody-{backend}-{steps}"
    done = part.call(f"{backend}-{steps}", ["build/softbody", mesh, "--backend", backend, "--steps", steps, "--out",
                                            out, "--quiet", *words])
    if done.trouble():
        return None, None, done.trouble()
    last = done.text.splitlines()[-1].split()
    numbers = {name: float(value) for name, value in zip(last[0::2], last[1::2])}
    text = (out / "final.obj").read_text()
    return [tuple(map(float, line.split()[1:4])) for line in text.splitlines() if line.startswith("v ")], numbers, None


def compare_falls(part, backend, steps, mesh, words, check):
    name = f"{steps} steps as on OpenMP"
    ours, our_numbers, trouble = fall(part, backend, steps, mesh, words)
    theirs, their_numbers, other = fall(part, "openmp", steps, mesh) if not trouble else (None, None, None)
    if trouble or other:
        part.check(name, trouble or other)
        return
    problem, note = check(ours, our_numbers, theirs, their_numbers)
    part.figures[f"{steps} steps"] = {backend: our_numbers, "openmp": their_numbers, "compared": note}
    part.check(name, problem and f"{problem}; {note}\n{our_numbers}\n{their_numbers}", note)


def check_free(ours, our_numbers, theirs, their_numbers):
    apart = max(abs(a - b) for p, q in zip(ours, theirs) for a, b in zip(p, q))
    same = len(ours) == len(theirs) and our_numbers["newton"] == their_numbers["newton"]
    return None if same and apart <= FREE_METRES else "not equal within rounding", \
        f"at most {apart:.1e} m apart ({FREE_METRES:.0e} allowed)"


def check_whole(ours, our_numbers, theirs, their_numbers):
    centres = [[statistics.fmean(p[k] for p in one) for k in range(3)] for one in (ours, theirs)]
    apart = max(abs(a - b) for a, b in zip(*centres))
    energy = abs(our_numbers["energy"] - their_numbers["energy"]) / their_numbers["energy"]
    return None if apart <= WHOLE_METRES and energy <= WHOLE_ENERGY else "another fall", \
        f"centres {apart:.1e} m apart ({WHOLE_METRES:g} allowed), energy {100 * energy:.2g} % " \
        f"({100 * WHOLE_ENERGY:g} % allowed)"


def softbody(part, options):
    mesh = SPOT
    if options.quick:
        mesh = LOGS / "tetrahedron.obj"
        mesh.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n")
    compare_falls(part, options.backend, 2 if options.quick else FREE_STEPS, mesh, [], check_free)
    compare_falls(part, options.backend, 4 if options.quick else 240, mesh, [] if options.quick else ["--verify"],
                  check_whole)


# ---- bench, compare -------------------------------------------------------------------------------------------------

# These take minutes each, so they run last: with little time, all other tables are measured.
LAST = ["cuda_solver", "cuda_particles", "cuda_bfs", "cuda_softbody", "cuda_growth"]

def bench(part, options, programs_of="cuda_", is_peer=lambda peer: peer.needs_gpu):
    """Measures the tables of CUDA, and the peers that are installed or in carry/."""
    out = LOGS / f"{part.name}-tables"
    peers = [name for name, peer in run_peers.listed().items() if is_peer(peer)]
    listed = (configure.output("ninja", "-C", str(part.tree), "-t", "targets", "rule", "single") or "").split()
    programs = [Path(name).name for name in sorted(listed) if name.startswith(f"build/bench/{programs_of}")]
    chosen = sorted(programs + peers, key=lambda name: LAST.index(name) if name in LAST else -1)
    chosen = [name for name in chosen if not options.only or name in options.only]
    programs, peers = ([name for name in chosen if name in kind] for kind in (programs, peers))
    command = [sys.executable, "bench/tools/run.py", "--offline", "--site", PEERS, "--out", out,
               *(["--quick"] if options.quick else ["--rounds", "1"]),
               "--minutes", f"{max(0.1, (part.left() - 20) / 60):.2f}",  # the rest is for writing the results
               *(word for name in chosen for word in ("--only", name))]
    done = part.call("run", command)
    tables = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("*.json"))}
    part.figures["tables"] = tables
    missing = [f"{name}: {tables.get(name, {}).get('missing', 'it left no figures')}" for name in programs
               if not tables.get(name, {}).get("tables")]
    part.check("tables", done.trouble() or "\n".join(missing) or (None if chosen else "there is no such program"),
               " ".join(programs))
    found = tables.get("peers", {}).get("peers", [])
    part.check("peers", None if len(found) == len(peers) else f"{len(found)} of {len(peers)} are in the JSON",
               "".join(f"\n{one['peer']}: {one.get('missing', one.get('version'))}" for one in found))


def vulkan(part, options):
    name, note = gpu_vulkan.find_device(part)
    if not name:
        part.check("a GPU's driver", note if options.asked else None, note)
        return
    part.check("a GPU's driver", None, note)
    part.figures["device"] = name
    part.check("gk-info", part.call("gk-info", ["build/gk-info", "--backend", "vulkan"]).trouble())
    options = argparse.Namespace(**{**vars(options), "backend": "vulkan"})
    gpu_vulkan.conformance(part, options)
    softbody(part, options)
    bench(part, options, "vulkan_", lambda peer: peer.script.stem == "quadrants_vulkan")


def hip(part, options):
    """HIP's logic on a real GPU. Its waves are NVIDIA's, so the adapter names an AMD GPU whose waves have 32 lanes."""
    plain, words = dict(part.real), ["--backend", "hip"]
    libraries = ":".join(filter(None, (str(part.tree / HIP), plain.get("LD_LIBRARY_PATH"))))
    options = argparse.Namespace(**{**vars(options), "backend": "hip"})
    ways = (("plain launches", "0", []), ("graphs", "1", []), ("host-gated", "0", ["--host-gated"]))
    for way, graphs, gated in ways:
        part.real = dict(plain, LD_LIBRARY_PATH=libraries, SIMHIP_ARCH="gfx1100", GK_HIP_GRAPHS=graphs)
        check_suite(part, f"suite, {way}", run_suite(part, way, words + gated, cases_of(options), part.real))
        random_lists(part, options, f"random lists, {way}", gated, 0.2)
    part.check("gk-info", part.call("gk-info", ["build/gk-info", *words]).trouble())
    softbody(part, options)


def differences(real, simulated, what):
    """Lines with the differences between two dicts."""
    return [f"{what} {name}: real {real.get(name, '-')}, simulated {simulated.get(name, '-')}"
            for name in sorted(set(real) | set(simulated)) if real.get(name) != simulated.get(name)]


def compare(part, options):
    about = options.about
    simulated = with_simulated(part.real, part.tree)
    if re.fullmatch(r"\d+\.\d+", about["driver"]):
        simulated["SIMGPU_VERSION"] = about["driver"]
    if about.get("arch"):
        simulated["SIMGPU_ARCH"] = str(about["arch"])
    asked = [part.call(f"probe-{name}", ["build/tests/cuda/probe"], env=env)
             for name, env in (("real", part.real), ("simulated", simulated))]
    probed = [answers(one.text) for one in asked]
    found = differences(*probed, "probe")
    part.check("the probe answers on both", asked[0].trouble() or asked[1].trouble() or
               (None if all(probed) else "there are no answers"), f"{len(probed[0])} answers")
    real = native_on_real(part, options)
    other = run_suite(part, "simulated", ["--backend", options.backend], cases_of(options), simulated, alone=False)
    part.check("the suite runs on both", real["unavailable"] or other["unavailable"] or None)
    outcomes = [{case: outcome for case, (outcome, _) in ran["outcomes"].items()} for ran in (real, other)]
    found += differences(real["constructs"], other["constructs"], "construct")
    for line in differences(*outcomes, "case"):
        case = line.split()[1].rstrip(":")
        whys = [f"{name}: {ran['outcomes'][case][1][:400]}" for name, ran in (("real", real), ("simulated", other))
                if ran["outcomes"].get(case, ["", ""])[1]]
        found.append("\n".join([line, *whys]))
    part.figures.update(differences=found, simulated=other, real_device=real["device"], real_driver=real["driver"])
    part.check("real and simulated driver do the same", "\n".join(found),
               f"{len(outcomes[0])} cases, {len(probed[0])} answers of the probe")


# ---- the whole ------------------------------------------------------------------------------------------------------

PARTS = {"build": (build, 240), "probe": (probe, 60), "tests": (tests, 420), "conformance": (conformance, 480),
         "sanitizer": (sanitizer, 500), "softbody": (softbody, 300), "bench": (bench, 600), "vulkan": (vulkan, 900),
         "hip": (hip, 600), "compare": (compare, 400)}
IN_NO_HURRY = 6  # times as long without --minutes: slow parts end by themselves, and hanging ones are ended


def with_simulated(env, tree):
    """An environment in which the simulated driver and NVRTC are found first."""
    return dict(env, LD_LIBRARY_PATH=":".join(filter(None, (str(tree / "build/simgpu"), env.get("LD_LIBRARY_PATH")))))


def real_environment(tree):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GK_", "SIMGPU_"))}
    return with_simulated(env, tree) if DRY else env


def run_part(name, options, ends):
    function, seconds = PARTS[name]
    if options.minutes is None:
        seconds *= IN_NO_HURRY
    part = Part(name, min(ends, time.monotonic() + seconds), options.tree, real_environment(options.tree))
    print(f"{name} (at most {max(0, part.left()):.0f} s)", flush=True)
    if part.left() < 3:
        part.check("time", "none was left; ask for this part by itself")
    else:
        try:
            if name == "build":
                use_carried(part, options.carry)
            function(part, options)
            if name == "build":
                part.real = real_environment(part.tree)
                options.about.update(about_machine(part))
                if options.backend == "cuda":
                    part.check("a driver", options.about.get("trouble"),
                               f"{options.about['driver']}, {options.about['device']}")
        except (OSError, ValueError, LookupError, subprocess.SubprocessError, configure.Missing) as problem:
            part.check("runs to its end", f"{type(problem).__name__}: {problem}")
        finally:
            end_orphans()
    return {"name": name, "passed": not part.failed(), "seconds": round(time.monotonic() - part.started, 1),
            "checks": part.checks, "figures": part.figures}


def pack_logs(folder, each, whole):
    """Writes one archive. Logs of more than `each` bytes lose their middle. The longest logs are left out if the
    archive has more than `whole` bytes. None: no limit."""
    for path in LOGS.rglob("*"):
        if each is not None and path.is_file() and path.stat().st_size > each:
            data, half = path.read_bytes(), max(each // 2, 1)
            path.write_bytes(data[:half] + b"\n... the middle is left out ...\n" + data[-half:])
    logs = sorted((path for path in LOGS.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    archive = folder / "logs.tar.gz"
    while True:
        with tarfile.open(archive, "w:gz") as to:
            for path in logs:
                to.add(path, path.relative_to(LOGS))
        if whole is None or archive.stat().st_size <= whole or not logs:
            return
        logs = logs[:-1 - len(logs) // 10]


def write_summary(folder, options, parts):
    report = {"gk": configure.version(), "commit": commit(), "machine": options.about, "backend": options.backend,
              "quick": options.quick, "passed": all(part["passed"] for part in parts), "parts": parts}
    (folder / "summary.json").write_text(json.dumps(report, indent=1) + "\n")
    about = options.about
    lines = [f"gk {report['gk']} ({report['commit']}) on {about.get('device', 'unknown')}"
             f"{' (simulated)' if DRY else ''}, driver {about.get('driver', 'unknown')}, {about.get('date', '')}"]
    if about.get("nvidia_smi"):
        lines.append(about["nvidia_smi"])
    for part in parts:
        lines.append(f"{'ok  ' if part['passed'] else 'FAIL'} {part['name']}, {part['seconds']} s")
        for one in part["checks"]:
            note = "\n           | ".join(str(one["note"]).splitlines())
            lines.append(f"       {'ok  ' if one['passed'] else 'FAIL'} {one['name']}" + (f": {note}" if note else ""))
    (folder / "summary.txt").write_text("\n".join(lines) + "\n")
    pack_logs(folder, options.log_bytes, options.logs_bytes)
    print("\n".join(line for line in lines if not line.startswith("  ")))


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("folder", nargs="?", type=Path)
    usage.add_argument("--part", action="append", choices=PARTS)
    usage.add_argument("--only", action="append", metavar="NAME", help="a program or a peer of bench, as cuda_loops")
    usage.add_argument("--minutes", type=float, help="until all must have ended; default: no limit")
    usage.add_argument("--log-bytes", type=int, metavar="N", help="of the log of one program; default: no limit")
    usage.add_argument("--logs-bytes", type=int, metavar="N", help="of logs.tar.gz; default: no limit")
    usage.add_argument("--carry", type=Path, default=ROOT / "carry", metavar="FOLDER")
    usage.add_argument("--tree", type=Path, default=TREE, metavar="FOLDER", help="configured already; else build/gpu")
    usage.add_argument("--quick", action="store_true", help="a little of everything: does the way hold?")
    usage.add_argument("--backend", default="cuda", metavar="NAME")
    usage.add_argument("--pack", metavar="FOLDER")
    usage.add_argument("--pack-peers", metavar="PYTHON", help="the version that is there, as 3.12")
    usage.add_argument("--pack-bytes", type=int, metavar="N", help="of what --pack fetches; default: no limit")
    options = usage.parse_args()
    if options.pack:
        return pack(options.pack, options.pack_bytes, options.pack_peers)
    if not options.folder:
        usage.error("a folder for what comes of it, or --pack")
    known = [*re.findall(r"^build build/bench/((?:cuda|vulkan)_\w+): single", (ROOT / "build.ninja").read_text(), re.M),
             *(name for name, peer in run_peers.listed().items() if peer.needs_gpu or name == "quadrants_vulkan")]
    for name in options.only or []:
        if name not in known:
            usage.error(f"--only {name}: there is none; there are {', '.join(known)}")
    ends = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes - 10  # for the archive
    options.about, options.asked, options.part = {}, bool(options.part), options.part or list(PARTS)
    folder, options.carry, options.tree = (path.absolute() for path in (options.folder, options.carry, options.tree))
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    adopt_orphans()
    stop_on_signals()
    parts = []
    try:
        for name in ["build"] + [name for name in PARTS if name in options.part and name != "build"]:
            parts.append(run_part(name, options, ends))
    except Stop as why:
        parts.append({"name": "the rest", "passed": False, "seconds": 0, "figures": {},
                      "checks": [{"name": "runs", "passed": False, "note": f"stopped by {why}"}]})
    finally:
        end_orphans()
        write_summary(folder, options, parts)
    return 0 if all(part["passed"] for part in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
