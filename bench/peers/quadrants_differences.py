#!/usr/bin/env python3
"""Tries what docs/from-quadrants.md says of Quadrants' CPU backend, and of Vulkan if there is a device (such as Mesa's
lavapipe): one TAP case per line of its second table and backend, and some lines of its first. Counts are the numbers of
times that tasks ran. Written for Quadrants 1.3.3; another version may behave differently."""
import sys
import warnings

import vulkan_devices
import quadrants as qd
from quadrants.lang import impl

warnings.simplefilter("ignore")
INT, INTS = qd.types.ndarray(qd.i32, ndim=0), qd.types.ndarray(qd.i32, ndim=1)


def number(value):
    x = qd.ndarray(qd.i32, shape=())
    x[()] = value
    return x


def counts(*values):
    x = qd.ndarray(qd.i32, shape=(8,))
    x.fill(0)
    for k, value in enumerate(values):
        x[k] = value
    return x


def outcome(c, status):
    return [int(n) for n in c.to_numpy()], status.checkpoint if status is not None and status.yielded else status and 0


@qd.kernel(graph=True, checkpoints=True)
def nested(c: INTS, outer: INT, inner: INT, full: INT):
    while qd.graph.do_while(outer):
        for _ in range(1):
            c[0] += 1
            inner[()] = 2
        while qd.graph.do_while(inner):
            for _ in range(1):
                c[1] += 1
            with qd.checkpoint(1, yield_on=full):
                for _ in range(1):
                    c[2] += 1
            for _ in range(1):
                c[3] += 1
                inner[()] -= 1
        for _ in range(1):
            c[4] += 1
            outer[()] -= 1


@qd.kernel(graph=True, checkpoints=True)
def behind_a_loop(c: INTS, n: INT, full: INT, later: INT):
    while qd.graph.do_while(n):
        for _ in range(1):
            c[0] += 1
            n[()] -= 1
    for _ in range(1):
        c[1] += 1
    with qd.checkpoint(1, yield_on=full):
        for _ in range(1):
            c[2] += 1
    for _ in range(1):
        c[3] += 1
    with qd.checkpoint(2, yield_on=later):
        for _ in range(1):
            c[4] += 1


@qd.kernel(graph=True, checkpoints=True)
def siblings(c: INTS, n: INT, m: INT, full: INT):
    while qd.graph.do_while(n):
        for _ in range(1):
            c[0] += 1
            n[()] -= 1
    while qd.graph.do_while(m):
        with qd.checkpoint(1, yield_on=full):
            for _ in range(1):
                c[1] += 1
        for _ in range(1):
            c[2] += 1
            m[()] -= 1


@qd.kernel(graph=True, checkpoints=True)
def sized(c: INTS, sizes: INTS, full: INT):
    with qd.checkpoint(1, yield_on=full):
        for k in range(sizes[0]):
            c[k] += 1
            full[()] = 1
        for k in range(sizes[1]):
            c[4 + k] += 1


@qd.kernel(graph=True, checkpoints=True)
def loop_alone(c: INTS, n: INT, full: INT):
    with qd.checkpoint(1, yield_on=full):
        while qd.graph.do_while(n):
            for _ in range(1):
                c[0] += 1
                full[()] = 1
                n[()] -= 1


@qd.kernel(graph=True, checkpoints=True)
def loop_and_more(c: INTS, n: INT, full: INT):
    with qd.checkpoint(1, yield_on=full):
        while qd.graph.do_while(n):
            for _ in range(1):
                c[0] += 1
                full[()] = 1
                n[()] -= 1
        for _ in range(1):
            c[1] += 1


@qd.kernel(graph=True, checkpoints=True)
def serial(c: INTS, full: INT):
    with qd.checkpoint(1, yield_on=full):
        for _ in range(1):
            c[0] += 1
    c[1] = c[1] + 1
    for _ in range(1):
        c[2] += 1


@qd.kernel(graph=True, checkpoints=True)
def unlabelled(c: INTS):
    for _ in range(1):
        c[0] += 1


@qd.kernel(graph=True, checkpoints=True)
def first_call(c: INTS, full: INT):
    with qd.checkpoint(1, yield_on=full):
        for _ in range(1):
            c[0] += 1


@qd.kernel(graph=True, checkpoints=True)
def alike(c: INTS, full: INT):
    with qd.checkpoint(1, yield_on=full):
        for _ in range(1):
            c[0] += 1
    for _ in range(1):
        c[1] += 1


@qd.kernel(graph=True, checkpoints=True)
def alike_otherwise(c: INTS, full: INT):
    for _ in range(1):
        c[0] += 1
    with qd.checkpoint(1, yield_on=full):
        for _ in range(1):
            c[1] += 1


@qd.kernel(graph=True, checkpoints=True)
def label_zero(c: INTS, full: INT):
    c[0] += 1
    for _ in range(1):
        c[1] += 1
    with qd.checkpoint(0, yield_on=full):
        for _ in range(1):
            c[2] += 1


@qd.kernel(graph=True)
def halves(c: INTS):
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            for i in range(4):
                c[i] += 1
        with qd.graph.parallel():
            for i in range(4):
                c[4 + i] += 2


@qd.func
def pausing(c: INTS, full: INT):
    with qd.checkpoint(1, yield_on=full):
        for _ in range(1):
            c[0] += 1


@qd.kernel(graph=True, checkpoints=True)
def calls_pausing(c: INTS, full: INT):
    pausing(c, full)


def prologue():
    """Counts after a yield at label 0 and after the resume."""
    c, full = counts(), number(1)
    status = label_zero(c, full)
    first = outcome(c, status), status.yielded
    full[()] = 0
    return first, outcome(c, label_zero.resume(c, full, from_checkpoint=0))


