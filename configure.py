#!/usr/bin/env python3
"""Finds what gk is built with and writes build/config.ninja, which build.ninja includes.

  ./configure.py [options]         look around; then `ninja`, `ninja install`
  ./configure.py demo [options]    from nothing: install what is missing, build, drop the soft body
  ./configure.py test [--full]     the same for every test; the last line counts them
  ./configure.py docs              the same for the site, build/site/html, and the manual pages, build/site/man
  ./configure.py coverage          the same for what the tests run of the library, line by line
  ./configure.py bench             the same for the benchmarks

Where apt-get and root (or sudo without a password) are at hand, the last five install missing packages; elsewhere
they name them and stop.
"""
import sys

if sys.version_info < (3, 9):
    sys.exit("configure.py needs Python 3.9 or newer; this is " + sys.version.split()[0])

import argparse
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

ROOT = Path(os.path.abspath(__file__)).parent  # not resolved: build/clang consists of links to this tree
sys.path.insert(0, str(ROOT / "common/package"))
from detect import (COMPILERS, Missing, find_cmocka, find_compiler, find_cplusplus, find_cuda,  # noqa: E402
                    find_doxygen, find_hip, find_launcher, find_linker, find_nvtx, find_openmp, find_png, find_vulkan,
                    find_xxhash, inspect, output, try_compile, without_cuda)

CONFIG = ROOT / "build/config.ninja"
TRIED = {"gcc": 12, "clang": 14}  # newer compilers have new warnings, which aren't errors in the tests


# ---- build/config.ninja ---------------------------------------------------------------------------------------------

def sanitizers(names):
    """Flags for --sanitize. With none, the tests use the library as it is shipped, so both kinds of code are tested."""
    if names in ("", "none"):
        return ""
    known = {"address", "undefined", "thread", "leak", "fuzzer"}
    unknown = set(names.split(",")) - known
    if unknown:
        raise Missing(f"--sanitize={names}: {', '.join(sorted(unknown))} isn't one of {', '.join(sorted(known))}, none")
    names = names.replace("fuzzer", "fuzzer-no-link")  # the rule `fuzz` adds the part with main()
    return f" -fsanitize={names} -fno-sanitize-recover=all -fno-omit-frame-pointer"


def kernel_flags(options, compiler):
    """Flags for kernels on the simulated GPU: each load and store calls a function, so the driver sees each access.

    Threads change stacks there, and only the library itself reports that to ThreadSanitizer."""
    parameters = ("asan-instrumentation-with-call-threshold", "asan-stack", "asan-globals")
    lead = "-mllvm -" if compiler.kind == "clang" else "--param "
    chosen = [] if options.coverage else options.sanitize.split(",")
    names = "kernel-address" + (",undefined" if "undefined" in chosen else "")
    return (f"-O1 -g1 -fsanitize={names} -fno-sanitize-recover=all -fsanitize-recover=kernel-address "
            "-fno-omit-frame-pointer " + " ".join(f"{lead}{name}=0" for name in parameters)
            + ("" if "address" in chosen else " -DSIM_WITHOUT_ASAN"))


def look_around(options):
    """The compiler, and all that was found or the reason why not."""
    compiler = find_compiler(options.cc)
    cuda = find_cuda(options.cuda, options.ready_gates)
    cuda = without_cuda(cuda) if options.without_cuda else cuda
    return compiler, [find_openmp(compiler), find_png(compiler, not options.without_png),
                      find_xxhash(compiler, not options.without_xxhash),
                      find_nvtx(compiler, options.cuda, not options.without_nvtx), find_cmocka(compiler),
                      find_cplusplus(compiler), cuda, find_vulkan(compiler, not options.without_vulkan),
                      find_hip(not options.without_hip), find_doxygen()]


