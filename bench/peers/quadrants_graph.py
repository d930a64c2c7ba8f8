#!/usr/bin/env python3
"""Quadrants on the CPU: @qd.kernel(graph=True), each of whose top-level loops is one task; loops by qd.graph.do_while,
checkpoints by qd.checkpoint, sections by qd.graph.parallel_context (which the CPU runs one after the other).

A pool of threads runs all tasks, even those over one item. This costs least on one core, since no thread on another
core has to be woken. Large tasks need all cores. Both are measured."""
import sys
import tempfile

import measure

SIZES = (("F1", 1, 100), ("F1", 1024, 100), ("F2", 1 << 20, 4))
PASSES, CHECKPOINTS, SECTION_TASKS = 1000, 40, 100
ONE_CORE = "one thread, pinned to one core"


def rows_of(how):
    import numpy as np
    import quadrants as qd

    threads = {"cpu_max_num_threads": 1} if how == ONE_CORE else {}
    qd.init(arch=qd.cpu, log_level="error", unrolling_limit=0, **threads)
    from quadrants_rows import chain, marked_chain, pass_row, task_row, vector, yield_rows, zeros

    def checkpoint_row():
        x, quiet, made = zeros(1), qd.ndarray(qd.i32, shape=()), [0]
        quiet[()] = 0
        plain = chain(CHECKPOINTS, 1)
        with tempfile.TemporaryDirectory() as folder:
            marked = marked_chain(folder, CHECKPOINTS)
            marked(x, quiet)
        made[0] += CHECKPOINTS

        def launch(kernel, *args):
            kernel(x, *args)
            made[0] += CHECKPOINTS

        def turn():
            without = measure.least(3, lambda: launch(plain))
            return (measure.least(3, lambda: launch(marked, quiet)) - without) / CHECKPOINTS
        return measure.Row("F8", "silent checkpoint", "ns", turn, lambda: x.to_numpy()[0] == made[0])

    def sections_row(n):
        x, y, made = zeros(n), zeros(n), [0]
        straight = chain(2 * SECTION_TASKS, n)

        @qd.kernel(graph=True)
        def split(x: vector, y: vector):
            with qd.graph.parallel_context():
                with qd.graph.parallel():
                    for _ in qd.static(range(SECTION_TASKS)):
                        for i in range(n):
                            x[i] = x[i] + 1
                with qd.graph.parallel():
                    for _ in qd.static(range(SECTION_TASKS)):
                        for i in range(n):
                            y[i] = y[i] + 1

        def turn():
            one = measure.least(3, lambda: straight(x))
            two = measure.least(3, lambda: split(x, y))
            made[0] += 3
            return two / one
        return measure.Row("F7", f"two sections n={n}", "ratio", turn,
                           lambda: bool(np.all(x.to_numpy() == made[0] * 3 * SECTION_TASKS))
                           and bool(np.all(y.to_numpy() == made[0] * SECTION_TASKS)))

    return [task_row(*size) for size in SIZES] + [pass_row("F8", PASSES), checkpoint_row()] + \
        yield_rows("F8") + [sections_row(n) for n in (1, 512)]


if __name__ == "__main__":
    sys.exit(measure.main("quadrants", "quadrants", "1.3.3", __file__,
                          [measure.Configuration(ONE_CORE, 1), measure.Configuration("all cores")], rows_of, {}))
