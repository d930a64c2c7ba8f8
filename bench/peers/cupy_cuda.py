#!/usr/bin/env python3
"""CuPy: a graph captured from a stream. It has no loops in graphs. For each pass the host launches a graph, copies its
flag to pinned memory and waits."""
import sys

import measure
import on_gpu

TEXT = """
extern "C" __global__ void more(int *x) { *x += 1; }
extern "C" __global__ void less(int *left) { *left -= 1; }
"""


def rows_of(_how):
    import cupy
    import cupyx

    stream = cupy.cuda.Stream(non_blocking=True)
    code = cupy.RawModule(code=TEXT)
    with stream:
        x, left = (cupy.zeros(1, dtype=cupy.int32) for _ in range(2))
    here = cupyx.zeros_pinned(1, dtype=cupy.int32)

    def value(of):
        of.get(stream=stream, out=here)  # waits
        return int(here[0])

    def captured(name, array):
        kernel = code.get_function(name)
        with stream:
            kernel((1,), (1,), (array,))  # work of the first call can't be captured
            stream.synchronize()
            stream.begin_capture()
            kernel((1,), (1,), (array,))
            graph = stream.end_capture()
        graph.upload(stream)
        return graph

    one_pass, single = captured("less", left), captured("more", x)

    def loop(passes):
        here[0] = passes
        left.set(here, stream=stream)
        stream.synchronize()
        begin = measure.now()
        while True:
            one_pass.launch(stream)
            if value(left) == 0:
                break
        return measure.now() - begin, value(left) == 0

    return [measure.pass_row("C12", on_gpu.HOST_PASSES, loop),
            on_gpu.launch_row(lambda: single.launch(stream), stream.synchronize, lambda: value(x))]


if __name__ == "__main__":
    sys.exit(measure.main("cupy", ("cupy-cuda13x", "cupy-cuda12x"), "14.2.0", __file__,
                          [measure.Configuration("graph of one pass, the host reads its flag")], rows_of,
                          on_gpu.no_checkpoints("CuPy"), on_gpu.why_none))
