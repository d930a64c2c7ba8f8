#!/usr/bin/env python3
"""NVIDIA Warp on the CPU: launches captured into a graph by wp.ScopedCapture and replayed by wp.capture_launch, loops
by wp.capture_while. Warp replays in C++, on one thread; on the CPU it has neither checkpoints nor parallel branches."""
import sys

import measure

SIZES = (("F1", 1, 20000), ("F1", 1024, 2000), ("F2", 1 << 20, 10))
PASSES = 20000


def rows_of(_how):
    import warp as wp
    import numpy as np

    wp.config.quiet = True
    wp.config.enable_backward = False  # no gradients are needed; it changes nothing in a forward launch

    @wp.kernel
    def one_more(x: wp.array(dtype=wp.int32)):
        i = wp.tid()
        x[i] = x[i] + 1

    @wp.kernel
    def one_less(left: wp.array(dtype=wp.int32)):
        left[0] = left[0] - 1

    wp.init()
    wp.load_module(device="cpu")

    def captured(record):
        with wp.ScopedCapture(device="cpu") as capture:
            record()
        return capture.graph

    def task_row(table, n, more):
        x = wp.zeros(n, dtype=wp.int32, device="cpu")
        seen, made = x.numpy(), [0]  # the same memory

        def graph(count):
            def record():
                for _ in range(count):
                    wp.launch(one_more, dim=n, inputs=[x], device="cpu")
            whole = captured(record)

            def launch():
                wp.capture_launch(whole)
                made[0] += count
            return launch

        few, many = graph(more), graph(2 * more)
        return measure.Row(table, f"one more task n={n}", "ns", lambda: measure.slope(few, many, more),
                           lambda: bool(np.all(seen == np.int32(made[0]))))

    def pass_row():
        left = wp.zeros(1, dtype=wp.int32, device="cpu")
        flag = left.numpy()
        whole = captured(lambda: wp.capture_while(
            left, lambda: wp.launch(one_less, dim=1, inputs=[left], device="cpu")))

        def loop(passes):
            flag[0] = passes
            begin = measure.now()
            wp.capture_launch(whole)
            return measure.now() - begin, flag[0] == 0
        return measure.pass_row("F8", PASSES, loop)

    return [task_row(*size) for size in SIZES] + [pass_row()]


ABSENT = {
    ("F8", "silent checkpoint"): "Warp's graphs have no checkpoints",
    ("F8", "yield and resume"): "Warp's graphs have no checkpoints",
    ("F8", "yield and resume, all of it"): "Warp's graphs have no checkpoints",
    ("F7", "two sections n=1"): "Warp replays a graph on the CPU as one chain, on one thread",
    ("F7", "two sections n=512"): "Warp replays a graph on the CPU as one chain, on one thread",
}

if __name__ == "__main__":
    sys.exit(measure.main("warp", "warp-lang", "1.19.0", __file__, [measure.Configuration("one thread")], rows_of,
                          ABSENT))
