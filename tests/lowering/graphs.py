"""A lowered list as plain data, from either lowering, and as text: two graphs that do the same have the same text.

Handles, guards and points have keys of any kind; in the text they are numbered in the order in which they appear."""
from dataclasses import dataclass, field


@dataclass
class Node:
    """kind: task, control, segment, if, switch, while, parallel, prologue, epilogue. task: its place in the list."""
    kind: str
    task: int = -1
    handle: object = None
    guard: object = None      # of tasks and control kernels
    point: object = None      # of control kernels and the prologue: the first of the chain
    bodies: list = field(default_factory=list)  # lists of nodes


@dataclass
class Stop:
    """What a stop does: the checkpoint that it notes (or -1), values of handles, guards to close, loops to touch."""
    checkpoint: int
    sets: dict
    guards: set
    loops: set


@dataclass
class Point:
    """kind: yield, loop end, head, branch, mark. exits: pairs of the next point (or None) and the handles that are set
    on the way there, with their values."""
    kind: str
    task: int
    exits: list
    stop: Stop = None


@dataclass
class Target:
    """What a launch to a checkpoint sets and closes, which gates and guards the first loop end opens again, and the
    loops around it."""
    sets: dict
    guards: set
    open_gates: set
    open_guards: set
    loops: set


@dataclass
class Graph:
    nodes: list
    defaults: dict  # of handles
    points: dict
    targets: dict   # by the task of the checkpoint

    def all_nodes(self, nodes=None):
        """In order, each before what is in it."""
        for node in self.nodes if nodes is None else nodes:
            yield node
            for body in node.bodies:
                yield from self.all_nodes(body)

    def counts(self):
        """Control kernels and conditional nodes, as gk counts them."""
        nodes = list(self.all_nodes())
        return [sum(node.kind == "control" for node in nodes), sum(node.handle is not None for node in nodes)]


class Writer:
    """Names what it meets, in order."""

    def __init__(self, graph):
        self.graph, self.lines = graph, []
        self.points, self.guards, self.handles = {}, {}, {}
        for node in graph.all_nodes():
            if node.handle is not None:
                self.handles[node.handle] = f"h{len(self.handles)}"
            if node.guard is not None:
                self.guards.setdefault(node.guard, f"w{len(self.guards)}")

    def chain(self, point):
        """The way on: marks of checkpoints, which have no order among themselves, then a point that decides."""
        marks = []
        while point is not None and self.graph.points[point].kind == "mark":
            marks.append(self.graph.points[point].task)
            point = self.graph.points[point].exits[0][0]
        words = [f"mark {task}" for task in sorted(marks)]
        if point is not None:
            words.append(self.points.setdefault(point, f"p{len(self.points)}"))
        return " ".join(words) or "-"

    def values(self, sets):
        return " ".join(sorted(f"{self.handles[handle]}={value}" for handle, value in sets.items())) or "-"

    def closed(self, guards):
        return " ".join(sorted(self.guards[guard] for guard in guards)) or "-"

    def nodes(self, nodes, depth):
        for node in nodes:
            words = [node.kind] + ([str(node.task)] if node.task >= 0 else [])
            if node.handle is not None:
                words.append(f"{self.handles[node.handle]}={self.graph.defaults[node.handle]}")
            if node.guard is not None:
                words.append(f"unless {self.guards[node.guard]}")
            if node.kind in ("control", "prologue"):
                words.append(f"-> {self.chain(node.point)}")
            self.lines.append("  " * depth + " ".join(words))
            for body in node.bodies:
                if len(node.bodies) > 1:
                    self.lines.append("  " * (depth + 1) + "body")
                self.nodes(body, depth + 1 + (len(node.bodies) > 1))

    def all_points(self):
        done = 0
        while done < len(self.points):  # each may name further ones
            key, name = list(self.points.items())[done]
            point, done = self.graph.points[key], done + 1
            exits = [f"{self.values(sets)} -> {self.chain(to)}" for to, sets in point.exits]
            self.lines.append(f"{name} {point.kind} {point.task}: {'; '.join(exits)}")
            if point.stop:
                stop = point.stop
                self.lines.append(f"  stop: notes {stop.checkpoint}, sets {self.values(stop.sets)}, closes "
                                  f"{self.closed(stop.guards)}, touches {sorted(stop.loops)}")

    def target(self, task, target):
        """Without what is so anyway: handles at their defaults."""
        sets = {handle: value for handle, value in target.sets.items() if value != self.graph.defaults[handle]}
        again = sorted([self.handles[gate] for gate in target.open_gates] +
                       [self.guards[k] for k in target.open_guards])
        self.lines.append(f"to {task}: sets {self.values(sets)}, closes {self.closed(target.guards)}, opens again "
                          f"{' '.join(again) or '-'}, in loops {sorted(target.loops)}")

    def write(self):
        self.nodes(self.graph.nodes, 0)
        self.all_points()
        for task in sorted(self.graph.targets):
            self.target(task, self.graph.targets[task])
        return self.lines


def written(graph):
    return Writer(graph).write()
