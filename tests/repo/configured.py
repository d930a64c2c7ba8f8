#!/usr/bin/env python3
"""A build/config.ninja of an older configure.py, which lacks settings that build.ninja has come to use: ninja has it
written anew with the arguments that it names, whichever the settings are. An option that doesn't fit its command is
refused."""
import sys
import os
import re
import subprocess
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
import tap  # noqa: E402

# Of a library that was built without xxHash and NVTX.
TRY = """#include "kernel/cache.h"
#include "base/trace.h"
#include <string.h>
int main(void) {
  char folder[64], why[256];
  const char *heard;
  void *bytes;
  size_t size;
  const gki_cache_key key = gki_cache_key_of(NULL, 0);
  gki_cache_keep(&key, "x", 1);
  gki_cache_describe(folder, sizeof folder, why, sizeof why);
  if (folder[0] || !strstr(why, "libxxhash-dev") || gki_cache_find(&key, &bytes, &size)) return 1;
  return gki_trace_describe(&heard) || !strstr(heard, "without NVTX");
}
"""
CHECK = """#include "gk.h"
#include <string.h>
int main(void) {
  const char *const said = "the backend \\"hip\\" is not in this build; take one of \\"openmp\\"";
  return gk_check(NULL, "hip", NULL, NULL) != GK_ERROR_INVALID || !strstr(gk_error(), said);
}
"""
BARE = {"cache": "common/kernel/cache_none.c", "nvtx": "", "nvtx_headers": ""}
KEPT = ["python", "arguments"]  # what ninja runs configure.py by


def settings(config):
    return dict(re.findall(r"^(\w+) = (.*)$", config, re.M))


def ask_ninja(folder, config):
    """What is wrong, or None; config.ninja is as old as can be."""
    path = folder / "build/config.ninja"
    path.write_text(config)
    os.utime(path, (1, 1))
    return tap.run("ninja", "build.ninja", cwd=folder)


def ask(folder, *command):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def check_refusals(folder):
    """Wrong uses of --backend, which are found before anything is installed or built."""
    for words, said in ((["demo", "--backend", "abacus"], "invalid choice: 'abacus'"),
                        (["demo", "--backend", "vulkan", "--without-vulkan"], "--without-vulkan leaves out"),
                        (["test", "--backend=vulkan"], "--backend goes with the command demo"),
                        (["--backend", "vulkan"], "--backend with demo")):
        done = subprocess.run(["./configure.py", *words], cwd=folder, capture_output=True, text=True)
        tap.case(f"refused: {' '.join(words)}",
                 None if done.returncode and said in done.stderr and not done.stdout else done.stdout + done.stderr)


def check_without(folder):
    tap.case("without CUDA, HIP and Vulkan: it builds",
             tap.run("./configure.py", "--without-cuda", "--without-hip", "--without-vulkan", "--without-png",
                     "--debug", cwd=folder) or
             tap.run("ninja", cwd=folder))
    found = re.findall(r"\b(?:gki?_cuda|gki?_hip|gki_vulkan)\w*", ask(folder, "nm", "build/libgk.a"))
    tap.case("nothing of it is in the library", ", ".join(found))
    (folder / "check.c").write_text(CHECK)
    tap.case("gk_check says that a backend isn't built",
             tap.run("cc", "-Iinclude", "check.c", "build/libgk.a", "-fopenmp", "-pthread", "-ldl", "-lm", "-o",
                     "check", cwd=folder) or tap.run("./check", cwd=folder))
    found = re.findall(r"gk_(?:cuda|hip)\.h", ask(folder, "ninja", "-t", "commands", "install"))
    tap.case("nothing of it is installed", ", ".join(found))
    said = ask(folder, "build/gk-embed", "--name", "images", "kernels.h")
    tap.case("gk-embed says that it can compile for none",
             None if "this gk can compile kernels for none of its backends" in said else said)
    report = ask(folder, "build/gk-info")
    says = r"gk was built without this backend; \./configure\.py says what it needs"
    said = [re.search(rf"^ +{name} +- +{says}$", report, re.M) for name in ("cuda", "hip", "vulkan")]
    tap.case("gk-info says so", None if all(said) and "\n  openmp 0 " in report else report)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in tap.ROOT.iterdir():
            if entry.name not in ("build", ".git"):
                (folder / entry.name).symlink_to(entry)
        (folder / "build").mkdir()
        configured = tap.run("./configure.py", "--without-png", "--prefix=/nowhere", cwd=folder)
        if not tap.case("configure", configured):
            tap.finish()
        whole = (folder / "build/config.ninja").read_text()
        rows = whole.splitlines(keepends=True)
        old = "".join(row for row in rows if row.split(" = ")[0] in KEPT)
        problem = ask_ninja(folder, old)
        found = settings((folder / "build/config.ninja").read_text())
        tap.case("what an older one lacks is added, as it was asked for", problem or
                 (None if found == settings(whole) else f"wanted {settings(whole)}, found {found}"))
        check_refusals(folder)
        asked = tap.run("./configure.py", "--ready-gates", cwd=folder)
        image = settings((folder / "build/config.ninja").read_text())["gates_fatbin"]
        tap.case("kernels as they are checked in", asked or (None if image == "cuda/image/gates.fatbin" else image))
        bare = tap.run("./configure.py", "--without-xxhash", "--without-nvtx", "--ready-gates", "--debug", cwd=folder)
        chosen = settings((folder / "build/config.ninja").read_text())
        wrong = [f"{name}: {chosen[name]}" for name, wanted in BARE.items() if chosen[name] != wanted]
        tap.case("without xxHash and NVTX", bare or "\n".join(wrong))
        tap.case("which builds", tap.run("ninja", "build/libgk.so", cwd=folder))
        (folder / "try.c").write_text(TRY)
        tap.case("and says that no image is kept, and no tool listens",
                 tap.run("cc", "-Iinclude", "-Icommon", "try.c", "build/libgk.a", "-fopenmp", "-pthread", "-ldl", "-lm",
                         "-o", "try", cwd=folder) or tap.run("./try", cwd=folder))
        check_without(folder)
    tap.finish()


main()
