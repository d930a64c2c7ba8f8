"""NVRTC, loaded: the one that is installed, and that of 12.4 from PyPI."""
import ctypes
import ctypes.util

import toolkits


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def architectures(self):
        count = ctypes.c_int()
        self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.library.nvrtcGetSupportedArchs(numbers)
        return list(numbers)

    def compile(self, text, architecture, wanted, name="kernels.cu", headers=()):
        """{PTX: bytes, CUBIN: bytes} as wanted, none after an error, and the log or what else is wrong, or None; a
        warning is one. headers: (name, text) of each."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        names, texts = ((ctypes.c_char_p * len(headers))(*part) for part in (zip(*headers) if headers else ((), ())))
        if self.library.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), len(headers), texts, names):
            return {}, "nvrtcCreateProgram failed"
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        result = self.library.nvrtcCompileProgram(program, 1, options)

        def fetch(what):
            getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
            buffer = ctypes.create_string_buffer(size.value + 1)
            getattr(self.library, f"nvrtcGet{what}")(program, buffer)
            return buffer.raw[:size.value]

        log = fetch("ProgramLog").rstrip(b"\0\n").decode(errors="replace").strip()
        made = {} if result else {what: fetch(what) for what in wanted}
        if "PTX" in made:
            made["PTX"] = made["PTX"].rstrip(b"\0")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return made, log or (f"nvrtcCompileProgram answers {result}" if result else None)


def installed():
    try:
        folders = [toolkits.installed()]
    except toolkits.Missing:
        folders = []
    paths = [path for folder in folders for path in sorted(folder.glob("lib64/libnvrtc.so*"))]
    for path in filter(None, [*paths, ctypes.util.find_library("nvrtc")]):
        try:
            return Nvrtc(path)
        except OSError:
            continue
    raise toolkits.Missing("there is no libnvrtc in /usr/local/cuda or $CUDA_HOME")


def oldest():
    folder = toolkits.wheel("nvidia-cuda-nvrtc-cu12", toolkits.OLDEST_WHOLE) / "lib"
    try:
        for builtins in folder.glob("libnvrtc-builtins.so*"):  # else it looks for it where the linker does
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        return Nvrtc(folder / "libnvrtc.so.12")
    except OSError as problem:
        raise toolkits.Missing(str(problem)) from problem
