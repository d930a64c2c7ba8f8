#!/usr/bin/env python3
"""Quadrants on CUDA: @qd.kernel(graph=True), which becomes a graph of the driver's. On devices from SM 9.0 on
qd.graph.do_while is a conditional node, and so is what stands behind a checkpoint; on older ones loops are the host's,
and kernels are gated one by one."""
import sys
import tempfile

import measure
import on_gpu

CHECKPOINTS = 40  # of the longer of two chains; the other has half of them


def rows_of(_how):
    import quadrants as qd
    from quadrants.lang import impl

    qd.init(arch=qd.cuda, log_level="error", unrolling_limit=0)
    if impl.current_cfg().arch != qd.cuda:  # it would go on, on the CPU
        raise RuntimeError("Quadrants found no CUDA device that it can use")
    from quadrants_rows import chain, marked_chain, pass_row, yield_rows, zeros

    def checkpoint_row():
        """What one more task with a checkpoint takes beyond one more without."""
        x, quiet, made = zeros(1), qd.ndarray(qd.i32, shape=()), [0]
        quiet[()] = 0
        counts = (CHECKPOINTS // 2, CHECKPOINTS)
        plain = [chain(count, 1) for count in counts]
        with tempfile.TemporaryDirectory() as folder:
            marked = [marked_chain(folder, count) for count in counts]
            for count, kernel in zip(counts, marked):  # compiled while the source is there
                kernel(x, quiet)
                made[0] += count

        def launch(kernels, longer, *args):
            kernels[longer](x, *args)
            qd.sync()
            made[0] += counts[longer]

        def turn():
            def one_more(kernels, *args):
                return measure.slope(lambda: launch(kernels, 0, *args), lambda: launch(kernels, 1, *args),
                                     counts[1] - counts[0])
            return one_more(marked, quiet) - one_more(plain)
        return measure.Row("C12", "silent checkpoint", "ns", turn, lambda: x.to_numpy()[0] == made[0])

    def launch_row():
        x, kernel = zeros(1), chain(1, 1)
        return on_gpu.launch_row(lambda: kernel(x), qd.sync, lambda: int(x.to_numpy()[0]))

    return [pass_row("C12", on_gpu.PASSES), checkpoint_row(), launch_row(), yield_rows("C12")[0]]


if __name__ == "__main__":
    sys.exit(measure.main("quadrants on CUDA", "quadrants", "1.3.3", __file__,
                          [measure.Configuration("graph=True")], rows_of, {}, on_gpu.why_none))
