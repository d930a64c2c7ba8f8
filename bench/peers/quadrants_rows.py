"""The kernels and rows that the scripts of Quadrants share, on the device that it was started on."""
import importlib.util
import tempfile
from pathlib import Path

import measure
import quadrants as qd

CHECKPOINTS = 40  # of the longer of two chains; the other has half of them

vector, number = qd.types.ndarray(qd.i32, ndim=1), qd.types.ndarray(qd.i32, ndim=0)


def zeros(n):
    x = qd.ndarray(qd.i32, shape=(n,))
    x.fill(0)
    return x


def chain(count, n):
    """Tasks one after the other, each x[i] += 1 on n items."""
    @qd.kernel(graph=True)
    def run(x: vector):
        for _ in qd.static(range(count)):
            for i in range(n):
                x[i] = x[i] + 1
    return run


def marked_chain(folder, count):
    """Tasks on one item with a checkpoint each. Each checkpoint needs a literal number, and the compiler reads the
    source. So this writes a file with all of them."""
    lines = ["import quadrants as qd", "", "", "@qd.kernel(graph=True, checkpoints=True)",
             "def run(x: qd.types.ndarray(qd.i32, ndim=1), quiet: qd.types.ndarray(qd.i32, ndim=0)):"]
    for k in range(count):
        lines += [f"    with qd.checkpoint({k}, yield_on=quiet):", "        for i in range(1):",
                  "            x[i] = x[i] + 1"]
    path = Path(folder) / f"marked_{count}.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run


def task_row(table, n, more):
    """The time of one more task on n items."""
    x, made = zeros(n), [0]

    def launcher(count):
        kernel = chain(count, n)

        def launch():
            kernel(x)
            qd.sync()
            made[0] += count
        return launch

    few, many = launcher(more), launcher(2 * more)
    return measure.Row(table, f"one more task n={n}", "ns", lambda: measure.slope(few, many, more),
                       lambda: bool((x.to_numpy() == made[0]).all()))


def checkpoint_row(table):
    """The difference between one more task with a checkpoint and one more without."""
    x, quiet, made = zeros(1), qd.ndarray(qd.i32, shape=()), [0]
    quiet[()] = 0
    counts = (CHECKPOINTS // 2, CHECKPOINTS)
    plain = [chain(count, 1) for count in counts]
    with tempfile.TemporaryDirectory() as folder:
        marked = [marked_chain(folder, count) for count in counts]
        for count, kernel in zip(counts, marked):  # compiled while the source exists
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
    return measure.Row(table, "silent checkpoint", "ns", turn, lambda: x.to_numpy()[0] == made[0])


def pass_row(table, passes):
    left = qd.ndarray(qd.i32, shape=())

    @qd.kernel(graph=True)
    def run(left: number):
        while qd.graph.do_while(left):
            for _ in range(1):
                left[()] = left[()] - 1

    def loop(count):
        left[()] = count
        qd.sync()
        begin = measure.now()
        run(left)
        qd.sync()
        return measure.now() - begin, left[()] == 0
    return measure.pass_row(table, passes, loop)


def yield_rows(table):
    """The times beyond two launches, and beyond one."""
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
        qd.sync()
        begin = measure.now()
        status = step(x, flag)
        right = status.yielded and status.checkpoint == 7
        flag[()] = 0
        resumed = step.resume(x, flag, from_checkpoint=7)
        right = right and not resumed.yielded  # within the measured time, as in calm(): it may wait for the device
        took = measure.now() - begin
        made[0] += 2
        if not right:
            bad.append(f"{status} {resumed}")
        return took

    def beyond(launches):
        flag[()] = 0
        qd.sync()
        without = min(sum(calm() for _ in range(launches)) for _ in range(5))
        return min(interrupted() for _ in range(5)) - without

    def right():
        return not bad and x.to_numpy()[0] == made[0]
    return [measure.Row(table, "yield and resume", "ns", lambda: beyond(2), right),
            measure.Row(table, "yield and resume, all of it", "ns", lambda: beyond(1), right)]