def message(attempt):
    try:
        attempt()
        return "none"
    except Exception as why:  # of several types
        return str(why)


def rearmed():
    c, n, full, later = counts(), number(3), number(1), number(0)
    behind_a_loop(c, n, full, later)
    n[()], full[()] = 2, 0
    return outcome(c, behind_a_loop.resume(c, n, full, later, from_checkpoint=1))


def past_a_checkpoint():
    c, n, full, later = counts(), number(3), number(1), number(0)
    behind_a_loop(c, n, full, later)
    return outcome(c, behind_a_loop.resume(c, n, full, later, from_checkpoint=2))


def refused():
    try:
        return outcome(counts(), first_call.resume(counts(), number(0), from_checkpoint=1))
    except RuntimeError as why:
        return "this kernel has none" in str(why)


def of(kernel, *values):
    c = counts()
    return outcome(c, kernel(c, *values))


def inherited():
    """The results of two kernels that differ only in their yields, or the error of the second."""
    first = of(alike, number(1))
    try:
        return first, of(alike_otherwise, number(1))
    except RuntimeError as why:
        return first, "no yield_check_params" in str(why)


# (case of gk's suite, what to try, the result on the CPU, and on Vulkan if it differs there); 0: finished, None: no
# status, else the checkpoint that yielded
TRIES = [
    ("yield_in_nested_loop", lambda: of(nested, number(2), number(2), number(1)), ([1, 1, 1, 0, 0, 0, 0, 0], 1),
     ([2, 4, 4, 4, 2, 0, 0, 0], 0)),
    ("yield_after_a_loop_at_top_level", lambda: of(behind_a_loop, number(3), number(1), number(0)),
     ([3, 1, 1, 0, 0, 0, 0, 0], 1), ([3, 1, 1, 1, 1, 0, 0, 0], 0)),
    ("yield_in_a_sibling_loop", lambda: of(siblings, number(2), number(3), number(1)), ([2, 1, 0, 0, 0, 0, 0, 0], 1),
     ([2, 3, 3, 0, 0, 0, 0, 0], 0)),
    ("resume_past_a_finished_loop_whose_flag_was_rearmed", rearmed, ([5, 2, 2, 1, 1, 0, 0, 0], 0),
     ([5, 2, 2, 2, 2, 0, 0, 0], 0)),
    ("resume_to_after_a_loop", past_a_checkpoint, ([3, 2, 2, 0, 0, 0, 0, 0], 1), ([3, 2, 2, 2, 2, 0, 0, 0], 0)),
    ("size_read_on_the_device_in_a_two_task_checkpoint", lambda: of(sized, counts(2, 2), number(0)),
     ([1, 1, 0, 0, 0, 0, 0, 0], 1), ([0, 0, 0, 0, 1, 1, 0, 0], 0)),
    ("loop_in_a_checkpoint", lambda: of(loop_alone, number(3), number(0)), ([1, 0, 0, 0, 0, 0, 0, 0], 1)),
    ("loop_in_a_checkpoint, with a task behind it", lambda: of(loop_and_more, number(3), number(0)),
     ([3, 1, 0, 0, 0, 0, 0, 0], 1)),
    ("serial_statement_behind_a_yield", lambda: of(serial, number(1)), ([1, 1, 0, 0, 0, 0, 0, 0], 1)),
    ("list_with_only_unlabelled_gates", lambda: of(unlabelled), ([1, 0, 0, 0, 0, 0, 0, 0], None)),
    ("resume_as_first_call", refused, True),
    ("two_lists_alike_but_for_their_yields", inherited,
     (([1, 0, 0, 0, 0, 0, 0, 0], 1), ([1, 1, 0, 0, 0, 0, 0, 0], 1)), (([1, 0, 0, 0, 0, 0, 0, 0], 1), True)),
    ("first table: label 0, and a bare statement in front", prologue,
     ((([1, 1, 1, 0, 0, 0, 0, 0], 0), True), ([2, 1, 2, 0, 0, 0, 0, 0], 0))),
    ("first table: sections with parts of an array", lambda: of(halves), ([1, 1, 1, 1, 2, 2, 2, 2], None)),
    ("first table: no checkpoint in a function",
     lambda: "only be used inside @qd.kernel" in message(lambda: of(calls_pausing, number(0))), True),
    ("first table: no stream", lambda: "qd_stream is not compatible" in
     message(lambda: halves(counts(), qd_stream=qd.create_stream())), True),
]


def try_all(arch, name, at):
    """@return the number of differences from the expected results"""
    qd.init(arch=arch, log_level="critical")
    if impl.current_cfg().arch != arch:
        print(f"not ok {at} - Quadrants can't use {name}")
        return 1
    failures = 0
    for k, (case, attempt, *wanted) in enumerate(TRIES, at):
        found, expected = attempt(), wanted[-1 if arch == qd.vulkan else 0]
        failures += found != expected
        if found != expected:
            print(f"# {found}, not {expected}")
        print(f"{'ok' if found == expected else 'not ok'} {k} - {case} on {name}")
    return failures


def main():
    why = vulkan_devices.why_none()
    failures = try_all(qd.cpu, "the CPU", 1)
    if why:
        print(f"ok {len(TRIES) + 1} - on Vulkan # SKIP {why}")
    else:
        failures += try_all(qd.vulkan, "Vulkan", len(TRIES) + 1)
    print(f"1..{len(TRIES) + 1 if why else 2 * len(TRIES)}")
    sys.exit(failures > 0)


main()
