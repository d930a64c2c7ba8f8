#!/usr/bin/env python3
"""Quadrants on the CPU: @qd.kernel(graph=True), each of whose top-level loops is one task; loops by qd.graph.do_while,
checkpoints by qd.checkpoint, sections by qd.graph.parallel_context (which the CPU runs one after the other).

Tasks are handed to a pool of threads, even those over one item. On one core that costs least, as nobody has to be woken
on another one; large tasks want all cores. Both are measured."""
import importlib.util
import sys
import tempfile
from pathlib import Path

import measure

SIZES = (("F1", 1, 100), ("F1", 1024, 100), ("F2", 1 << 20, 4))
PASSES, CHECKPOINTS, SECTION_TASKS = 1000, 40, 100
ONE_CORE = "one thread, pinned to one core"


def rows_of(how):
    import numpy as np
    import quadrants as qd

    threads = {"cpu_max_num_threads": 1} if how == ONE_CORE else {}
    qd.init(arch=qd.cpu, log_level="error", unrolling_limit=0, **threads)
    vector, number = qd.types.ndarray(qd.i32, ndim=1), qd.types.ndarray(qd.i32, ndim=0)

    def zeros(n):
        x = qd.ndarray(qd.i32, shape=(n,))
        x.fill(0)
        return x

    def chain(count, n):
        @qd.kernel(graph=True)
        def run(x: vector):
            for _ in qd.static(range(count)):
                for i in range(n):
                    x[i] = x[i] + 1
        return run

    def task_row(table, n, more):
        x, made = zeros(n), [0]

        def launcher(count):
            kernel = chain(count, n)

            def launch():
                kernel(x)
                made[0] += count
            return launch

        few, many = launcher(more), launcher(2 * more)
        return measure.Row(table, f"one more task n={n}", "ns", lambda: measure.slope(few, many, more),
                           lambda: bool(np.all(x.to_numpy() == made[0])))

    def pass_row():
        left, bad = qd.ndarray(qd.i32, shape=()), []

        @qd.kernel(graph=True)
        def loop(left: number):
            while qd.graph.do_while(left):
                for _ in range(1):
                    left[()] = left[()] - 1

        def launch(passes):
            left[()] = passes
            begin = measure.now()
            loop(left)
            took = measure.now() - begin
            if left[()] != 0:
                bad.append(left[()])
            return took

        def turn():
            fewer = min(launch(PASSES) for _ in range(3))
            return (min(launch(2 * PASSES) for _ in range(3)) - fewer) / PASSES
        return measure.Row("F8", "one more pass", "ns", turn, lambda: not bad)

    def checkpoint_row():
        x, quiet, made = zeros(1), qd.ndarray(qd.i32, shape=()), [0]
        quiet[()] = 0
        plain = chain(CHECKPOINTS, 1)
        with tempfile.TemporaryDirectory() as folder:
            marked = marked_chain(folder)
            marked(x, quiet)
        made[0] += CHECKPOINTS

        def launch(kernel, *args):
            kernel(x, *args)
            made[0] += CHECKPOINTS

        def turn():
            without = measure.least(3, lambda: launch(plain))
            return (measure.least(3, lambda: launch(marked, quiet)) - without) / CHECKPOINTS
        return measure.Row("F8", "silent checkpoint", "ns", turn, lambda: x.to_numpy()[0] == made[0])

    def yield_rows():
        x, flag, made, bad = zeros(1), qd.ndarray(qd.i32, shape=()), [0], []

        @qd.kernel(graph=True, checkpoints=True)
        def step(x: vector, flag: number):
            with qd.checkpoint(7, yield_on=flag):
                for i in range(1):
                    x[i] = x[i] + 1

        def calm():
            begin = measure.now()
            if step(x, flag).yielded:
                bad.append("yielded without a reason")
            made[0] += 1
            return measure.now() - begin

        def interrupted():
            flag[()] = 1
            begin = measure.now()
            status = step(x, flag)
            flag[()] = 0
            resumed = step.resume(x, flag, from_checkpoint=7)
            took = measure.now() - begin
            made[0] += 2
            if not status.yielded or status.checkpoint != 7 or resumed.yielded:
                bad.append(f"{status} {resumed}")
            return took

        def beyond(launches):
            flag[()] = 0
            without = min(sum(calm() for _ in range(launches)) for _ in range(5))
            return min(interrupted() for _ in range(5)) - without

        def right():
            return not bad and x.to_numpy()[0] == made[0]
        return [measure.Row("F8", "yield and resume", "ns", lambda: beyond(2), right),
                measure.Row("F8", "yield and resume, all of it", "ns", lambda: beyond(1), right)]

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

    return [task_row(*size) for size in SIZES] + [pass_row(), checkpoint_row()] + yield_rows() + \
        [sections_row(n) for n in (1, 512)]


def marked_chain(folder):
    """CHECKPOINTS tasks with a checkpoint each. Every one takes a number written as such, and the compiler reads the
    source: so there has to be a file with all of them."""
    lines = ["import quadrants as qd", "", "", "@qd.kernel(graph=True, checkpoints=True)",
             "def run(x: qd.types.ndarray(qd.i32, ndim=1), quiet: qd.types.ndarray(qd.i32, ndim=0)):"]
    for k in range(CHECKPOINTS):
        lines += [f"    with qd.checkpoint({k}, yield_on=quiet):", "        for i in range(1):",
                  "            x[i] = x[i] + 1"]
    path = Path(folder) / "marked.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("marked", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run


if __name__ == "__main__":
    sys.exit(measure.main("quadrants", "quadrants", "1.3.3", __file__,
                          [measure.Configuration(ONE_CORE, 1), measure.Configuration("all cores", 0)], rows_of, {}))
