"""Which values of a function are computed together.

The rules are those of TVM's graph partitioning: in a first round, large reductions take what
follows element by element, and chains of element-wise computations and broadcasts grow; in a second
one, computations that only move elements join what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlcweb.relax.transform.dataflow_graph import (
    DataflowGraph,
    DominatorNode,
    Vertex,
    post_dominators,
)  # fmt: skip
from mlcweb.relax.transform.op_pattern import OpPatternKind as Kind

MAX_DEPTH = 256
"""The number of operators in a group beyond which nothing is added."""

Allows = Callable[[Kind, bool], bool]
"""Whether a computation of a kind may lie on the way to (or, where True, be) the one that is
fused into."""


@dataclass(slots=True, eq=False)
class Group:
    """A set of vertices that are computed together (a tree of a union-find)."""

    kind: Kind
    has_anchor: bool
    parent: Group | None = None
    size: int = 1

    def root(self) -> Group:
        root = self
        while root.parent is not None:
            root = root.parent
        if self is not root:
            self.parent = root
        return root

    def join(self, into: Group) -> None:
        """Become part of another group."""
        child, root = self.root(), into.root()
        if child is root:
            return
        root.size += child.size
        child.parent = root
        if child.has_anchor:
            root.has_anchor = True
            root.kind = max(root.kind, child.kind)


def partition(
    graph: DataflowGraph, opt_level: int, max_depth: int = MAX_DEPTH
) -> dict[Vertex, Group]:
    """The group of each vertex. At `opt_level` 0 each is a group of its own."""
    groups = {
        vertex: Group(vertex.kind, vertex.kind is Kind.OUT_ELEMWISE_FUSABLE)
        for vertex in graph.vertices
    }
    if opt_level > 0:
        fusing = _Fusing(groups, max_depth)
        tree = post_dominators(graph)
        for round_number in range(2):
            for node in tree:
                fusing.visit(node, round_number)
    return {vertex: group.root() for vertex, group in groups.items()}


class _Fusing:
    def __init__(self, groups: dict[Vertex, Group], max_depth: int) -> None:
        self.groups = groups
        self.max_depth = max_depth

    def visit(self, node: DominatorNode, round_number: int) -> None:
        """Fuse a vertex, and all between, into its post-dominator, where that is allowed."""
        if node.parent is None:
            return
        source, sink = node.vertex, node.parent.vertex
        group = self.groups[source]
        if group.kind is Kind.OPAQUE or group.root() is self.groups[sink].root():
            return
        allows = self.rule(group.kind, node.kind, round_number)
        if allows is None or not self.path_allows(source, sink, allows):
            return
        if self.size_of_union(source, sink) <= self.max_depth:
            self.commit(source, sink)

    def rule(self, kind: Kind, edges: Kind, round_number: int) -> Allows | None:
        if kind is Kind.OUT_ELEMWISE_FUSABLE:
            return _broadcasts if round_number == 0 and edges is Kind.ELEMWISE else None
        if kind <= Kind.BROADCAST:
            return _towards_anchor if edges <= Kind.COMM_REDUCE else None
        if kind is Kind.INJECTIVE:
            return _injective if round_number == 1 else None
        return None

    def path_allows(self, source: Vertex, sink: Vertex, allows: Allows) -> bool:
        """Whether all vertices between two, and the last, are of kinds that are allowed."""
        seen: set[Vertex] = set()
        stack = [vertex for vertex, _ in source.outputs]
        while stack:
            vertex = stack.pop()
            if vertex in seen:
                continue
            seen.add(vertex)
            if not allows(self.groups[vertex].root().kind, vertex is sink):
                return False
            if vertex is not sink:
                stack.extend(consumer for consumer, _ in vertex.outputs)
        return True

    def between(self, source: Vertex, sink: Vertex) -> list[Vertex]:
        """The source and the vertices on the ways from it to the sink."""
        seen = {source: None}
        stack = [source]
        while stack:
            for vertex, _ in stack.pop().outputs:
                if vertex is not sink and vertex not in seen:
                    seen[vertex] = None
                    stack.append(vertex)
        return list(seen)

    def size_of_union(self, source: Vertex, sink: Vertex) -> int:
        roots = {self.groups[vertex].root() for vertex in (*self.between(source, sink), sink)}
        return sum(root.size for root in roots)

    def commit(self, source: Vertex, sink: Vertex) -> None:
        for vertex in self.between(source, sink):
            self.groups[vertex].join(self.groups[sink])


def _broadcasts(kind: Kind, is_sink: bool) -> bool:
    return kind <= Kind.BROADCAST


def _towards_anchor(kind: Kind, is_sink: bool) -> bool:
    return kind <= (Kind.OUT_ELEMWISE_FUSABLE if is_sink else Kind.INJECTIVE)


def _injective(kind: Kind, is_sink: bool) -> bool:
    return kind <= Kind.INJECTIVE
