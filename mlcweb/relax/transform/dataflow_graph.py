"""The values of a function as a graph from producers to consumers, and its post-dominators.

A vertex post-dominates another where every path from that one to an end of the graph goes through
it: only into such a vertex can a value be fused without being computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.transform.op_pattern import OpPatternKind as Kind
from mlcweb.relax.transform.registration import called_tir


@dataclass(slots=True, eq=False)
class Vertex:
    """A value: a parameter, a constant or what a binding binds."""

    value: E.Expr
    kind: Kind = Kind.OPAQUE
    outputs: list[tuple[Vertex, Kind]] = field(default_factory=list)
    """Who reads the value, and the kind of computation that does."""
    is_result: bool = False
    """Whether something outside of the graph reads it."""
    index: int = -1
    """The place in the order of the program."""


@dataclass(slots=True, eq=False)
class DominatorNode:
    """A vertex in the tree of post-dominators. `kind` is the largest of the edges up to `parent`;
    a vertex without one has a result that is read at different ends."""

    vertex: Vertex
    parent: DominatorNode | None
    depth: int
    kind: Kind


class DataflowGraph:
    """The graph of the dataflow blocks of a function."""

    def __init__(self, mod: IRModule, func: E.Function) -> None:
        self.vertices: list[Vertex] = []
        self.of: dict[E.Expr, Vertex] = {}
        self._mod = mod
        for param in func.params:
            self._finish(self._vertex(param))
        for block in func.body.blocks:
            if isinstance(block, E.DataflowBlock):
                for binding in block.bindings:
                    self._binding(binding)

    def _vertex(self, value: E.Expr) -> Vertex:
        if value not in self.of:
            self.of[value] = Vertex(value)
        return self.of[value]

    def _finish(self, vertex: Vertex) -> Vertex:
        vertex.index = len(self.vertices)
        self.vertices.append(vertex)
        return vertex

    def _binding(self, binding: E.Binding) -> None:
        vertex = self._vertex(binding.var)
        vertex.is_result = not isinstance(binding.var, E.DataflowVar)
        vertex.kind, inputs = self._kind_and_inputs(binding)
        for value in inputs:
            for leaf in _leaves(value):
                source = self.of.get(leaf)
                if source is None:
                    source = self._finish(self._vertex(leaf))
                source.outputs.append((vertex, vertex.kind))
        self._finish(vertex)

    def _kind_and_inputs(self, binding: E.Binding) -> tuple[Kind, Sequence[E.RelaxExpr]]:
        value = binding.value
        if isinstance(binding, E.VarBinding):
            if isinstance(value, E.Call):
                return self._call(value)
            if isinstance(value, E.TupleGetItem):
                return Kind.INJECTIVE, [value.tuple_value]
        return Kind.OPAQUE, [value]

    def _call(self, call: E.Call) -> tuple[Kind, Sequence[E.RelaxExpr]]:
        func = called_tir(self._mod, call)
        if func is not None:
            return Kind(int(func.attrs.get("op_pattern", Kind.OPAQUE))), call.args[1:]
        return Kind.OPAQUE, [*call.args, *((call.op,) if isinstance(call.op, E.Var) else ())]


def _leaves(value: E.RelaxExpr) -> Iterator[E.Expr]:
    """The variables and constants in an argument; other values are no part of the graph."""
    if isinstance(value, E.Tuple):
        for item in value.fields:
            yield from _leaves(item)
    elif isinstance(value, (E.Var, E.Constant)):
        yield value


def post_dominators(graph: DataflowGraph) -> list[DominatorNode]:
    """The node of each vertex in the tree of post-dominators.

    Consumers come after producers, so that one sweep from the end finds the nearest common
    ancestor of all consumers (K. Cooper, T. Harvey, K. Kennedy: "A Simple, Fast Dominance
    Algorithm", for a graph without cycles).
    """
    nodes: dict[Vertex, DominatorNode] = {}
    for vertex in reversed(graph.vertices):
        parent, kind = None, Kind.OPAQUE if vertex.is_result else Kind.ELEMWISE
        if not vertex.is_result and vertex.outputs:
            first, kind = vertex.outputs[0]
            parent = nodes[first]
            for consumer, edge in vertex.outputs[1:]:
                parent, kind = _nearest_common(parent, nodes[consumer], max(kind, edge))
        depth = 1 if parent is None else parent.depth + 1
        nodes[vertex] = DominatorNode(vertex, parent, depth, kind)
    return [nodes[vertex] for vertex in graph.vertices]


def _nearest_common(
    a: DominatorNode | None, b: DominatorNode | None, kind: Kind
) -> tuple[DominatorNode | None, Kind]:
    while a is not b:
        if a is None or b is None:
            return None, kind
        deeper_a, deeper_b = a.depth >= b.depth, b.depth >= a.depth
        if deeper_a:
            kind = max(kind, a.kind)
            a = a.parent
        if deeper_b:
            kind = max(kind, b.kind)
            b = b.parent
    return a, kind
