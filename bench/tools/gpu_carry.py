"""Packages that a machine with a GPU may lack, for bench/tools/gpu.py: fetched on a machine with a network, used on one
without."""
import importlib.metadata
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from gpu_process import ROOT

sys.path.insert(0, str(ROOT))
import configure  # noqa: E402
import run_peers  # noqa: E402

UNPACKED = ROOT / "build/gpu-carried"
PACKAGES = {"libcmocka-dev": ["libcmocka-dev", "libcmocka0"], "libpng-dev": ["libpng-dev", "libpng16-16"],
            "ninja-build": ["ninja-build"]}
NVRTC = "nvidia-cuda-nvrtc-cu12==12.4.127"
# The peer that goals name, and the folder for its packages. These aren't packed: numpy, which is large and installed
# with any other peer; static libraries; programs.
PEER, PEERS = "quadrants", UNPACKED / "peers"
NOT_PACKED = ("numpy*", "lib64", "bin", "share")
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
FOR_CODE = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        sys.exit(f"$ {' '.join(map(str, command))}\n{done.stdout}")


def peers_archive(folder, python):
    """python: its version, as "3.12"."""
    return folder / f"peers-python-{python}.tar.xz"


def pack_peers(folder, python):
    """Packs the peer with its imports for that version of Python, as small as possible."""
    package = next(peer.package for peer in run_peers.listed().values() if peer.package.startswith(PEER))
    site = folder / "site"
    run(sys.executable, "-m", "pip", "-q", "install", "--target", site, "--only-binary=:all:", "--implementation", "cp",
        "--python-version", python, *(f"--platform={name}_x86_64" for name in PLATFORMS), package)
    for name in NOT_PACKED:
        for path in site.glob(name):
            shutil.rmtree(path)
    write_peers(site, peers_archive(folder, python))
    shutil.rmtree(site)


def write_peers(site, archive):
    with lzma.open(archive, "wb", filters=FOR_CODE) as to, tarfile.open(fileobj=to, mode="w") as tar:
        for path in sorted(site.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                tar.add(path, path.relative_to(site))


def use_peers(folder):
    """Unpacks the peer for this Python, if it isn't installed. @return what was done or is wrong, or None"""
    archive = peers_archive(folder, f"{sys.version_info[0]}.{sys.version_info[1]}")
    try:
        importlib.metadata.version(PEER)
        return None
    except importlib.metadata.PackageNotFoundError:
        others = [path.name for path in folder.glob("peers-python-*.tar.xz") if path != archive]
    if not archive.exists():
        return f"{', '.join(others)}: this is another Python" if others else None
    shutil.rmtree(PEERS, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(PEERS, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return PEER


def pack(folder, most, python=None):
    """Fetches the packages, and unpacks the small ones. most: bytes, or None. python: the version on the GPU machine,
    if peers are packed, too."""
    folder = Path(folder).absolute()
    fetched = folder / "fetched"
    fetched.mkdir(parents=True, exist_ok=True)
    for name, debs in PACKAGES.items():
        run("apt-get", "-q", "download", *debs, cwd=fetched)
        for deb in debs:
            run("dpkg-deb", "-x", max(fetched.glob(f"{deb}_*")), folder / name)
        shutil.rmtree(folder / name / "usr/share", ignore_errors=True)
    run(sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--only-binary=:all:", "--platform",
        "manylinux2014_x86_64", "-d", folder, NVRTC)
    shutil.rmtree(fetched)
    if python:
        pack_peers(folder, python)
    size = sum(path.lstat().st_size for path in folder.rglob("*"))
    print(f"{folder}: {size / 2**20:.1f} MiB")
    return 0 if most is None or size <= most else 1


def prepend(name, folder):
    os.environ[name] = ":".join(filter(None, (str(folder), os.environ.get(name))))


def has_nvrtc():
    names = [f"libnvrtc.so.{n}" for n in ("13", "12", "11.2")]
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    script = "import ctypes, sys\nfor name in sys.argv[1:]:\n try: ctypes.CDLL(name); sys.exit(0)\n" \
        " except OSError: pass\nsys.exit(1)"
    return configure.output(sys.executable, "-c", script, *names, *(f"{home}/lib64/{name}" for name in names)) \
        is not None


def packages_missing():
    return sorted(set(PACKAGES) & set(configure.missing_packages(("demo", "test", "bench"))))


def use_carried(part, folder):
    """Makes this machine use those packages that it lacks."""
    lacking = packages_missing()
    if not folder.is_dir():
        if lacking:
            part.check("everything is here", f"this machine lacks {' '.join(lacking)}, and there is no {folder} "
                       "(bench/gpu.sh --pack makes it)")
        return
    for name in lacking:
        base = folder / name / "usr"
        prepend("PATH", base / "bin")
        prepend("C_INCLUDE_PATH", base / "include")
        for variable in ("LIBRARY_PATH", "LD_LIBRARY_PATH"):
            prepend(variable, base / "lib/x86_64-linux-gnu")
    wheels = list(folder.glob("nvidia_cuda_nvrtc*.whl"))
    if wheels and not has_nvrtc():
        lacking.append("NVRTC")
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(UNPACKED)
        prepend("LD_LIBRARY_PATH", UNPACKED / "nvidia/cuda_nvrtc/lib")
    peers = use_peers(folder)
    lacking += [peers] if peers else []
    still = packages_missing()
    part.check("everything is here", still and f"{' '.join(still)}: missing, and {folder} doesn't help",
               f"carried: {' '.join(lacking)}" if lacking else "")
