"""How a list becomes a graph of conditional nodes, decided the slow and plain way: what a stop or target closes is all
written out, and nothing is shared with common/plan/segments.c and gates.c but the rules.

Lists are letters: t task, a always-task, D DO_WHILE, W WHILE, I IF, E ELSE, S SWITCH, C CASE, Y checkpoint with a flag,
K one without, P PARALLEL, X SECTION, and a full stop for END.

  block  a row of items: the list, a body, a case, a section; a checkpoint is a beginning and an end in the block around
  segment  a stretch of a block that is skipped or run as one; closed by a gate (an IF node), or by a guard
  point  one decision; a control kernel walks a chain of them
  flow   the exits of points and kernels from which control can come to a spot; TASK: a task may come last before it
"""
import re
from dataclasses import dataclass, field
from pathlib import Path

import graphs

COSTS = Path(__file__).resolve().parents[2] / "common/base/costs.h"
RESUME, CANCEL, SWITCH, GUARDS = 1, 2, 4, 8
MOST_GUARDED = int(re.search(r"GKI_COST_MOST_GUARDED = (\d+)", COSTS.read_text())[1])  # tasks that read a guard
TASK = None


# ---- the list as a tree ---------------------------------------------------------------------------------------------

@dataclass(eq=False)
class Block:
    around: "Item" = None
    items: list = field(default_factory=list)
    segments: list = field(default_factory=list)


@dataclass(eq=False)
class Item:
    kind: str  # task, loop, branch, parallel, begin, end
    task: int
    letter: str
    block: Block
    checkpoint: int             # around it, or -1
    loop: "Item" = None         # around it
    blocks: list = field(default_factory=list)
    before: int = 0             # number of the segment that it is in, and of the first one behind it
    after: int = 0
    handles: list = field(default_factory=list)  # by block: (handle, value that runs it), or None

    def holds(self, test):
        return test(self) or any(item.holds(test) for block in self.blocks for item in block.items)


KINDS = {"t": "task", "a": "task", "D": "loop", "W": "loop", "I": "branch", "S": "branch", "P": "parallel"}


class Reader:
    def __init__(self, letters):
        self.letters, self.at, self.loops, self.begins = letters, 0, [], []

    def block(self, around, checkpoint, loop):
        block = Block(around)
        self.items(block, checkpoint, loop)
        return block

    def items(self, block, checkpoint, loop):
        while self.at < len(self.letters) and self.letters[self.at] not in ".E":
            task, letter = self.at, self.letters[self.at]
            self.at += 1
            if letter in "YK":
                begin = Item("begin", task, letter, block, task, loop)
                block.items.append(begin)
                self.begins.append(begin)
                self.items(block, task, loop)
                block.items.append(Item("end", task, letter, block, task, loop))
                self.at += 1
                continue
            item = Item(KINDS[letter], task, letter, block, checkpoint, loop)
            block.items.append(item)
            if letter in "DW":
                self.loops.append(item)
                item.blocks = [self.block(item, checkpoint, item)]
            elif letter in "ISP":
                self.cases(item, checkpoint, loop)
            if letter not in "ta":
                self.at += 1
            if letter == "P":
                self.flatten(item, block)

    def cases(self, item, checkpoint, loop):
        if item.letter == "I":
            item.blocks.append(self.block(item, checkpoint, loop))
        while self.letters[self.at] in "ECX":
            by_end = self.letters[self.at] != "E"
            self.at += 1
            item.blocks.append(self.block(item, checkpoint, loop))
            self.at += by_end

    @staticmethod
    def flatten(item, block):
        """Empty sections are none, and a PARALLEL with one section that isn't is no PARALLEL."""
        item.blocks = [section for section in item.blocks if section.items]
        if len(item.blocks) > 1:
            return
        block.items.pop()
        for inner in [inner for section in item.blocks for inner in section.items]:
            inner.block = block
            block.items.append(inner)


# ---- what the lowering makes ----------------------------------------------------------------------------------------

@dataclass(eq=False)
class Handle:
    default: int
    off: int = 0


