"""Shared by the scripts of peers on CUDA: the search for a device, and the rows of table C12 that all of them have.
bench/cuda/peers.c has gk's figures for the same tasks."""
import ctypes

import measure

PASSES = 1000        # of a loop on the device
HOST_PASSES = 200    # of a loop whose flag the host reads
QUEUE, CALLS = 8, 5  # launches without a wait; the number of such groups, of which the least time counts


def why_none():
    """The reason why there is no CUDA device, or None. It asks the driver, since peers give no reason."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        code, count = driver.cuInit(0), ctypes.c_int()
        code = code or driver.cuDeviceGetCount(ctypes.byref(count))
    except OSError:
        return "there is no CUDA driver: no libcuda.so.1"
    except AttributeError:
        return "there is no CUDA driver: this libcuda.so.1 is none of NVIDIA's"
    return f"there is no CUDA device: the driver answers {code}" if code or not count.value else None


def launch_row(launch, wait, ran):
    """The host's time for launch(), which launches a graph of one task. ran(): how many times the task ran."""
    made = [ran()]

    def call():
        begin = measure.now()
        for _ in range(QUEUE):
            launch()
        took = (measure.now() - begin) / QUEUE
        wait()
        made[0] += QUEUE
        return took
    return measure.Row("C12", "one launch", "ns", lambda: min(call() for _ in range(CALLS)), lambda: ran() == made[0])


def no_checkpoints(peer):
    """Rows for which most peers have no counterpart."""
    return {("C12", what): f"{peer} has no checkpoints" for what in ("silent checkpoint", "yield and resume")}
