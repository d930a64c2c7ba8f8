"""CUDA toolkits for tests: the one that is installed, and parts of others from PyPI, in build/toolkits."""
import fcntl
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(os.path.abspath(__file__)).parents[1]))
import tap  # noqa: E402

OLDEST_WHOLE = "12.4.127"  # of the toolkit whose headers and NVRTC gk has to agree with
SECONDS = 120


class Missing(Exception):
    """What can't be had, and why."""


def installed():
    """The folder of the toolkit that configure.py found, or else of the usual ones."""
    nvcc = tap.config("nvcc")
    places = [Path(nvcc[0]).parents[1]] if nvcc else []
    places += [Path(place) for place in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
               if place]
    for place in places:
        if (place / "include/cuda.h").exists():
            return place
    raise Missing("there is no CUDA toolkit in /usr/local/cuda or $CUDA_HOME")


def wheel(package, version):
    """The folder nvidia/PART of a wheel, fetched once per build tree."""
    folder = Path("build/toolkits").absolute()
    target = folder / f"{package}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:  # several tests may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            fetch(package, version, folder, target)
    parts = [part for part in (target / "nvidia").iterdir() if part.is_dir()]
    return parts[0]


def fetch(package, version, folder, target):
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--timeout", "20",
               "--retries", "1", "--disable-pip-version-check", "--quiet", "--dest", str(folder),
               f"{package}=={version}"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        said = done.stdout.strip().splitlines()
    except subprocess.TimeoutExpired:
        said = [f"no answer within {SECONDS} seconds"]
    found = sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    if not found:
        raise Missing(f"{package} {version} can't be had from PyPI: {said[-1] if said else 'pip says nothing'}")
    partial = target.with_suffix(".partial")
    with zipfile.ZipFile(found[0]) as archive:
        archive.extractall(partial)
    found[0].unlink()
    partial.rename(target)


def headers_of_oldest():
    """Include folders of cuda.h and nvrtc.h of 12.4."""
    return [wheel("nvidia-cuda-runtime-cu12", OLDEST_WHOLE) / "include",
            wheel("nvidia-cuda-nvrtc-cu12", OLDEST_WHOLE) / "include"]


def version_of(folders):
    """12040, from cuda.h."""
    for folder in folders:
        if (folder / "cuda.h").exists():
            return int(re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text())[1])
    raise Missing(f"there is no cuda.h in {', '.join(map(str, folders))}")
