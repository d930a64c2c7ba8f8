"""What a machine with a GPU may lack, for bench/gpu.py: fetched where there is a network, used where there is none."""
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from gpu_process import ROOT

sys.path.insert(0, str(ROOT))
import configure  # noqa: E402

UNPACKED = ROOT / "build/gpu-carried"
PACKAGES = {"libcmocka-dev": ["libcmocka-dev", "libcmocka0"], "libpng-dev": ["libpng-dev", "libpng16-16"],
            "ninja-build": ["ninja-build"]}
NVRTC = "nvidia-cuda-nvrtc-cu12==12.4.127"


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        sys.exit(f"$ {' '.join(map(str, command))}\n{done.stdout}")


def pack(folder, most):
    """Fetches what a machine with a GPU may lack, and unpacks it as far as it is small. most: bytes, or None."""
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
    """Of what was taken along, only what this machine has not."""
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
    still = packages_missing()
    part.check("everything is here", still and f"{' '.join(still)}: missing, and {folder} doesn't help",
               f"carried: {' '.join(lacking)}" if lacking else "")
