"""The pass `tvm.tir.transform.StorageRewrite`: buffers share memory that are not needed at once.

What a buffer needs lasts from the first to the last statement beside its allocation that touches
it. Memory is allocated where its threads begin, or at the start of the function, and a buffer that
is done with gives its memory to one that comes later, or, element by element, to one that is
computed from it. Memory of special kinds ("local.L0A") is one allocation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from mlcweb.arith import Analyzer, same_expressions
from mlcweb.arith.iter_map import BIJECTIVE, is_iter_map
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Visitor, children, find_nodes, on, walk
from mlcweb.lower.optimize.accesses import pointers_passed_on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, maximum, multiply
from mlcweb.tir.buffer import Buffer, Range, constant_shape, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import BufferMutator, reads_memory, uses_any, variables_in

_MATCH_RANGE = 16
"""How many times larger or smaller the memory may be that a buffer gets."""

_REGISTER_BITS = 32
"""Buffers of up to so many bits are registers, and share nothing."""


def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """Let buffers share memory as TVM's pass does; those that nothing uses are dropped.

    Where TVM goes wrong, buffers have memory of their own: if pointers are kept, sizes depend
    on loops, or elements are computed more than once from what they would replace.

    Raises:
        TVMError: there are blocks.
    """
    for block in find_nodes(func.body, S.Block):
        raise TVMError("StorageRewrite is for loops: run LowerOpaqueBlock first", block.span)
    uses = Uses(_kept(func))
    uses.visit(func.body)
    plan = _Plan(uses)
    return func.with_body(_Sharing(plan, uses).attached(None, func.body))


def _kept(func: PrimFunc) -> set[E.Var]:
    """The data of buffers that have memory of their own."""
    kept = pointers_passed_on(func.body)
    defined = {var for node in walk(func.body) for var in S.defined_variables(node)}
    return {
        node.buffer.data
        for node in find_nodes(func.body, S.AllocBuffer)
        if node.buffer.data in kept
        or any(
            reads_memory(extent) or not defined.isdisjoint(variables_in(extent))
            for extent in node.buffer.shape
        )
        or node.buffer.strides
    }


@dataclass(eq=False)
class Point:
    """A statement, or the begin or end of one with a scope, and the buffers that it touches."""

    statement: S.Stmt
    touched: dict[E.Var, None]
    begins: bool
    ends: bool


class Uses(Visitor):
    """The points of a function in order. `levels` are the depths of the scopes in which buffers
    are allocated, but for those that are `kept` as they are."""

    def __init__(self, kept: Collection[E.Var]) -> None:
        self.kept = kept
        self.points: list[Point] = []
        self.buffers: dict[E.Var, Buffer] = {}
        self.levels: dict[E.Var, int] = {}
        self.scopes: list[dict[E.Var, None]] = []
        self.launched = False

    def touch(self, data: E.Var) -> None:
        if data in self.levels:
            self.scopes[self.levels[data]][data] = None

    def leaf(self, statement: S.Stmt, parts: Iterable[Node], stored: Buffer | None = None) -> None:
        self.scopes.append({})
        for part in parts:
            self.visit(part)
        if stored is not None:
            self.touch(stored.data)
        touched = self.scopes.pop()
        if touched:
            self.points.append(Point(statement, touched, True, True))

    @on(S.For, S.While, S.IfThenElse)
    def nest(self, statement: S.Stmt) -> None:
        begin = Point(statement, {}, True, False)
        self.points.append(begin)
        self.scopes.append(begin.touched)
        self.visit_children(statement)
        self.scopes.pop()
        self.points.append(Point(statement, begin.touched, False, True))

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        if statement.attr_key == "virtual_thread":
            self.nest(statement)
        elif statement.attr_key == "thread_extent" and not self.launched:
            self.launched = True
            self.nest(statement)
            self.launched = False
        else:
            self.leaf(statement, [statement.value])
            self.visit(statement.body)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> None:
        self.leaf(store, [store.value, *store.indices], store.buffer)

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> None:
        self.leaf(statement, [statement.value])

    @on(S.LetStmt)
    def let(self, statement: S.LetStmt) -> None:
        self.leaf(statement, [statement.value])
        self.visit(statement.body)

    @on(S.AssertStmt)
    def assertion(self, statement: S.AssertStmt) -> None:
        self.leaf(statement, [statement.condition])
        self.visit(statement.body)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        data = statement.buffer.data
        if data not in self.kept:
            self.buffers[data], self.levels[data] = statement.buffer, len(self.scopes)
        self.visit(statement.body)

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> None:
        self.visit_children(load)
        self.touch(load.buffer.data)

    @on(E.Var)
    def pointer(self, var: E.Var) -> None:
        self.touch(var)


@dataclass(eq=False)
class _Memory:
    """One allocation, before statement `at`, of buffers that are not needed at once."""

    at: S.Stmt | None
    scope: str
    dtype: str
    bits: int
    buffers: list[Buffer] = field(default_factory=list)
    parts: list[_Memory] = field(default_factory=list)
    """Those that are in this one."""
    offset: int = 0
    """In bits."""
    backing: Buffer | None = None


class _Plan:
    """`memory` is what each buffer gets."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.memory: dict[E.Var, _Memory] = {}
        self.allocations: dict[S.Stmt | None, list[_Memory]] = {}
        self.free: list[_Memory] = []
        self.replaced: set[E.Var] = set()
        self.at: list[S.Stmt | None] = [None]
        first, last = first_and_last(uses.points)
        for point in uses.points:
            statement = point.statement
            if point.begins:
                starting = first.get(statement, [])
                for data in starting:
                    candidates = last.get(statement, ()) if len(starting) <= 2 else ()
                    self.place(data, statement, candidates)
            self.change_threads(point)
            if point.ends:
                for data in last.get(statement, ()):
                    self.release(data)
        for group in self.allocations.values():
            _combine(group)

    def change_threads(self, point: Point) -> None:
        """Memory is of the threads that allocate it."""
        statement = point.statement
        if (point.begins and point.ends) or not self.starts_threads(statement):
            return
        if point.begins:
            self.at.append(statement)
        else:
            self.free = [memory for memory in self.free if memory.at is not statement]
            self.at.pop()

    def starts_threads(self, statement: S.Stmt) -> bool:
        if isinstance(statement, S.For):
            in_order = statement.kind in (S.ForKind.SERIAL, S.ForKind.UNROLLED)
            return not in_order and self.at[-1] in (None, statement)
        return isinstance(statement, S.AttrStmt)

    def place(self, data: E.Var, statement: S.Stmt, done: Sequence[E.Var]) -> None:
        buffer = self.uses.buffers[data]
        memory = self.in_place(buffer, statement, done) or self.released(buffer)
        if memory is None:
            element = dtypes.element_of(buffer.dtype)
            memory = _Memory(self.at[-1], buffer.scope(), element, _bits(buffer))
            self.allocations.setdefault(self.at[-1], []).append(memory)
        memory.bits = max(memory.bits, _bits(buffer)) if _bits(buffer) else memory.bits
        memory.buffers.append(buffer)
        self.memory[data] = memory

    def in_place(self, buffer: Buffer, statement: S.Stmt, done: Sequence[E.Var]) -> _Memory | None:
        """The memory of a buffer whose elements a statement replaces by those of another."""
        for data in done:
            memory = self.memory.get(data)
            if memory is None or data in self.replaced or not self.suits(memory, buffer):
                continue
            source = self.uses.buffers[data]
            if memory.bits == _bits(buffer) and memory.dtype == dtypes.element_of(buffer.dtype):
                if _replaces_elements(statement, buffer, source):
                    self.replaced.add(data)
                    return memory
        return None

    def suits(self, memory: _Memory, buffer: Buffer) -> bool:
        return memory.at is self.at[-1] and memory.scope == buffer.scope()

    def released(self, buffer: Buffer) -> _Memory | None:
        """Memory that is done with: the smallest that is large enough, else the largest."""
        bits, element = _bits(buffer), dtypes.element_of(buffer.dtype)
        if buffer.ndim != 1 or _is_register(buffer.scope(), bits):
            return None
        free = [memory for memory in self.free if self.suits(memory, buffer)]
        alike = [memory for memory in free if memory.dtype == element]
        if bits:
            ordered = sorted(free, key=lambda memory: memory.bits)
            larger = [m for m in ordered if bits <= m.bits <= bits * _MATCH_RANGE]
            smaller = [m for m in ordered if bits // _MATCH_RANGE <= m.bits < bits and m in alike]
            chosen = [m for m in larger if m.bits] + [m for m in reversed(smaller) if m.bits]
        else:
            chosen = [memory for memory in alike if not memory.bits]
        if not chosen:
            return None
        self.free.remove(chosen[0])
        return chosen[0]

    def release(self, data: E.Var) -> None:
        memory = self.memory[data]
        flat = all(buffer.ndim == 1 for buffer in memory.buffers)
        if data not in self.replaced and flat and not _is_register(memory.scope, memory.bits):
            self.free.append(memory)


def first_and_last(
    points: Sequence[Point],
) -> tuple[dict[S.Stmt, list[E.Var]], dict[S.Stmt, list[E.Var]]]:
    """The buffers that each statement touches first, and last."""
    return (
        _touched_first(point for point in points if point.begins),
        _touched_first(point for point in reversed(points) if point.ends),
    )


def _touched_first(points: Iterable[Point]) -> dict[S.Stmt, list[E.Var]]:
    """The buffers that each statement is the first to touch."""
    touched: dict[S.Stmt, list[E.Var]] = {}
    seen: set[E.Var] = set()
    for point in points:
        for data in point.touched:
            if data not in seen:
                seen.add(data)
                touched.setdefault(point.statement, []).append(data)
    return touched


def _bits(buffer: Buffer) -> int:
    """The size of a buffer; 0 where it is not constant."""
    shape = constant_shape(buffer)
    return 0 if shape is None else prod(shape) * dtypes.size_in_bytes(buffer.dtype) * 8


def _tag(scope: str) -> str:
    """What a scope says beyond its kind of memory."""
    kind, _, tag = scope.partition(".")
    return tag if kind in ("global", "shared", "local", "warp") else ""


def _is_register(scope: str, bits: int) -> bool:
    if _tag(scope):
        return False
    return scope not in ("global", "shared") or 0 < bits <= _REGISTER_BITS


def _combine(group: list[_Memory]) -> None:
    """Say which buffers memory of one place is, and where in them."""
    first: dict[str, _Memory] = {}
    for memory in group:
        if memory.bits and _tag(memory.scope) not in ("", "dyn", "workspace", "vtcm"):
            whole = first.setdefault(memory.scope, memory)
            if whole is not memory:
                whole.parts.append(memory)
    inside = {part for memory in group for part in memory.parts}
    for memory in group:
        if memory not in inside:
            memory.backing = _backing(memory)
    for memory in group:
        for part in memory.parts:
            part.backing = memory.backing
    group[:] = [memory for memory in group if memory not in inside]


def _backing(memory: _Memory) -> Buffer:
    one, *others = memory.buffers
    index_type = one.shape[0].dtype if one.shape else "int32"
    width = dtypes.size_in_bytes(memory.dtype) * 8
    if memory.parts:
        end = _aligned(memory.bits, _REGISTER_BITS)
        for part in memory.parts:
            size = max(dtypes.size_in_bytes(b.dtype) * 8 for b in part.buffers)
            part.offset = _aligned(end, max(size, _REGISTER_BITS))
            end = _aligned(part.offset + part.bits, _REGISTER_BITS)
        return _flat(memory, const(-(-end // width), index_type), memory.dtype)
    if all(b.dtype == one.dtype and same_expressions(b.shape, one.shape) for b in others):
        return one
    dtype = max((b.dtype for b in memory.buffers), key=dtypes.lanes)
    width = dtypes.size_in_bytes(dtype) * 8
    sizes = [
        multiply(b.shape[0], const(dtypes.size_in_bytes(b.dtype) * 8, b.shape[0].dtype))
        for b in memory.buffers
    ]
    size = sizes[0]
    for other in sizes[1:]:
        size = maximum(size, other)
    count = floordiv(add(size, const(width - 1, size.dtype)), const(width, size.dtype))
    return _flat(memory, Analyzer().simplify(count), dtype)


def _aligned(bits: int, step: int) -> int:
    return -(-bits // step) * step


def _flat(memory: _Memory, count: E.PrimExpr, dtype: str) -> Buffer:
    return decl_buffer((count,), dtype, memory.buffers[0].name, scope=memory.scope)


def _replaces_elements(statement: S.Stmt, new: Buffer, old: Buffer) -> bool:
    """Whether a statement computes each element of a buffer once, from the same element of another
    that it reads nowhere else."""
    if new.ndim != 1 and not same_expressions(new.shape, old.shape):
        return False
    pair = (new.data, old.data)
    stores = [s for s in find_nodes(statement, S.BufferStore) if s.buffer.data in pair]
    if len(stores) != 1 or stores[0].buffer is not new:
        return False
    store = stores[0]
    if uses_any(statement, pair):
        return False
    inside = {*find_nodes(store.value, E.BufferLoad)}
    for load in find_nodes(statement, E.BufferLoad):
        if load.buffer.data is new.data:
            return False
        if load.buffer.data is old.data:
            same = load.buffer is old and same_expressions(load.indices, store.indices)
            if not same or load not in inside or load.dtype != store.value.dtype:
                return False
    loops = _loops_around(statement, store)
    return loops is not None and is_iter_map(store.indices, loops, check_level=BIJECTIVE)


def _loops_around(statement: Node, store: S.BufferStore) -> dict[E.Var, Range] | None:
    """The loops in a statement around a store; None where another kind of loop is."""
    if statement is store:
        return {}
    for child in children(statement):
        if isinstance(child, S.Stmt):
            inner = _loops_around(child, store)
            if inner is not None:
                if isinstance(statement, S.While):
                    return None
                own = {statement.loop_var: statement.domain} if isinstance(statement, S.For) else {}
                return {**own, **inner}
    return None


class _Sharing(BufferMutator):
    """Puts buffers where a plan says."""

    def __init__(self, plan: _Plan, uses: Uses) -> None:
        self.plan = plan
        self.kept = uses.kept

    def attached(self, at: S.Stmt | None, body: S.Stmt) -> S.Stmt:
        body = self.rewrite(body)
        for memory in reversed(self.plan.allocations.get(at, [])):
            assert memory.backing is not None
            body = S.AllocBuffer(memory.backing, body)
        return body

    def changed(self, buffer: Buffer) -> Buffer:
        memory = self.plan.memory.get(buffer.data)
        if memory is None or memory.backing is None or memory.backing is buffer:
            return buffer
        shift = memory.offset // (dtypes.size_in_bytes(buffer.dtype) * 8)
        offset = add(buffer.elem_offset, const(shift, buffer.elem_offset.dtype))
        return replace(buffer, data=memory.backing.data, elem_offset=offset)

    @on(E.Var)
    def pointer(self, var: E.Var) -> E.Var:
        memory = self.plan.memory.get(var)
        return var if memory is None or memory.backing is None else memory.backing.data

    @on(S.For, S.AttrStmt)
    def scope(self, statement: S.For | S.AttrStmt) -> S.Stmt:
        if statement not in self.plan.allocations:
            return self.rewrite_children(statement)
        inner = S.Evaluate(const(0))
        around = self.rewrite_children(replace(statement, body=inner))
        return replace(around, body=self.attached(statement, statement.body))

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        body, buffer = self.rewrite(statement.body), statement.buffer
        memory = self.plan.memory.get(buffer.data)
        if memory is None:
            return replace(statement, body=body) if buffer.data in self.kept else body
        return body if memory.backing is buffer else S.DeclBuffer(self.buffer(buffer), body)
