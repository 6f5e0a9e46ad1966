"""The stores of a scheduled program, each with the loops around it and how it walks through memory.

Nothing is lowered for this: an index is evaluated where all loops are at their start, and where one
of them has made one step or all of its steps. That says how far each loop moves each access, which
is exact for affine indices and near enough for those of fused loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import prim_funcs
from mlcweb.tir.operators import DIVISIONS, OPERATORS, Family, keys


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a store.

    Attributes:
        unroll_limit: the most statements that a pragma lets unrolled code have; 0 without one.
    """

    var: E.Var
    extent: int
    kind: S.ForKind
    unroll_limit: int


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of a buffer, with what each loop does to it, from the outermost.

    Attributes:
        strides: elements that one step of a loop moves the access by.
        spans: by how much a whole loop moves each index.
    """

    buffer: Buffer
    writes: bool
    strides: tuple[int, ...]
    spans: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    item_bytes: int

    def box(self, depth: int) -> list[int]:
        """How many different values each index takes in the loops from a depth on."""
        return [
            min(extent, 1 + sum(span[dim] for span in self.spans[depth:]))
            for dim, extent in enumerate(self.shape)
        ]


@dataclass(frozen=True, slots=True)
class Nest:
    """A store with its loops, from the outermost, its accesses, and what it computes each time."""

    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    operations: Mapping[str, int]
    is_init: bool

    @property
    def iterations(self) -> int:
        return prod(loop.extent for loop in self.loops)


@dataclass(slots=True)
class _Around:
    """What is around a statement."""

    loops: tuple[Loop, ...] = ()
    bindings: tuple[tuple[E.Var, E.PrimExpr], ...] = ()
    unroll_limit: int = 0
    is_init: bool = False
    nests: list[Nest] = field(default_factory=list)


def nests_of(module: IRModule) -> list[Nest]:
    """The stores of all TensorIR functions of a module, in order."""
    nests: list[Nest] = []
    for func in prim_funcs(module).values():
        _collect(func.body, _Around(nests=nests))
    return nests


def _collect(stmt: Node | None, around: _Around) -> None:
    rule = _STATEMENTS.get(type(stmt))
    if rule is not None:
        rule(stmt, around)


def _loop(stmt: S.For, around: _Around) -> None:
    limit = _unroll_limit(stmt.annotations, around)
    extent = int(constant_value(stmt.extent) or 1)
    loops = (*around.loops, Loop(stmt.loop_var, extent, stmt.kind, limit))
    _collect(stmt.body, _Around(loops, around.bindings, limit, around.is_init, around.nests))


def _unroll_limit(annotations: Mapping[str, Any], around: _Around) -> int:
    annotated = annotations.get("pragma_auto_unroll_max_step")
    return around.unroll_limit if annotated is None else int(constant_value(annotated) or 0)


def _block(stmt: S.BlockRealize, around: _Around) -> None:
    block = stmt.block
    pairs = zip((iterator.var for iterator in block.iter_vars), stmt.iter_values, strict=True)
    limit = _unroll_limit(block.annotations, around)
    bindings = (*around.bindings, *pairs)
    if block.init is not None:
        _collect(block.init, _Around(around.loops, bindings, limit, True, around.nests))
    _collect(block.body, _Around(around.loops, bindings, limit, around.is_init, around.nests))


def _sequence(stmt: S.SeqStmt, around: _Around) -> None:
    for part in stmt.seq:
        _collect(part, around)


def _branch(stmt: S.IfThenElse, around: _Around) -> None:
    _collect(stmt.then_case, around)
    _collect(stmt.else_case, around)


def _store(stmt: S.BufferStore, around: _Around) -> None:
    points = _points(around)
    operations: dict[str, int] = dict.fromkeys(OPERATIONS, 0)
    accesses = [_access(stmt.buffer, stmt.indices, True, points, around.loops)]
    pending: list[Node] = [stmt.value]
    while pending:
        node = pending.pop()
        if isinstance(node, E.BufferLoad):
            # Indices are no work: compiled code moves pointers instead.
            accesses.append(_access(node.buffer, node.indices, False, points, around.loops))
            continue
        kind = _KIND.get(type(node))
        if kind is not None:
            operations[kind] += 1
        pending.extend(children(node))
    around.nests.append(Nest(around.loops, tuple(accesses), operations, around.is_init))


_STATEMENTS: dict[Any, Callable[[Any, _Around], None]] = {
    S.For: _loop,
    S.BlockRealize: _block,
    S.SeqStmt: _sequence,
    S.IfThenElse: _branch,
    S.BufferStore: _store,
    **dict.fromkeys(
        (S.LetStmt, S.AttrStmt, S.While, S.AllocBuffer, S.DeclBuffer),
        lambda stmt, around: _collect(stmt.body, around),
    ),
}

OPERATIONS = ("add", "multiply", "divide", "compare", "call", "cast")

_KIND: dict[Any, str] = {
    **dict.fromkeys((E.Add, E.Sub), "add"),
    E.Mul: "multiply",
    **dict.fromkeys(DIVISIONS, "divide"),
    **dict.fromkeys((E.Min, E.Max, E.Select, *keys(Family.COMPARISON)), "compare"),
    E.Call: "call",
    E.Cast: "cast",
}

_Values = dict[E.Var, int]


def _points(around: _Around) -> list[_Values]:
    """The values of all variables where every loop is at its start; then, for each loop, where it
    has made one step, and where it is at its end."""
    start = {loop.var: 0 for loop in around.loops}
    points = [start]
    for loop in around.loops:
        for position in (min(1, loop.extent - 1), loop.extent - 1):
            points.append({**start, loop.var: position})
    for values in points:
        for var, value in around.bindings:
            values[var] = _value(value, values)
    return points


def _access(
    buffer: Buffer,
    indices: tuple[E.PrimExpr, ...],
    writes: bool,
    points: list[_Values],
    loops: tuple[Loop, ...],
) -> Access:
    places = [[_value(index, values) for index in indices] for values in points]
    shape = tuple(int(constant_value(extent) or 1) for extent in buffer.shape)
    weights = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    start = places[0]
    strides, spans = [], []
    for number in range(len(loops)):
        step, end = places[1 + 2 * number], places[2 + 2 * number]
        moved = zip(step, start, weights, strict=False)
        strides.append(sum((a - b) * weight for a, b, weight in moved))
        spans.append(tuple(abs(a - b) for a, b in zip(end, start, strict=True)))
    item_bytes = max(1, dtypes.bits(buffer.dtype) // 8)
    return Access(buffer, writes, tuple(strides), tuple(spans), shape, item_bytes)


def _value(expr: Any, values: _Values) -> int:
    """An index at a point; what is not arithmetic counts as 0."""
    kind = type(expr)
    if kind is E.Var:
        return values.get(expr, 0)
    if kind is E.IntImm:
        return expr.value
    if kind not in _ARITHMETIC:
        return _value(expr.base, values) if kind is E.Ramp else 0
    a, b = _value(expr.a, values), _value(expr.b, values)
    if kind in DIVISIONS and not b:
        return 0
    return _ARITHMETIC[kind](a, b)


_ARITHMETIC: dict[Any, Callable[[int, int], int]] = {
    key: fold
    for key in keys(Family.ARITHMETIC, arity=2)
    if (fold := OPERATORS[key].fold) is not None
}
