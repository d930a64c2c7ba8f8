#!/usr/bin/env python3
"""Quadrants on Vulkan: @qd.kernel(graph=True), qd.graph.do_while, qd.checkpoint, on the loader's first device. On
Mesa's lavapipe the device is the CPU, and one core may be faster than all cores: both are measured."""
import sys

import measure
import vulkan_devices

SIZES = ((1, 40), (1024, 40), (1 << 20, 4))  # items of a task, and the additional tasks of the longer list
PASSES = 500


def rows_of(_how):
    import quadrants as qd
    from quadrants.lang import impl

    qd.init(arch=qd.vulkan, log_level="error", unrolling_limit=0)
    if impl.current_cfg().arch != qd.vulkan:  # otherwise it would continue on the CPU
        raise RuntimeError("Quadrants found no Vulkan device that it can use")
    from quadrants_rows import checkpoint_row, pass_row, task_row, yield_rows

    return [task_row("F4", n, more) for n, more in SIZES] + [pass_row("F9", PASSES), checkpoint_row("F9")] + \
        yield_rows("F9")


def ways():
    """The configurations on the first device, which Quadrants is told to use."""
    try:
        device = vulkan_devices.devices()[0]
    except OSError:
        return []
    env = {"QD_VISIBLE_DEVICE": "0"}
    return [measure.Configuration(f"{device}, one core", 1, env), measure.Configuration(f"{device}, all cores", 0, env)]


if __name__ == "__main__":
    sys.exit(measure.main("quadrants on Vulkan", "quadrants", "1.3.3", __file__, ways(), rows_of, {},
                          vulkan_devices.why_none))
