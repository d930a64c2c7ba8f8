"""What tests/run.py runs: scripts, programs with arguments, and which of them runs where."""
import itertools
import os
import re
from pathlib import Path

ROOT = Path(os.path.abspath(__file__)).parent.parent

# What isn't a program: its name, its command, and whether each tree has its own (True), the first speaks for all
# (False), or it needs the tree without sanitizers (PLAIN).
PLAIN = "plain"
SCRIPTS = [
    ("mutations", ["tests/mutations.py"], False),
    ("runner", ["tests/repo/runner.py"], False),
    ("mutations runner", ["tests/mutations_runner.py"], False),
    ("lint", ["tests/repo/lint.py"], False),
    ("configured", ["tests/repo/configured.py"], False),
    ("layers", ["tests/repo/layers.py"], False),
    ("exports", ["tests/repo/exports.py"], True),
    ("headers", ["tests/consumer/headers.py"], False),
    ("installed", ["tests/consumer/installed.py"], True),
    ("from sources", ["tests/consumer/from_sources.py"], False),
    ("softbody", ["tests/softbody.py"], False),
    ("docs", ["tests/repo/docs.py"], False),
    ("conformance docs", ["tests/repo/conformance_docs.py"], False),
    ("doxygen", ["tests/repo/doxygen.py"], False),
    ("errors", ["tests/repo/errors.py"], False),
    ("outside", ["tests/repo/outside.py"], False),
    ("examples", ["tests/repo/examples.py"], False),
    ("printed", ["tests/repo/printed.py"], False),
    ("no device", ["tests/repo/no_device.py"], False),
    ("gk-info", ["tests/info.py"], False),
    ("aarch64", ["tests/repo/aarch64.py"], False),
    ("bench", ["tests/bench.py"], PLAIN),
    ("bench pages", ["tests/repo/bench_pages.py"], False),
    ("bench compare", ["tests/repo/bench_compare.py"], False),
    ("costs", ["tests/repo/costs.py"], False),
    ("quoted figures", ["tests/repo/quoted.py"], False),
    ("peers", ["tests/repo/peers.py"], PLAIN),
    ("kernel compilers", ["tests/kernels/compilers.py", "tasks", "transfers", "walk", "functions", "tests/kernels"],
     False),
    ("kernel compilers, other headers", ["tests/kernels/compilers.py", "docs", "bench", "tests/conformance"], False),
    ("composed kernels on Vulkan", ["tests/kernels/vulkan.py"], False),
    ("kernel flags", ["tests/kernels/flags.py"], False),
    ("lowering", ["tests/lowering/compare.py"], False),
    ("cuda images", ["tests/cuda/image.py"], False),
    ("kernels compiled beforehand", ["tests/cuda/embed.py"], False),
    ("CUDA's headers", ["tests/cuda/abi.py"], False),
    ("HIP's headers", ["tests/hip/abi.py"], False),
    ("HIP images", ["tests/hip/image.py"], False),
    ("probe", ["tests/cuda/probe.py"], PLAIN),
    ("softbody on simulated CUDA", ["tests/softbody_devices.py"], PLAIN),
    ("softbody on lavapipe", ["tests/softbody_devices.py", "lavapipe"], PLAIN),
    ("softbody on simulated HIP", ["tests/softbody_devices.py", "hip7.2:graphs"], PLAIN),
    ("gk under MPI", ["tests/distributed/mpi.py"], PLAIN),
    ("gk under StarPU", ["tests/distributed/starpu.py"], PLAIN),
    ("gpu script", ["tests/repo/gpu_script.py"], PLAIN),
    ("valgrind", ["tests/repo/valgrind.py"], PLAIN),
]
# Programs with arguments, all of them targets of ninja's rule `suite`: name, command, what --full appends to it,
# and whether it runs under ThreadSanitizer, too.
CONFORMANCE = "build/tests/conformance/conformance"
RANDOM_LISTS = "build/tests/conformance/random_lists"


def simulated(version, *command, no="", probes=True):
    """On the simulated driver as it was in that version; a real one, if there is one, isn't found.

    no: the probe's questions that it answers with no. probes: else gk takes the driver at its word, which saves half
    of the time where many devices are opened."""
    return ["/usr/bin/env", "LD_LIBRARY_PATH=build/simgpu", "CUDA_HOME=build/simgpu", f"SIMGPU_VERSION={version}",
            f"SIMGPU_NO={no}", *([] if probes else ["GK_CUDA_PROBE=0"]), *command, "--backend", "cuda"]