@dataclass(eq=False)
class Exit:
    """Of a point or a kernel; in a flow together with `left`: the walk comes from a DO_WHILE that just ended."""
    next: "Point" = None


@dataclass(eq=False)
class Point:
    kind: str
    item: Item
    exits: list
    close: list = None  # segments, if it can stop


@dataclass(eq=False)
class Node:
    kind: str
    item: Item = None
    handle: Handle = None
    bodies: list = field(default_factory=list)  # blocks
    exit: Exit = None                           # control kernels: where their chain begins


@dataclass(eq=False)
class Segment:
    entry: list
    nodes: list = field(default_factory=list)
    marks: list = field(default_factory=list)
    always: bool = False
    closable: bool = False
    gate: Handle = None
    guard: int = None

    def has(self, *kinds):
        return any(node.kind in kinds for node in self.nodes)

    def handles(self):
        return [self.gate] if self.gate else [node.handle for node in self.nodes if node.handle]


def full(block):
    return any(segment.nodes for segment in block.segments)


class Lowering:
    def __init__(self, letters, bits):
        self.resume, self.cancel, self.by_switch, self.by_guard = (bool(bits & bit) for bit in
                                                                  (RESUME, CANCEL, SWITCH, GUARDS))
        reader = Reader(letters)
        self.root = reader.block(None, -1, None)
        self.loops, self.begins, self.points, self.guard_count = reader.loops, reader.begins, [], 0
        self.start = Exit()
        self.block(self.root, [(self.start, False)])
        for point in self.points:
            if point.kind == "yield" or (point.kind == "loop end" and self.cancel):
                point.close = self.stopped(point.item)
        self.passed_by = {begin.task: self.passed(begin) for begin in self.begins if self.resume}
        closed = [segment for point in self.points for segment in point.close or []]
        for segment in closed + [segment for segments, _ in self.passed_by.values() for segment in segments]:
            segment.closable = True
        self.gate(self.root)

    # -- points: each comes to lie where the kernels before it walk on to it, or else in a kernel of its own
    def kernel(self, block, segment=None):
        node = Node("control", exit=Exit())
        (segment or block.segments[-1]).nodes.append(node)
        return [(node.exit, False)]

    def point(self, kind, item, exits):
        self.points.append(Point(kind, item, [Exit() for _ in range(exits)]))
        return self.points[-1]

    def place(self, point, flow, block):
        """Says whether the walk of the point is `left`."""
        flow = self.kernel(block) if flow is TASK else flow
        for exit, _ in flow:
            exit.next = point
        return any(left for _, left in flow)

    @staticmethod
    def join(*flows):
        return TASK if TASK in flows else [way for flow in flows for way in flow]

    # -- blocks
    def block(self, block, flow, end=None):
        block.segments.append(Segment(flow))
        for item in block.items:
            flow = getattr(self, item.kind)(block, item, flow)
            item.after = len(block.segments)
            if item.holds(self.can_stop):
                block.segments.append(Segment(flow))
        if end:  # must not re-enable an inner DO_WHILE that is about to decide whether it goes on
            self.place(end, TASK if flow and any(left for _, left in flow) else flow, block)
        for segment in block.segments:
            for begin in segment.marks:
                self.settle(segment, begin, block)
        return flow

    def can_stop(self, item):
        return (item.kind == "end" and item.letter == "Y") or (item.kind == "loop" and self.cancel)

    def enter(self, block, item):
        """An item with a target begins a segment; its point stays before the cut, since targets decide themselves."""
        if self.resume and item.holds(lambda inner: inner.kind == "begin"):
            block.segments.append(Segment(TASK))
        item.before = len(block.segments) - 1

    def settle(self, segment, begin, block):
        """Points that are walked exactly when the segment runs note that a checkpoint without a flag ran."""
        ways = segment.entry
        if ways is TASK:
            own = [node.exit for node in segment.nodes if node.kind == "control"]
            ways = [(own[0], False)] if own else self.kernel(block, segment)
        for exit, _ in ways:
            mark = self.point("mark", begin, 1)
            mark.exits[0].next, exit.next = exit.next, mark

    # -- items: each takes the flow before it and gives the flow behind it
    def task(self, block, item, _):
        always = item.letter == "a"
        if always:
            block.segments.append(Segment(TASK, always=True))
        block.segments[-1].nodes.append(Node("task", item))
        if always:
            block.segments.append(Segment(TASK))
        return TASK

    def begin(self, block, item, flow):
        if self.resume:  # a launch may start here, and then nothing before was walked
            flow = TASK
            block.segments.append(Segment(flow))
        item.before = len(block.segments) - 1
        if item.letter == "Y":
            return flow
        if flow is TASK:
            block.segments[-1].marks.append(item)
            return flow
        mark = self.point("mark", item, 1)
        return [(mark.exits[0], self.place(mark, flow, block))]

    def end(self, block, item, flow):
        if item.letter == "K":
            return flow
        point = self.point("yield", item, 1)
        return [(point.exits[0], self.place(point, flow, block))]

    def branch(self, block, item, flow):
        count = len(item.blocks)
        point = self.point("branch", item, count + (item.letter == "S" or count == 1))
        left = self.place(point, flow, block)
        self.enter(block, item)
        flow = self.join(*[self.block(case, [(exit, left)]) for case, exit in zip(item.blocks, point.exits)],
                         [(exit, left) for exit in point.exits[count:]])
        cases = [case for case in item.blocks if full(case)]
        nodes = block.segments[-1].nodes
        if self.by_switch and len(cases) > 1:
            handle = Handle(len(cases), len(cases))
            item.handles = [(handle, cases.index(case)) if case in cases else None for case in item.blocks]
            nodes.append(Node("switch", item, handle, cases))
        else:
            item.handles = [(Handle(0), 1) if case in cases else None for case in item.blocks]
            nodes += [Node("if", item, own[0], [case]) for own, case in zip(item.handles, item.blocks) if own]
        return flow

    def decides_first(self, block):
        """Whether a decision is the first thing that happens in a loop's body: the loop end, if nothing else does."""
        for item in block.items:
            if item.kind == "begin" and self.resume:
                return False
            if item.kind == "begin" or (item.kind == "end" and item.letter == "K"):
                continue
            if item.kind == "loop":
                return item.letter == "W" or self.decides_first(item.blocks[0])
            return item.kind in ("end", "branch")
        return True

    def loop(self, block, item, flow):
        end, body, out = self.point("loop end", item, 2), item.blocks[0], []
        if item.letter == "W":
            head = self.point("head", item, 2)
            left = self.place(head, flow, block)
            flow, out = [(head.exits[0], left)], [(head.exits[1], left)]
        elif flow is TASK and self.decides_first(body):  # made once before the node, and then by each loop end
            flow = self.kernel(block)
        self.enter(block, item)
        self.block(body, self.join(flow, [(end.exits[0], False)]), end)
        item.handles = [None]
        if full(body):
            item.handles = [(Handle(int(item.letter == "D")), 1)]
            block.segments[-1].nodes.append(Node("while", item, item.handles[0][0], [body]))
        return self.join(out, [(end.exits[1], item.letter == "D")])

    def parallel(self, block, item, flow):
        for section in item.blocks:
            self.block(section, TASK)
        sections = [section for section in item.blocks if full(section)]
        if not sections:
            return flow
        block.segments[-1].nodes.append(Node("parallel", item, bodies=sections))
        return TASK

    # -- what stops and targets close
    @staticmethod
    def levels(item):
        """The item, and outwards each one around."""
        while item:
            yield item
            item = item.block.around

    def stopped(self, item):
        """The segments that a stop at the end of an item closes: the later ones of its block and of those around."""
        return [segment for level in self.levels(item) for segment in level.block.segments[level.after:]
                if not segment.always]

    def passed(self, begin):
        """The segments that a launch to a checkpoint closes, and those of them that lie in a loop."""
        segments, again = [], []
        for level in self.levels(begin):
            passed = [segment for segment in level.block.segments[:level.before] if not segment.always]
            segments += passed
            again += passed if level.loop else []
        return segments, again

    def is_guarded(self, segment):
        tasks = sum(node.kind == "task" for node in segment.nodes)
        return self.by_guard and not segment.has("parallel") and tasks <= MOST_GUARDED

    def gate(self, block):
        for segment in block.segments:
            if segment.closable and segment.has("task", "parallel") and not self.is_guarded(segment):
                segment.gate = Handle(1)
            elif segment.closable and segment.has("control", "task"):
                segment.guard, self.guard_count = self.guard_count, self.guard_count + 1
            for node in segment.nodes:
                for body in node.bodies:
                    self.gate(body)

    # -- as data
    def loops_around(self, item):
        return [level for level in self.levels(item) if level.kind == "loop"]

    def stop(self, point):
        loops = self.loops_around(point.item)
        sets = {handle: handle.off for segment in point.close for handle in segment.handles()}
        sets.update({loop.handles[0][0]: 0 for loop in loops if loop.handles[0]})
        guards = {segment.guard for segment in point.close if segment.guard is not None}
        return graphs.Stop(point.item.checkpoint, sets, guards, {loop.task for loop in loops})

    def target(self, begin):
        segments, again = self.passed_by[begin.task]
        sets = {handle: handle.off for segment in segments for handle in segment.handles()}
        around = list(self.levels(begin))
        for inner, outer in zip(around, around[1:]):
            case = outer.handles[outer.blocks.index(inner.block)]
            sets.update([case] if case else [])
        return graphs.Target(sets, {segment.guard for segment in segments if segment.guard is not None},
                             {segment.gate for segment in again if segment.gate},
                             {segment.guard for segment in again if segment.guard is not None},
                             {loop.task for loop in self.loops_around(begin)})

    def sets(self, point):
        """By exit, what is set on the way to it."""
        item = point.item
        if point.kind == "branch":
            ours = [case for case in item.handles if case]
            if len({handle for handle, _ in ours}) == 1 and len(ours) > 1:
                handle = ours[0][0]
                return [dict([case or (handle, handle.off)]) for case in
                        item.handles + [None] * (len(point.exits) - len(item.handles))]
            return [{case[0]: int(number == taken) for number, case in enumerate(item.handles) if case}
                    for taken in range(len(point.exits))]
        if point.kind not in ("head", "loop end"):
            return [{}]
        own = [item.handles[0][0]] if item.handles[0] else []
        inner = [loop.handles[0][0] for loop in self.loops if point.kind == "loop end" and loop.loop is item and
                loop.letter == "D" and loop.handles[0]]
        return [dict.fromkeys(inner, 1) | dict.fromkeys(own, value) for value in (1, 0)]

    def nodes(self, block):
        made = []
        for segment in block.segments:
            nodes = []
            for node in segment.nodes:
                guard = segment.guard if node.kind in ("task", "control") else None
                nodes.append(graphs.Node(node.kind, node.item.task if node.item else -1, node.handle, guard,
                                         node.exit.next if node.exit else None, list(map(self.nodes, node.bodies))))
            made += [graphs.Node("segment", handle=segment.gate, bodies=[nodes])] if segment.gate else nodes
        return made

    def graph(self):
        nodes = self.nodes(self.root)
        if self.start.next or self.passed_by:
            nodes.insert(0, graphs.Node("prologue", point=self.start.next))
        if self.loops or self.begins:
            nodes.append(graphs.Node("epilogue"))
        made = graphs.Graph(nodes, {}, {}, {begin.task: self.target(begin) for begin in self.begins if self.resume})
        made.defaults = {node.handle: node.handle.default for node in made.all_nodes() if node.handle}
        for point in self.points:
            made.points[point] = graphs.Point(point.kind, point.item.task,
                                              list(zip([exit.next for exit in point.exits], self.sets(point))),
                                              self.stop(point) if point.close is not None else None)
        return made


def lower(letters, bits):
    return Lowering(letters, bits).graph()
