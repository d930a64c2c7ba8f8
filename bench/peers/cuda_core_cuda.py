#!/usr/bin/env python3
"""cuda.core, NVIDIA's Python for CUDA: graphs made by its graph builder, which captures launches; a loop by
while_loop, whose body's own kernel decides whether it goes on."""
import ctypes
import sys

import measure
import on_gpu

TEXT = """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
extern "C" __global__ void more(int *x) { *x += 1; }
extern "C" __global__ void less_and_decide(int *left, unsigned long long handle) {
  cudaGraphSetConditional(handle, (*left -= 1) != 0);
}
"""


def rows_of(_how):
    import numpy as np
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    code = Program(TEXT, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
    one = LaunchConfig(grid=1, block=1)
    x, left = (device.allocate(4, stream=stream) for _ in range(2))
    here = LegacyPinnedMemoryResource().allocate(4, stream=stream)
    number = ctypes.c_int.from_address(int(here.handle))

    def put(to, value):
        number.value = value
        to.copy_from(here, stream=stream)
        stream.sync()

    def value(of):
        of.copy_to(here, stream=stream)
        stream.sync()
        return number.value

    def built(record):
        builder = device.create_graph_builder().begin_building()
        record(builder)
        graph = builder.end_building().complete()
        graph.upload(stream)
        return graph

    def add_loop(builder):
        condition = builder.create_condition(default_value=1)
        body = builder.while_loop(condition).begin_building()
        launch(body, one, code.get_kernel("less_and_decide"), left, np.uint64(int(condition.handle)))
        body.end_building()

    looping = built(add_loop)
    single = built(lambda builder: launch(builder, one, code.get_kernel("more"), x))
    put(x, 0)

    def loop(passes):
        put(left, passes)
        begin = measure.now()
        looping.launch(stream)
        stream.sync()
        return measure.now() - begin, value(left) == 0

    return [measure.pass_row("C12", on_gpu.PASSES, loop),
            on_gpu.launch_row(lambda: single.launch(stream), stream.sync, lambda: value(x))]


if __name__ == "__main__":
    sys.exit(measure.main("cuda.core", "cuda-core", "1.2.2", __file__,
                          [measure.Configuration("graph builder, while_loop; the body's kernel decides")], rows_of,
                          on_gpu.no_checkpoints("cuda.core"), on_gpu.why_none))
