"""The part `vulkan` of bench/tools/gpu.py: which Vulkan driver of a GPU is here, and gk's suite on it."""
import ctypes.util
import json
import sys
from pathlib import Path

from gpu_process import DRY, LOGS, ROOT
from gpu_suite import cases_of, check_suite, random_lists, run_suite

GATES = ("condition", "grid", "guard")  # for $GK_VULKAN_GATE
# NVIDIA's library, which containers for computing often have without its manifest.
NVIDIA = ("GLX_nvidia", "EGL_nvidia")


def manifests(pattern):
    return sorted(str(path) for folder in ("/usr/share", "/usr/local/share", "/etc")
                  for path in Path(folder, "vulkan/icd.d").glob(pattern))


def nvidia_manifest():
    """NVIDIA's manifest, so that no other driver comes first. It is written if the system has only the library. None:
    there is neither."""
    library = next(filter(None, map(ctypes.util.find_library, NVIDIA)), None)
    found = manifests("nvidia_icd*")
    if found or not library:
        return next(iter(found), None)
    path = LOGS / "nvidia_icd.json"
    path.write_text(json.dumps({"file_format_version": "1.0.0",
                                "ICD": {"library_path": library, "api_version": "1.3.0"}}) + "\n")
    return str(path)


def find_device(part):
    """Chooses the driver by the environment. @return the GPU's name, or None; and the reason or a note"""
    chosen = next(iter(manifests("lvp_icd*")), None) if DRY else nvidia_manifest()
    if chosen:
        part.real.update(VK_ICD_FILENAMES=chosen, VK_DRIVER_FILES=chosen)
    asked = part.call("devices", [sys.executable, ROOT / "bench/peers/vulkan_devices.py"], 60)
    names = [] if asked.trouble() else asked.text.splitlines()
    gpus = [name for name in names if DRY or "llvmpipe" not in name]
    note = ", ".join(names) + (f", by {chosen}" if chosen else "")
    if gpus:
        return gpus[0], note
    return None, f"there is no Vulkan driver of a GPU here ({note or (asked.text.splitlines() or ['?'])[-1]}); a " \
        "container for computing may lack NVIDIA's libGLX_nvidia.so.0 (NVIDIA_DRIVER_CAPABILITIES=all brings it)"


def conformance(part, options):
    """The suite and random lists by each way of gating, and host-gated."""
    plain, words = part.real, ["--backend", "vulkan"]
    for gate in GATES:
        part.real = dict(plain, GK_VULKAN_GATE=gate)
        check_suite(part, f"suite, {gate}", run_suite(part, gate, words, cases_of(options), part.real))
        random_lists(part, options, f"random lists, {gate}", [], 0.15)
    part.real = plain
    gated = ["--host-gated"]
    check_suite(part, "suite, host-gated", run_suite(part, "gated", words + gated, cases_of(options), part.real))
    random_lists(part, options, "random lists, host-gated", gated, 0.15)