def settings(options, compiler, found):
    symbols = "-g -gdwarf-4" if compiler.kind == "clang" else "-g"  # Debian 12's valgrind can't read all of DWARF 5
    debug = f"-O0 {symbols} -DGK_DEBUG"  # GK_DEBUG: refuses calls after destroy and close
    optimise = debug if options.debug else f"-O2 {symbols}"
    checked = "" if options.coverage else sanitizers(options.sanitize)
    lines = "-g1 -DGK_DEBUG"  # sanitizers print file and line, not variables
    apart = bool(checked or options.coverage)  # the tests need a separate library
    values = {
        "python": sys.executable or "python3",
        "arguments": shlex.join(recordable(options)),
        "cc": compiler.command,
        "launcher": find_launcher(),
        "ar": "ar",
        "optimise": optimise,
        "checked": f"-O0 {lines} --coverage -fprofile-update=atomic" if options.coverage else
                   f"-O1 {lines}{checked}" if checked else optimise,
        "checked_tree": "build/checked" if apart else "build",
        "checked_library": "tests/checked_library.ninja" if apart else os.devnull,
        # A test program isn't optimised: compiling it takes longer than running it.
        "tested": f"-O0 {lines}{checked}" if apart else optimise.replace("-O2", "-O0"),
        "linked": " ".join([*find_linker(compiler), *(["--coverage"] if options.coverage else [])]),
        "werror": "-Werror" if options.werror else "",
        "kernels": kernel_flags(options, compiler),
        "prefix": os.path.abspath(options.prefix),
    }
    for one in found:
        values.update(one.settings)
    return values


def write_config(options):
    compiler, found = look_around(options)
    lines = ["# Written by configure.py; what is changed here is lost when it runs again.",
             f"# {compiler.kind} {compiler.version} for {compiler.machine}"]
    lines += [f"# {one.what}: {one.detail}" for one in found]
    lines += [f"{name} = {value.replace('$', '$$')}" for name, value in settings(options, compiler, found).items()]
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text("\n".join(lines) + "\n")
    return compiler, found


def version():
    return re.search(r"^version = (\S+)$", (ROOT / "build.ninja").read_text(), re.M)[1]


def print_summary(options, compiler, found):
    print(f"gk {version()} for {compiler.machine}")
    tools = {one.what: one.detail == "yes" for one in found if one.what in ("cmocka", "C++")}
    tools.update((name, shutil.which(name)) for name in ("dot", "cmake", "pkg-config"))
    absent = [name for name in tools if not tools[name]]
    rows = [("compiler", f"{compiler.kind} {compiler.version} ({compiler.command})")]
    rows += [(one.what, one.detail) for one in found if one.what not in tools]
    rows += [("for tests", "all there" if not absent else "without " + ", ".join(absent)), ("prefix", options.prefix)]
    for name, detail in rows:
        print(f"  {name:<10} {detail}")
    print("Now: ninja" if shutil.which("ninja") else "Now: apt-get install ninja-build, then ninja")


# ---- demo, test, coverage, bench: from nothing ----------------------------------------------------------------------

def probe(find, *arguments):
    """Whether a find_ function succeeds."""
    try:
        return not find(find_compiler(None), *arguments).detail.startswith("no:")
    except Missing:
        return False


def has_compiler(kind=None):
    for command in COMPILERS:
        try:
            if kind in (None, inspect(command).kind):
                return command
        except Missing:
            pass
    return None


def has_libc():
    command = has_compiler()
    program = "#include <stdio.h>\nint main(void) { puts(\"\"); }\n"
    return bool(command) and try_compile(inspect(command), program) is not None


def has_libomp():
    command = has_compiler("clang")
    try:
        return bool(command) and bool(find_openmp(inspect(command)))
    except Missing:
        return False


def has_clang_sanitizers():
    command = has_compiler("clang")
    program = "int main(void) { return 0; }\n"
    return bool(command) and try_compile(inspect(command), program, "-fsanitize=address,undefined") is not None


def has_vulkan(what="icd.d/*.json"):
    return any(path for folder in ("/usr/share", "/etc") for path in Path(folder, "vulkan").glob(what))


def has_vulkan_headers():
    command = has_compiler()
    return bool(command) and try_compile(
        inspect(command), "#include <vulkan/vulkan.h>\nint main(void) { return 0; }\n", "-lvulkan") is not None


