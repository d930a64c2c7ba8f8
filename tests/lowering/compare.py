#!/usr/bin/env python3
"""gk_gates_make against model.py: each short list, and random ones, in all variants. Prints TAP.

  tests/lowering/compare.py [BITS LETTERS]    one list, both graphs in writing

The two must say the same, handle for handle, but for what makes no difference:
  - gk_gates_make may close, for a target, IF, SWITCH and WHILE nodes that are closed by default: its lists are ranges;
  - marks of checkpoints in a row have no order, and where it has one the model has one per way there.
"""
import functools
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(os.path.abspath(__file__)).parent.parent))
import graphs  # noqa: E402
import model  # noqa: E402
import tap  # noqa: E402

PROGRAM = "build/tests/lowering/print"
SCALE = int(os.environ.get("GK_TEST_SCALE", "1"))
VARIANTS = range(16)
NODES = "task control segment if switch while parallel branch prologue epilogue".split()
POINTS = ["yield", "loop end", "head", "branch", "mark"]
GATE, _, GUARD = range(3)  # kinds of close items


# ---- what the program printed ---------------------------------------------------------------------------------------

class Reader:
    """Follows gk's tables as include/gk_gates.h says what they mean."""

    def __init__(self, raw, bits):
        self.raw, self.bits = raw, bits
        self.sound = [handle[2] for handle in raw["handles"]]

    def nodes(self, begin, end):
        made = []
        while begin < end:
            kind, after, task, handle, point, guard = self.raw["nodes"][begin]
            node = graphs.Node(NODES[kind], task, *(None if k < 0 else k for k in (handle, guard, point)))
            if handle >= 0 and self.raw["handles"][handle][2] != begin:
                raise ValueError(f"handle {handle} isn't that of node {begin}")
            inner = self.nodes(begin + 1, after)
            if node.kind in ("switch", "parallel"):
                node.bodies = [branch.bodies[0] for branch in inner]
            elif after > begin + 1:
                node.bodies = [inner]
            if node.kind == "if":
                node.task = self.owner(handle)
            made.append(node)
            begin = after
        return made

    def owner(self, handle):
        """The IF or SWITCH that an IF node belongs to; gk names the case."""
        for kind, task, _, first, count, *_ in self.raw["points"]:
            if POINTS[kind] == "branch" and handle in [exit[1] for exit in self.raw["exits"][first:first + count]]:
                return task
        raise ValueError(f"no point sets handle {handle}")

    def close(self, begin, end, sets, guards):
        for kind, at, value in self.raw["closes"][begin:end]:
            if kind == GUARD:
                guards.add(at)
            else:
                sets[at] = value

    def blocks(self, block, place):
        """Outwards: the block, and the place in it."""
        while block >= 0:
            row = self.raw["blocks"][block]
            yield row, place
            block, place = row[2], row[3:5]

    def stop(self, block, close, checkpoint):
        sets, guards, loops = {}, set(), set()
        for (_, end, _, _, _, loop, handle, *_), place in self.blocks(block, (0, close)):
            self.close(place[1], end, sets, guards)
            if loop >= 0:
                loops.add(loop)
                sets.update({handle: 0} if handle >= 0 else {})
        return graphs.Stop(checkpoint, sets, guards, loops)

    def target(self, block, close):
        sets, guards, gates, again, loops = {}, set(), {}, set(), set()
        for (begin, _, _, _, _, loop, handle, value, in_loop), place in self.blocks(block, (close, 0)):
            self.close(begin, place[0], sets, guards)
            if handle >= 0:
                sets[handle] = value
            if in_loop:
                self.close(begin, place[0], gates, again)
            if loop >= 0:
                loops.add(loop)
        kinds = {at: kind for kind, at, _ in self.raw["closes"] if kind != GUARD}
        return graphs.Target(sets, guards, {at for at in gates if kinds[at] == GATE}, again, loops)

    def point(self, row):
        kind, task, checkpoint, first, count, handle, first_loop, loops, block, close = row
        exits = self.raw["exits"][first:first + count]
        kind, sets = POINTS[kind], [{} for _ in exits]
        if kind in ("head", "loop end"):
            sets = [{loop: 1 for loop in self.raw["reenables"][first_loop:first_loop + loops]} for _ in exits]
            for number, values in enumerate(sets):
                values.update({handle: 1 - number} if handle >= 0 else {})
        elif kind == "branch" and handle >= 0:
            sets = [{handle: exit[2]} for exit in exits]
        elif kind == "branch":
            sets = [{exit[1]: int(number == taken) for number, exit in enumerate(exits) if exit[1] >= 0}
                    for taken in range(count)]
        stops = kind == "yield" or (kind == "loop end" and self.bits & model.CANCEL)
        nexts = [None if exit[0] < 0 else exit[0] for exit in exits]
        return graphs.Point(kind, task, list(zip(nexts, sets)),
                            self.stop(block, close, checkpoint) if stops else None)

    def graph(self):
        raw = self.raw
        return graphs.Graph(self.nodes(0, len(raw["nodes"])), {k: row[0] for k, row in enumerate(raw["handles"])},
                            {k: self.point(row) for k, row in enumerate(raw["points"])},
                            {task: self.target(block, close) for task, block, close in raw["targets"]})


