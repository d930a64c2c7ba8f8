#!/usr/bin/env python3
"""The conformance suite, random lists and the soft body on the lavapipe of Debian's backports, a newer Mesa than the
one of Debian 12. It is unpacked in build/mesa, not installed. Skipped where its packages can't be had: without apt or
a network."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import run  # noqa: E402
import suites  # noqa: E402
import tap  # noqa: E402

FOLDER = tap.ROOT / "build/mesa"
SUITE = "bookworm-backports"
SIGNED = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
SOURCES = "".join(f"deb {SIGNED} http://deb.debian.org/debian {suite} main\n" for suite in ("bookworm", SUITE))
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")


def fetch():
    """What is wrong, or None. apt gets lists and a state of its own, so that the machine's stay as they are."""
    for name in ("lists/partial", "cache/archives/partial", "files"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    (FOLDER / "sources.list").write_text(SOURCES)
    (FOLDER / "status").write_text("")
    options = [f"-oDir::Etc::sourcelist={FOLDER}/sources.list", "-oDir::Etc::sourceparts=-",
               f"-oDir::State::lists={FOLDER}/lists", f"-oDir::State::status={FOLDER}/status",
               f"-oDir::Cache={FOLDER}/cache", "-oAPT::Sandbox::User=root"]
    problem = tap.run("apt-get", *options, "-qq", "update", cwd=FOLDER)
    if problem:
        return problem
    shown = subprocess.run(["apt-cache", *options, "show", f"mesa-vulkan-drivers/{SUITE}"], capture_output=True,
                           text=True, check=False).stdout
    needed = "".join(line for line in shown.splitlines() if line.startswith("Depends: "))
    names = re.findall(r"\b(?:libllvm|libdrm)[\w.+-]*", needed, re.I)
    problem = tap.run("apt-get", *options, "-qq", "download", f"mesa-vulkan-drivers/{SUITE}",
                      *names, "-t", SUITE, cwd=FOLDER)
    for package in sorted(FOLDER.glob("*.deb")):
        problem = problem or tap.run("dpkg", "-x", str(package), str(FOLDER / "files"), cwd=FOLDER)
    return problem


def main():
    drivers = [path for folder in LIBRARIES for path in (FOLDER / "files" / folder).glob("libvulkan_lvp.so")]
    problem = None if drivers else fetch()
    drivers = [path for folder in LIBRARIES for path in (FOLDER / "files" / folder).glob("libvulkan_lvp.so")]
    if not drivers:
        tap.skip("Mesa of backports", (problem or "no lavapipe in its package").splitlines()[-1])
        tap.finish()
    manifest = FOLDER / "lavapipe.json"
    manifest.write_text(json.dumps({"file_format_version": "1.0.0",
                                    "ICD": {"library_path": str(drivers[0]), "api_version": "1.3.0"}}))
    # This Mesa leaks memory of its own; leaks of gk show on the other.
    os.environ["LAVAPIPE_MANIFEST"] = str(manifest)
    env = dict(run.environment(), LD_LIBRARY_PATH=str(drivers[0].parent), LSAN_OPTIONS="detect_leaks=0")
    for program, *more in ((suites.CONFORMANCE,), (suites.RANDOM_LISTS, "--random", "1000"),
                           ("tests/softbody_devices.py", "lavapipe")):
        command = [sys.executable, program, *more] if program.endswith(".py") else suites.on_lavapipe(program, *more)
        done = subprocess.run(command, cwd=tap.ROOT, env=env, capture_output=True, text=True, check=False)
        wrong = [line for line in done.stdout.splitlines() if line.startswith(("not ok", "#"))]
        tap.case(f"{os.path.basename(program)} on {drivers[0].name} of {SUITE}",
                 "\n".join(wrong or [done.stderr]) if done.returncode else None)
    tap.finish()


if __name__ == "__main__":
    main()