def simulated_hip(version, *command, graphs, fault="", arch="gfx90a"):
    """On the simulated HIP of that version, with an error that users report (tests/simgpu/README.md). graphs: whether
    runs are graphs; not a trial by time, so that each run of the tests does the same."""
    return ["/usr/bin/env", f"LD_LIBRARY_PATH=build/simgpu/hip{version[0]}:build/simgpu", f"SIMHIP_FAULT={fault}",
            f"SIMHIP_ARCH={arch}", f"GK_HIP_GRAPHS={int(graphs)}", *command, "--backend", "hip"]


CORES = itertools.cycle(sorted(os.sched_getaffinity(0)))


def on_lavapipe(*command, layer=True, standin=False, gate="condition", unmapped=False):
    """On Mesa's lavapipe, a Vulkan device of the CPU. It has one core, by turns: on several, it wakes threads for each
    dispatch, which takes longer than the dispatch. All trees share what it compiled, which is most of the time else.

    layer: under the validation layer, whose first message ends the process; random lists take five times as long.
    standin: with tests/vulkan/standin.c between gk and libvulkan. The layer isn't there then, since it would see the
    stand-in's commands. gate: how tasks of runs that don't come are skipped. unmapped: as if the host didn't see the
    device's memory. $LAVAPIPE_MANIFEST names another lavapipe than the installed one."""
    found = sorted(str(path) for folder in ("/usr/share", "/etc")
                   for path in Path(folder, "vulkan/icd.d").glob("lvp_icd.*")) or ["/nowhere"]
    manifest = os.environ.get("LAVAPIPE_MANIFEST", found[0])
    return ["/usr/bin/env", f"VK_ICD_FILENAMES={manifest}", f"VK_DRIVER_FILES={manifest}",
            *(["LD_LIBRARY_PATH=build/vulkan_standin"] if standin else
              ["VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation", "VK_LAYER_SETTINGS_PATH=tests/vulkan"] if layer else
              []),
            f"MESA_SHADER_CACHE_DIR={ROOT}/build/mesa_cache", "GK_CACHE=build/tests/vulkan_cache",
            f"GK_VULKAN_GATE={gate}", f"GK_VULKAN_UNMAPPED={int(unmapped)}", "taskset", "-c", str(next(CORES)),
            *command, "--backend", "vulkan"]


SUITES = [
    ("conformance on openmp", [CONFORMANCE, "--backend", "openmp"], [], True),
    ("conformance on the test device", [CONFORMANCE, "--backend", "test_device"], [], True),
    ("conformance on the fakes", [CONFORMANCE, "--backend", "fake_in_process", "--backend", "fake_native",
                                  "--backend", "fake_batched"], [], False),
    ("conformance without memory", [CONFORMANCE, "--backend", "openmp", "--sweep", "memory"], [], False),
    ("conformance with calls that fail", [CONFORMANCE, "--backend", "test_device", "--sweep", "calls", "--most", "8"],
     ["--most", "100000", "--every-way"], False),
]
FULL_SUITES = []
# In the tree without sanitizers alone, with --full the million lists alone: under sanitizers drivers, too, take several
# times as long to compile. What runs behind the stand-in, gated as by default, runs under sanitizers.
IN_PLAIN_FULLY = ["random lists on lavapipe"]
IN_PLAIN = ["conformance on lavapipe", "random lists on lavapipe", "random lists on lavapipe, under the layer",
            "random lists on lavapipe, host-gated", "random lists on lavapipe, gated by guards, unmapped memory",
            "random lists on lavapipe, gated by grids, shuffled"]
# One process runs all cases (--here), since to start Vulkan and the layer takes as long as a case.
SUITES += [("conformance on lavapipe", on_lavapipe(CONFORMANCE, "--here"), [], False),
           ("random lists on lavapipe", on_lavapipe(RANDOM_LISTS, "--random", "10000", layer=False),
            ["--random", "1000000"], False),
           ("random lists on lavapipe, under the layer", on_lavapipe(RANDOM_LISTS, "--random", "250"),
            ["--random", "10000"], False),
           ("random lists on lavapipe, host-gated",
            on_lavapipe(RANDOM_LISTS, "--host-gated", "--random", "500", layer=False), ["--random", "10000"], False),
           ("random lists on lavapipe, gated by guards, unmapped memory",
            on_lavapipe(RANDOM_LISTS, "--random", "500", layer=False, gate="guard", unmapped=True),
            ["--random", "10000"], False)]