# Debian's package, the commands that need it, and whether it is installed. Without a package of "more", some tests are
# skipped and give the reason.
PACKAGES = [
    ("gcc", "demo test bench docs", lambda: has_compiler()),
    ("gcc-12", "demo test bench docs", lambda: has_compiler() or not shutil.which("gcc")),
    ("libc6-dev", "demo test bench docs", has_libc),
    ("ninja-build", "demo test bench docs", lambda: shutil.which("ninja")),
    ("libpng-dev", "demo test bench", lambda: probe(find_png, True)),
    ("libxxhash-dev", "demo test bench", lambda: probe(find_xxhash, True)),
    ("libcmocka-dev", "test", lambda: probe(find_cmocka)),
    ("gcovr", "more coverage", lambda: shutil.which("gcovr")),
    ("g++", "test", lambda: probe(find_cplusplus)),
    ("g++", "more", lambda: shutil.which("g++") or not probe(find_cplusplus)),
    ("clang", "more", lambda: has_compiler("clang")),
    ("libomp-dev", "more", has_libomp),
    ("libclang-rt-dev", "more", has_clang_sanitizers),
    ("lld", "more", lambda: shutil.which("ld.lld")),
    ("cmake", "more", lambda: shutil.which("cmake")),
    ("pkg-config", "more", lambda: shutil.which("pkg-config")),
    ("doxygen", "more docs", lambda: shutil.which("doxygen")),
    ("graphviz", "more", lambda: shutil.which("dot")),
    ("valgrind", "more", lambda: shutil.which("valgrind")),
    ("glslang-tools", "more demo-vulkan", lambda: shutil.which("glslangValidator")),
    ("glslc", "more", lambda: shutil.which("glslc")),
    ("spirv-tools", "more", lambda: shutil.which("spirv-val")),
    ("libvulkan-dev", "more demo-vulkan", has_vulkan_headers),
    ("mesa-vulkan-drivers", "more", lambda: has_vulkan("icd.d/lvp_icd.*")),
    ("mesa-vulkan-drivers", "demo-vulkan peers", has_vulkan),
    ("vulkan-validationlayers", "more", lambda: has_vulkan("explicit_layer.d/VkLayer_khronos_validation.json")),
    ("hipcc", "more", lambda: shutil.which("hipcc") or shutil.which("/opt/rocm/bin/hipcc")),
    ("libamdhip64-dev", "more", lambda: Path("/usr/include/hip/hip_runtime.h").exists()),
    ("rocm-device-libs", "more", lambda: Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode/ocml.bc").exists()),
    ("clang-19", "more", lambda: shutil.which("clang++-19")),
    ("lld-19", "more", lambda: shutil.which("ld.lld-19")),
    ("clang-tools-19", "more", lambda: shutil.which("clang-offload-bundler-19")),
    ("qemu-user", "more", lambda: shutil.which("qemu-aarch64")),
    ("gcc-aarch64-linux-gnu", "more", lambda: shutil.which("aarch64-linux-gnu-gcc")),
    ("libc6-dev-arm64-cross", "more", lambda: Path("/usr/aarch64-linux-gnu/include/stdio.h").exists()),
    ("openmpi-bin", "more", lambda: shutil.which("mpirun")),
    ("libopenmpi-dev", "more", lambda: shutil.which("mpicc")),
    ("libstarpu-dev", "more", lambda: any(Path("/usr/include/starpu").glob("1.3/starpu.h"))),
    ("python3-venv", "peers", lambda: output(sys.executable, "-c", "import ensurepip") is not None),
    ("python3-matplotlib", "plots more", lambda: output("/usr/bin/python3", "-c", "import matplotlib") is not None or
     output(sys.executable, "-c", "import matplotlib") is not None),
    ("clang-tidy", "full", lambda: shutil.which("clang-tidy")),
]


def missing_packages(purposes):
    return [package for package, users, is_there in PACKAGES if set(users.split()) & set(purposes) and not is_there()]


def apt_get():
    """The command for installing packages, as a list; None if none works without a password."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    if shutil.which("sudo") and output("sudo", "-n", "true") is not None:
        return ["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    return None


def install(packages):
    """Installs packages. The second try is for a machine without a list of packages (`apt-get update`), the third for a
    release that lacks some of them."""
    apt = apt_get()
    command = [*apt, "install", "-y", "-qq", "--no-install-recommends"]
    print("installing " + " ".join(packages), flush=True)
    if output(*command, *packages) is not None:
        return
    output(*apt, "update", "-qq")
    if output(*command, *packages) is not None:
        return
    for package in packages:
        done = subprocess.run([*command, package], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            print(f"{package}: " + "\n".join(done.stdout.splitlines()[-3:]), flush=True)


def ensure(*purposes):
    """Installs all packages for these purposes. Those of "more", "full", "plots" and "peers" may stay missing."""
    must = [purpose for purpose in purposes if purpose not in ("more", "full", "plots", "peers")]
    for needed in (must, purposes):
        for _ in range(2):  # only an installed compiler can turn out to be too old
            packages = missing_packages(needed)
            if packages and apt_get():
                install(packages)
    lacking = missing_packages(purposes)
    if missing_packages(must):
        raise Missing("missing, and there is no way to install them from here: " + " ".join(lacking) +
                      "\nAsk an administrator for: apt-get install " + " ".join(lacking) +
                      "  (names as in Debian; other systems have the same under similar names)")
    if lacking:
        print("going on without " + " ".join(lacking) + ": what needs them is left out", flush=True)


def run(*command):
    print("$ " + shlex.join(command), flush=True)
    return subprocess.run(command, cwd=ROOT).returncode


def demo(options):
    """On OpenMP, whose sums have the same bits each time, it also falls again without a yield, for comparison. Other
    backends put their picture beside OpenMP's, in a folder with their name."""
    backend = options.backend or "openmp"
    if options.without_png:
        raise Missing("demo: --without-png leaves out what it would show")
    if getattr(options, f"without_{backend}", False):
        raise Missing(f"demo: --without-{backend} leaves out what --backend asks for")
    ensure("demo", *(["demo-vulkan"] if backend == "vulkan" else []))
    write_config(options)
    if run("ninja", "build/softbody"):
        return 1
    own = ["--verify", "--out", "build/demo"] if backend == "openmp" else ["--out", f"build/demo/{backend}"]
    # Programs read its last line, so nothing is printed after it.
    return run("build/softbody", "docs/examples/softbody/spot.obj", "--backend", backend, *own)


def tree_of_its_own(name, compiler, arguments, werror=True):
    """The same sources with another configuration: a folder of links, in which build.ninja works unchanged."""
    tree = ROOT / "build" / name
    tree.mkdir(parents=True, exist_ok=True)
    for entry in ROOT.iterdir():
        link = tree / entry.name
        if entry.name not in ("build", ".git") and not link.is_symlink():
            link.symlink_to(os.path.relpath(entry, tree))
    # Without optimisation gcc knows less about values and warns of cases that can't occur.
    strict = ["--werror"] if werror and int(compiler.version.split(".")[0]) <= TRIED[compiler.kind] and \
        "--coverage" not in arguments else []
    done = subprocess.run([sys.executable, "configure.py", *arguments, "--cc", compiler.command, *strict], cwd=tree,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Missing(done.stdout.strip().removeprefix("configure.py: "))
    return f"build/{name}"


def clang_tree(name, sanitizers):
    """A tree for clang's fuzzer or ThreadSanitizer. gcc's OpenMP runtime reports nothing to ThreadSanitizer, which then
    sees races where there are none."""
    clang = inspect(has_compiler("clang") or "clang")
    start = "LLVMFuzzerTestOneInput" if "fuzzer" in sanitizers else "main"
    if try_compile(clang, f"int {start}(void) {{ return 0; }}\n", f"-fsanitize={sanitizers}") is None:
        raise Missing(f"{clang.command} can't link -fsanitize={sanitizers} (apt-get install libclang-rt-dev)")
    return tree_of_its_own(name, clang, [f"--sanitize={sanitizers}", "--ready-gates"])


def fuzz_tree():
    return clang_tree("fuzz", "fuzzer,address,undefined")


def test(options):
    """Everything with sanitizers and one compiler, once more as shipped with the other compiler, threads with clang's
    ThreadSanitizer, and clang's fuzzer. Each is a separate tree, so the configuration for `ninja` doesn't change. Only
    one tree compiles gk's kernels with nvcc, which takes long."""
    ensure("test", "more", *(["full"] if options.full else []))
    first = find_compiler(options.cc)
    command = [sys.executable, "tests/run.py", "--tree", tree_of_its_own(first.kind, first, recordable(options))]
    other = "clang" if first.kind == "gcc" else "gcc"
    try:
        second = inspect(has_compiler(other) or other)
        command += ["--tree", tree_of_its_own(second.kind, second, ["--sanitize=none", "--ready-gates"])]
    except Missing as problem:
        command += ["--skip", f"everything once more with {other}: {problem}"]
    for what, make in (("threads with ThreadSanitizer", lambda: clang_tree("tsan", "thread")), ("fuzzing", fuzz_tree)):
        try:
            command += ["--tree", make()]
        except Missing as problem:
            command += ["--skip", f"{what}: {problem}"]
    return subprocess.run(command + (["--full"] if options.full else []), cwd=ROOT).returncode


def docs(options):
    ensure("docs")
    write_config(options)
    code = run("ninja", "build/site/html/index.html")
    if not code:
        print(f"site: {ROOT}/build/site/html/index.html\nmanual pages: man -M {ROOT}/build/site/man gk_launch")
    return code


def coverage(options):
    ensure("test", "coverage")
    code = subprocess.run([sys.executable, "tests/repo/coverage.py"], cwd=ROOT).returncode
    print(f"report: {ROOT}/build/coverage/report/index.html", flush=True)
    return code


def bench(options):
    if options.without_cuda:
        raise Missing("bench: --without-cuda leaves out what its programs use")
    ensure("bench", "plots", "peers")
    write_config(options)
    single = (output("ninja", "-t", "targets", "rule", "single") or "").split()
    programs = sorted(name for name in single if name.startswith("build/bench/"))
    if run("ninja", *programs):
        return 1
    return run(sys.executable, "bench/tools/run.py", *(["--quick"] if options.quick else [])) if programs else 1


# ---- the command line -----------------------------------------------------------------------------------------------

def parser():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("command", nargs="?", choices=["demo", "test", "docs", "coverage", "bench"])
    usage.add_argument("--cc", default=os.environ.get("CC"),
                       help="the C compiler; else $CC, else the first that will do")
    usage.add_argument("--cuda", metavar="PATH", help="the CUDA toolkit's folder")
    usage.add_argument("--prefix", default="/usr/local", help="where `ninja install` puts things (/usr/local)")
    usage.add_argument("--sanitize", default="address,undefined", metavar="LIST",
                       help="for tests and the library under them: address,undefined (the default), thread ... or none")
    usage.add_argument("--ready-gates", action="store_true",
                       help="gk's own CUDA kernels as they are checked in, even where nvcc is")
    usage.add_argument("--debug", action="store_true", help="no optimisation")
    usage.add_argument("--without-cuda", action="store_true", help="no CUDA backend")
    usage.add_argument("--without-hip", action="store_true", help="no HIP backend")
    usage.add_argument("--without-vulkan", action="store_true", help="no Vulkan backend")
    usage.add_argument("--without-png", action="store_true", help="no soft body, which draws its fall with libpng")
    usage.add_argument("--without-xxhash", action="store_true", help="no cache on disk for what is compiled")
    usage.add_argument("--without-nvtx", action="store_true", help="no ranges for profilers such as Nsight Systems")
    usage.add_argument("--werror", action="store_true", help="warnings are errors")
    usage.add_argument("--coverage", action="store_true",
                       help="tests, and the library under them, count what runs; in place of sanitizers")
    usage.add_argument("--backend", choices=["cuda", "hip", "vulkan", "openmp"],
                       help="with demo: where the soft body falls (openmp)")
    usage.add_argument("--quick", action="store_true", help="with bench: does all of it run, and is it right?")
    usage.add_argument("--full", action="store_true", help="with test: also what takes long")
    return usage


def recordable(options):
    """The options as arguments again, for ninja to run this file when it has changed."""
    given = [f"--{name}={value}" for name, value in
             (("cc", options.cc), ("cuda", options.cuda), ("prefix", options.prefix), ("sanitize", options.sanitize))
             if value and value != parser().get_default(name)]
    if options.cc and not any(one.startswith("--cc") for one in given):
        given.append(f"--cc={options.cc}")  # from $CC, which may not be set next time
    flags = ("debug", "without_cuda", "without_hip", "without_vulkan", "without_png", "without_xxhash", "without_nvtx",
             "coverage", "werror", "ready_gates")
    given += [f"--{name.replace('_', '-')}" for name in flags if getattr(options, name)]
    return given


def recorded():
    """The arguments of the last configuration in this folder."""
    try:
        found = re.search(r"^arguments = (.*)$", CONFIG.read_text(), re.M)
    except OSError:
        return []
    return shlex.split(found[1].replace("$$", "$")) if found else []


def main(arguments):
    if not sys.platform.startswith("linux"):
        raise Missing("gk runs on Linux, on x86-64 and aarch64; this is " + sys.platform)
    os.chdir(ROOT)
    options = parser().parse_args(arguments)
    if options.command:
        if options.backend and options.command != "demo":
            raise Missing("--backend goes with the command demo")
        asked = (options.command, "--full", "--quick", "--backend", options.backend, f"--backend={options.backend}")
        if all(argument in asked for argument in arguments):  # nothing about the configuration
            options = parser().parse_args(arguments + recorded())
        commands = {"demo": demo, "test": test, "docs": docs, "coverage": coverage, "bench": bench}
        return commands[options.command](options)
    if options.full or options.quick or options.backend:
        raise Missing("--full goes with the command test, --quick with bench, --backend with demo")
    print_summary(options, *write_config(options))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Missing as problem:
        sys.exit(f"configure.py: {problem}")
