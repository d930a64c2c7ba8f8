#!/usr/bin/env python3
"""Quadrants on CUDA: @qd.kernel(graph=True), which becomes a graph of the driver's. On devices from SM 9.0 on
qd.graph.do_while is a conditional node, and so are the tasks after a checkpoint. On older devices the host runs loops,
and kernels are gated one by one."""
import sys

import measure
import on_gpu


def rows_of(_how):
    import quadrants as qd
    from quadrants.lang import impl

    qd.init(arch=qd.cuda, log_level="error", unrolling_limit=0)
    if impl.current_cfg().arch != qd.cuda:  # otherwise it would continue on the CPU
        raise RuntimeError("Quadrants found no CUDA device that it can use")
    from quadrants_rows import chain, checkpoint_row, pass_row, yield_rows, zeros

    def launch_row():
        x, kernel = zeros(1), chain(1, 1)
        return on_gpu.launch_row(lambda: kernel(x), qd.sync, lambda: int(x.to_numpy()[0]))

    return [pass_row("C12", on_gpu.PASSES), checkpoint_row("C12"), launch_row(), yield_rows("C12")[0]]


if __name__ == "__main__":
    sys.exit(measure.main("quadrants on CUDA", "quadrants", "1.3.3", __file__,
                          [measure.Configuration("graph=True")], rows_of, {}, on_gpu.why_none))