FULL_SUITES += [("conformance on lavapipe, unmapped memory", on_lavapipe(CONFORMANCE, unmapped=True), [], False)]
FULL_SUITES += [(f"conformance on lavapipe, gated by {gate}s", on_lavapipe(CONFORMANCE, gate=gate), [], False)
                for gate in ("grid", "guard")]
FULL_SUITES += [("conformance on lavapipe, host-gated", on_lavapipe(CONFORMANCE, "--host-gated"), [], False)]
# Calls that fail leave nothing that the layer notices: the stand-in is above it here.
SUITES.append(("launches on lavapipe, under the layer", on_lavapipe("build/tests/unit/vulkan/launch_test"), [], False))
# Behind the stand-in, which hands on commands in any order that their barriers allow: by a seed for each list.
SUITES += [("random lists on lavapipe, shuffled", on_lavapipe(RANDOM_LISTS, "--random", "200", standin=True),
            ["--random", "10000"], False),
           ("random lists on lavapipe, gated by grids, shuffled",
            on_lavapipe(RANDOM_LISTS, "--random", "500", standin=True, gate="grid"), ["--random", "10000"], False),
           ("conformance on lavapipe, shuffled",
            on_lavapipe(CONFORMANCE, "--here", "plain/*", "loops/*", "sections/*", standin=True), ["*/*"], False)]
VERSIONS = ("11.4", "12.2", "12.3", "12.4", "12.6", "12.8", "13.0")
for version in VERSIONS:
    (SUITES if version in ("11.4", "13.0") else FULL_SUITES).append(
        (f"conformance on simulated CUDA {version}",
         simulated(version, CONFORMANCE, "--expect", "tests/cuda/simulated.expect"), [], False))
    (SUITES if version in ("11.4", "12.4", "13.0") else FULL_SUITES).append(
        (f"random lists on simulated CUDA {version}",
         simulated(version, RANDOM_LISTS, "--random", "120"), ["--random", "5000"], False))
    if tuple(map(int, version.split("."))) >= (12, 4):  # before, the host gates all lists
        (SUITES if version == "13.0" else FULL_SUITES).extend([
            (f"conformance on simulated CUDA {version}, host-gated",
             simulated(version, CONFORMANCE, "--host-gated", "--expect", "tests/cuda/simulated.expect", probes=False),
             [], False),
            (f"random lists on simulated CUDA {version}, host-gated",
             simulated(version, RANDOM_LISTS, "--host-gated", "--random", "120"), ["--random", "5000"], False)])
# Calls of the driver that fail. A sample: of every case on the newest, of a few on the others.
FEW = ["plain/copy_and_fill", "plain/library_call_recorded", "loops/nested_two", "sections/section_with_loop",
       "checkpoint_loops/resume_this", "running/queued_launches_end_cancelled"]
# Calls of Vulkan, too, and gk's allocations beside them.
for what, sweep in (("with calls that fail", "calls"), ("without memory", "memory")):
    SUITES.append((f"conformance on lavapipe {what}",
                   on_lavapipe(CONFORMANCE, "--sweep", sweep, "--most", "3", *FEW, standin=True), [], False))
    FULL_SUITES.append((f"conformance on lavapipe {what}, each",
                        on_lavapipe(CONFORMANCE, "--sweep", sweep, standin=True), [], False))
for version, most, few in (("11.4", "12", FEW), ("12.2", "3", FEW), ("12.3", "3", FEW), ("12.4", "6", FEW),
                           ("13.0", "1", [])):
    SUITES.append((f"conformance on CUDA {version} with calls that fail",
                   simulated(version, CONFORMANCE, "--sweep", "calls", "--most", most, *few, probes=bool(few)), [],
                   False))
# All of them: on the oldest and the newest in every way, else in one by turns. A chapter at a time, as it takes hours.
CHAPTERS = sorted(set(re.findall(r"^CASE\((\w+),", (ROOT / "tests/conformance/cases.def").read_text(), re.M)))
for version in VERSIONS:
    FULL_SUITES += [(f"conformance on CUDA {version} with each call failing, {chapter}",
                     simulated(version, CONFORMANCE, "--sweep", "calls", f"{chapter}/*",
                               *(["--every-way"] if version in (VERSIONS[0], VERSIONS[-1]) else [])), [], False)
                    for chapter in CHAPTERS]