def printed(lines):
    """gk's graphs of many lists, each "BITS LETTERS"."""
    done = subprocess.run([PROGRAM], input="".join(f"{line}\n" for line in lines), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=3000)
    answers = done.stdout.splitlines()
    if done.returncode or len(answers) != len(lines):
        raise ChildProcessError(f"{PROGRAM}: exit code {done.returncode}, {len(answers)} of {len(lines)} lists\n"
                                f"{done.stderr}")
    return answers


# ---- lists ----------------------------------------------------------------------------------------------------------

@functools.cache
def shorter(size, checkpoints):
    """Rows of items, `size` in all; empty sections and PARALLELs of one section are left to chance."""
    return [one + rest for first in range(1, size + 1) for one in item(first, checkpoints)
            for rest in shorter(size - first, checkpoints)] if size else [""]


def item(size, checkpoints):
    """Single items in which there are `size` in all."""
    if size == 1:
        yield "t"
        yield "S."
    for inside in shorter(size - 1, checkpoints):
        yield from (f"D{inside}.", f"W{inside}.", f"I{inside}.", f"SC{inside}..")
    for inside in shorter(size - 1, False) if checkpoints else []:
        yield from (f"Y{inside}.", f"K{inside}.")
    for first in range(size):
        for one, other in itertools.product(shorter(first, checkpoints), shorter(size - 1 - first, checkpoints)):
            yield from (f"I{one}E{other}.", f"SC{one}.C{other}..")
        if 0 < first < size - 1:
            for one, other in itertools.product(shorter(first, False), shorter(size - 1 - first, False)):
                yield f"PX{one}.X{other}.."


def some(chance, depth, checkpoints, top=False):
    """A row of a few items; at the top with always-tasks."""
    row = ""
    for _ in range(chance.randrange(1 if top else 0, 6 if top else 4)):
        kind = chance.choice("ttDDWISPPYYKa" if depth < 6 else "t")
        if kind == "a" and not top:
            kind = "t"
        if kind in "YK" and not checkpoints:
            kind = "t"
        if kind in "ta":
            row += kind
            continue
        inner = (some(chance, depth + 1, checkpoints and kind not in "PYK") for _ in itertools.count())
        if kind in "SP":
            row += kind + "".join(f"{'CX'[kind == 'P']}{next(inner)}." for _ in range(chance.randrange(4))) + "."
        else:
            row += kind + next(inner) + (f"E{next(inner)}" if kind == "I" and chance.random() < 0.5 else "") + "."
    return row


# ---- both sides -----------------------------------------------------------------------------------------------------

def difference(bits, letters, answer):
    raw = json.loads(answer)
    ours, theirs = Reader(raw, bits).graph(), model.lower(letters, bits)
    if raw["counts"] != ours.counts():
        return f"gk counts {raw['counts']} control kernels and conditional nodes, where there are {ours.counts()}"
    gk, wanted = graphs.written(ours), graphs.written(theirs)
    if gk == wanted:
        return None
    return "\n".join(["gk_gates_make says:", *gk, "the model says:", *wanted])


def agree(name, lines):
    """A case: of all those lists, none is lowered otherwise; the shortest that is, is shown."""
    try:
        answers = printed(lines)
    except ChildProcessError as why:
        tap.case(name, why)
        return
    differ = []
    for line, answer in zip(lines, answers):
        bits, letters = line.split(" ", 1)
        problem = difference(int(bits), letters, answer)
        if problem:
            differ.append((len(line), line, problem))
    tap.case(f"{name}: {len(lines)} graphs", f"{len(differ)} differ, the shortest is\n  tests/lowering/compare.py "
             f"{min(differ)[1]}\n{min(differ)[2]}" if differ else None)


def main():
    if len(sys.argv) > 1:
        bits, letters = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
        print(difference(bits, letters, printed([f"{bits} {letters}"])[0]) or
              "\n".join(graphs.written(model.lower(letters, bits))))
        return
    problem = tap.run("ninja", PROGRAM)
    if not tap.case("builds", problem):
        tap.finish()
    chance = random.Random(int(os.environ.get("GK_TEST_SEED", "5")))
    for size in range(3):
        agree(f"lists of {size} items", [f"{bits} {one}" for one in shorter(size, True) for bits in VARIANTS])
    three = shorter(3, True)
    agree("lists of 3 items, each in some variants",
          [f"{bits} {one}" for one in three for bits in chance.sample(VARIANTS, min(16, SCALE))])
    lists = [some(chance, 0, True, True) for _ in range(1500 * SCALE)]
    agree("random lists, each in two variants",
          [f"{bits} {one}" for one in lists if len(one) < 400 for bits in chance.sample(VARIANTS, 2)])
    tap.finish()


main()
