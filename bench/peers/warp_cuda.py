#!/usr/bin/env python3
"""NVIDIA Warp on CUDA: launches captured by wp.ScopedCapture, replayed by wp.capture_launch; a loop by
wp.capture_while, which makes a conditional node of the driver's with a kernel that looks at the flag."""
import sys

import measure
import on_gpu

DEVICE = "cuda:0"


def rows_of(_how):
    import warp as wp

    wp.config.quiet = True
    wp.config.enable_backward = False  # no gradients are needed

    @wp.kernel
    def one_more(x: wp.array(dtype=wp.int32)):
        i = wp.tid()
        x[i] = x[i] + 1

    @wp.kernel
    def one_less(left: wp.array(dtype=wp.int32)):
        left[0] = left[0] - 1

    wp.init()
    wp.load_module(device=DEVICE)
    x, left = (wp.zeros(1, dtype=wp.int32, device=DEVICE) for _ in range(2))

    def captured(record):
        with wp.ScopedCapture(device=DEVICE) as capture:
            record()
        return capture.graph

    looping = captured(lambda: wp.capture_while(
        left, lambda: wp.launch(one_less, dim=1, inputs=[left], device=DEVICE)))
    single = captured(lambda: wp.launch(one_more, dim=1, inputs=[x], device=DEVICE))

    def loop(passes):
        left.fill_(passes)
        wp.synchronize_device(DEVICE)
        begin = measure.now()
        wp.capture_launch(looping)
        wp.synchronize_device(DEVICE)
        return measure.now() - begin, left.numpy()[0] == 0

    return [measure.pass_row("C12", on_gpu.PASSES, loop),
            on_gpu.launch_row(lambda: wp.capture_launch(single), lambda: wp.synchronize_device(DEVICE),
                              lambda: int(x.numpy()[0]))]


if __name__ == "__main__":
    sys.exit(measure.main("warp on CUDA", "warp-lang", "1.19.0", __file__,
                          [measure.Configuration("capture_while, capture_launch")], rows_of,
                          on_gpu.no_checkpoints("Warp"), on_gpu.why_none))