SUITES += [("conformance on CUDA without memory",
            simulated("13.0", CONFORMANCE, "--sweep", "memory", "--most", "1", probes=False), ["--most", "1000"],
            False)]
FULL_SUITES += [("conformance on CUDA without memory for the probe",
                 simulated("13.0", CONFORMANCE, "--sweep", "memory", "--most", "1000", *FEW), [], False)]
# Each "no" of the probe gates some lists otherwise, or has the host do it: the results stay. The last four gk doesn't
# ask; the simulated driver can do so nevertheless.
NOS = re.findall(r'^  X\(\w+, "(\w+)"', (ROOT / "cuda/caps.h").read_text(), re.M) + \
    ["P2o", "P13", "overlap", "conditional"]
PLAIN_NOS = "P1b2,P1c,P1d,P1e,P1k,P2o1,P2o2,P2o3,P2d,P2b,P4a,P6,P7"  # with all of them lists stay native
SAMPLE = (("13.0", "P4e"), ("13.0", "P1k"), ("13.0", "P2o0"), ("12.4", PLAIN_NOS))
for version, no in [(version, no) for version in ("12.4", "13.0") for no in [*NOS, PLAIN_NOS, f"{PLAIN_NOS},P4e,P9a"]]:
    (SUITES if (version, no) in SAMPLE else FULL_SUITES).append(
        (f"random lists on simulated CUDA {version}, {no} answered with no",
         simulated(version, RANDOM_LISTS, "--random", "100", no=no), ["--random", "2000"], False))
    FULL_SUITES.append((f"conformance on simulated CUDA {version}, {no} answered with no",
                        simulated(version, CONFORMANCE, "--expect", "tests/cuda/simulated.expect", no=no), [], False))
FULL_SUITES.append(("conformance on CUDA with plain gates and calls that fail",
                    simulated("13.0", CONFORMANCE, "--sweep", "calls", no=PLAIN_NOS), ["--most", "1000"], False))
# HIP: the newest as a whole, samples of the others, by plain launches or by graphs. Waves have 64 threads on gfx90a, 32
# on gfx1100.
HIP_VERSIONS = ("5.2", "6.4", "7.2")
for version, lists in zip(HIP_VERSIONS, ("50", "50", "60")):
    for graphs, way in ((False, ""), (True, ", graphs")):
        if graphs and version == "5.2":
            continue  # it refuses graphs of kernels of modules
        SUITES.append((f"random lists on simulated HIP {version}{way}",
                       simulated_hip(version, RANDOM_LISTS, "--random", lists, graphs=graphs), ["--random", "5000"],
                       False))
        (SUITES if version == "7.2" else FULL_SUITES).append(
            (f"conformance on simulated HIP {version}{way}", simulated_hip(version, CONFORMANCE, graphs=graphs), [],
             False))
        FULL_SUITES += [(f"conformance on simulated HIP {version}{way}, each call failing, {chapter}",
                         simulated_hip(version, CONFORMANCE, "--sweep", "calls", f"{chapter}/*", graphs=graphs), [],
                         False) for chapter in CHAPTERS]
    SUITES.append((f"conformance on simulated HIP {version} with calls that fail",
                   simulated_hip(version, CONFORMANCE, "--sweep", "calls", "--most", "3", *FEW,
                                 graphs=version != "6.4"), [], False))
    FULL_SUITES.append((f"conformance on simulated HIP {version}, host-gated",
                        simulated_hip(version, CONFORMANCE, "--host-gated", graphs=False), [], False))
SUITES += [("random lists on simulated HIP 7.2, host-gated",
            simulated_hip("7.2", RANDOM_LISTS, "--host-gated", "--random", "60", graphs=True), ["--random", "5000"],
            False),
           ("random lists on simulated HIP 7.2, waves of 32",
            simulated_hip("7.2", RANDOM_LISTS, "--random", "30", arch="gfx1100", graphs=False),
            ["--random", "2000"], False),
           ("conformance on simulated HIP without memory",
            simulated_hip("7.2", CONFORMANCE, "--sweep", "memory", "--most", "3", *FEW, graphs=True),
            ["--most", "1000"], False)]
HIP_FAULTS = re.findall(r'has_fault\("([\w-]+)"\)', (ROOT / "tests/simgpu/hip.c").read_text())
HIP_FAULTS.remove("graph-pointers")  # no device survives it: hip/trial_test
for fault in HIP_FAULTS:
    SUITES += [(f"random lists on simulated HIP 7.2, {fault}",
                simulated_hip("7.2", RANDOM_LISTS, "--random", "20", fault=fault, graphs=True),
                ["--random", "2000"], False),
               (f"conformance on simulated HIP 7.2, {fault}, sections",
                simulated_hip("7.2", CONFORMANCE, "sections/*", fault=fault, graphs=True), [], False)]
    FULL_SUITES += [(f"conformance on simulated HIP {version}, {fault}",
                     simulated_hip(version, CONFORMANCE, fault=fault, graphs=True), [], False)
                    for version in HIP_VERSIONS]
# On the simulated driver, where the compiler of gk itself matters least: in the first tree alone, but for the newest.
ONCE = [name for name, *_ in SUITES if "on simulated CUDA" in name and name != "conformance on simulated CUDA 13.0"]
# Under sanitizers: the newest HIP's lists, and all that has calls or allocations fail.
IN_PLAIN += [name for name, command, *_ in SUITES
             if "on simulated HIP" in name and "--sweep" not in command and
             name not in ("random lists on simulated HIP 7.2", "random lists on simulated HIP 7.2, graphs")]
ONCE += [name for name, *_ in SUITES if "on simulated HIP" in name and name not in IN_PLAIN]
ONCE += [name for name, *_ in SUITES if "on lavapipe" in name and name not in IN_PLAIN]
ONCE += [f"unit/vulkan/{path.stem}" for path in (ROOT / "tests/unit/vulkan").glob("*_test.c")]
ONCE.append("unit/cuda/half_way_test")  # a sweep over calls that fail
FULL_SCRIPTS = [("tidy", ["tests/repo/tidy.py"], False), ("analyzer", ["tests/repo/analyzer.py"], False),
                ("coverage", ["tests/repo/coverage.py"], False),
                ("newer lavapipe", ["tests/vulkan/mesa.py"], False),
                ("whole softbody on lavapipe", ["tests/softbody_devices.py", "whole"], PLAIN),
                ("softbody on lavapipe by each gate", ["tests/softbody_devices.py"] + [
                    f"lavapipe:{way}" for way in ("grid", "guard", "host")], PLAIN),
                ("softbody on each simulated HIP", ["tests/softbody_devices.py"] + [
                    f"hip{version}:{way}" for version in HIP_VERSIONS for way in ("stream", "graphs", "host")], PLAIN),
                ("all mutations", ["tests/mutations.py", "--all"], False)]

# Tests of the CUDA backend, or with cases on it: skipped in a tree that is configured --without-cuda.
OF_CUDA = re.compile(r"cuda|CUDA|simgpu|gpu script|unit/(base/secure|runtime/(facts|fork|thread_cancel)|check/check|"
                     r"plan/(plan|gates))_test|(^|: )(exports|installed|examples|gk-info|no device|printed|probe|"
                     r"kernels compiled beforehand|bench|peers|valgrind)$")
# By the backend that a tree may be configured without: its tests.
LEFT_OUT = {"cuda": OF_CUDA, "hip": re.compile("simulated HIP|unit/hip"),
            "vulkan": re.compile("lavapipe|unit/vulkan")}

# What runs in a tree for ThreadSanitizer: the tests in which several threads are at work.
THREADED = [f"build/tests/unit/{name}_test"
            for name in ("base/error", "runtime/worker", "runtime/worker_clock", "runtime/device", "runtime/launch",
                         "runtime/graph", "runtime/run", "runtime/threads", "openmp/few_threads",
                         "openmp/backend", "openmp/team", "openmp/cores", "openmp/costs", "openmp/calls",
                         "openmp/chunks", "openmp/sections", "openmp/split", "cuda/launch", "cuda/pool", "base/trace")]
THREADED += [f"build/tests/simgpu/{name}_test" for name in ("stream", "capture", "memory", "condition", "fail")]
THREADED += ["build/tests/conformance/random_lists"]
