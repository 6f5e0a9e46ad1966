"""The accesses of a kernel to memory that its threads share, and the barriers between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isinf
from typing import Any

from mlcweb.analysis.threads import ATOMIC, MATRIX_UNIT, WARP_MATRIX, has_barrier, is_barrier
from mlcweb.arith import Analyzer, same_expression
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.codegen.gpu.vector_copies import vector_copy
from mlcweb.codegen.gpu.warp_matrices import ROW_BYTES, instruction_of, row_of_lane
from mlcweb.ir.visitor import Visitor, on
from mlcweb.playground.protocol.gpu import GpuAccessKind, GpuStepKind
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.operators import key_of
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop inside a kernel, over [low, low + extent). The extent is the greatest one where it
    varies; a site then has a condition that says how far the loop really goes."""

    var: E.Var
    low: int
    extent: int


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A place in a kernel that touches global or shared memory.

    Attributes:
        index: The element, by the indices of the thread and by loops.
        item_bytes: Of one element.
        lanes: Elements of one access: more than one for a vector.
        shared: Whether the memory is that of a block.
        tile: Loops that one instruction of a matrix unit does for all threads of a warp.
        conditions: What holds where the access is made.
        guesses: Conditions that depend on data, and are taken to hold.
        phase: The number of the phase that it is in.
        statement: What it is part of.
    """

    buffer: Buffer
    kind: GpuAccessKind
    index: E.PrimExpr
    item_bytes: int
    lanes: int
    shared: bool
    loops: tuple[Loop, ...]
    tile: tuple[Loop, ...]
    conditions: tuple[E.PrimExpr, ...]
    guesses: tuple[E.PrimExpr, ...]
    phase: int
    statement: S.Stmt

    @property
    def bytes(self) -> int:
        """Of one access of a thread."""
        return self.item_bytes * self.lanes


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A part of what the threads of a block do: a phase, in which they do not wait for each other,
    a barrier, or a loop with barriers in it, whose steps follow with one more in `depth`."""

    kind: GpuStepKind
    depth: int
    loop: Loop | None = None
    phase: int = 0


@dataclass(slots=True)
class Sites:
    """The sites of a kernel in the order of its text, its steps, and buffers of single threads."""

    sites: list[Site] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    own: list[Buffer] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)


def sites_of(kernel: DeviceKernel) -> Sites:
    """What a kernel touches; loops over threads have constant extents."""
    collector = _Collector(kernel)
    collector.visit(kernel.body)
    collector.end_phase()
    return collector.result


class _Collector(Visitor):
    def __init__(self, kernel: DeviceKernel) -> None:
        self.result = Sites()
        self.owners = {buffer.data: buffer for buffer in (*kernel.buffers, *kernel.shared)}
        self.shared = {buffer.data for buffer in kernel.shared}
        self.analyzer = Analyzer(kernel.domains)
        self.values: dict[E.Var, E.PrimExpr] = {}
        self.loops: list[Loop] = []
        self.conditions: list[E.PrimExpr] = []
        self.in_tile: int | None = None
        lanes = (var for var, tag in kernel.indices.items() if tag == "threadIdx.x")
        self.lane = next(lanes, None)
        self.depth = 0
        self.phase = 0
        self.first = 0
        self.statement: S.Stmt = kernel.body

    # Steps

    def end_phase(self) -> None:
        """What was met since the last barrier, or the head of a loop that has some, is a phase."""
        if len(self.result.sites) > self.first:
            self.result.steps.append(Step("phase", self.depth, phase=self.phase))
            self.first = len(self.result.sites)
            self.phase += 1

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> None:
        if is_barrier(statement):
            self.end_phase()
            self.result.steps.append(Step("barrier", self.depth))
        else:
            self.statement = statement
            self.visit_children(statement)

    # Statements

    @on(S.For)
    def loop(self, statement: S.For) -> None:
        self.statement = statement
        if self.vector(statement):
            return
        low, end, fixed = self.range(statement)
        loop = Loop(statement.loop_var, low, max(0, end - low))
        self.result.loops.append(loop)
        dtype = loop.var.dtype
        self.analyzer.bind(loop.var, Range(const(low, dtype), const(max(1, loop.extent), dtype)))
        end_of_loop = statement.min + statement.extent
        within = () if fixed else (statement.min <= loop.var, loop.var < end_of_loop)
        waits = has_barrier(statement.body)
        if waits:
            self.end_phase()
            self.result.steps.append(Step("loop", self.depth, loop))
            self.depth += 1
        self.loops.append(loop)
        with self.where(*within):
            self.visit(statement.body)
        self.loops.pop()
        if waits:
            self.end_phase()
            self.depth -= 1

    def range(self, loop: S.For) -> tuple[int, int, bool]:
        """Between which values a loop goes, and whether always. The first value alone, from 0,
        where nothing is known."""
        low, end = (
            self.analyzer.const_int_bound(self.resolved(value))
            for value in (loop.min, loop.min + loop.extent)
        )
        if isinf(low.min_value) or isinf(end.max_value):
            return 0, 1, False
        fixed = low.min_value == low.max_value and end.min_value == end.max_value
        return int(low.min_value), int(end.max_value), fixed

    def vector(self, loop: S.For) -> bool:
        """Whether a loop is one load and one store of a vector."""
        copy = vector_copy(loop, self.analyzer)
        if copy is None:
            return False
        self.statement = copy.store
        self.site(copy.load.buffer, copy.first_loaded, "load", copy.lanes)
        self.site(copy.store.buffer, copy.first_stored, "store", copy.lanes)
        return True

    @on(S.IfThenElse)
    def branch(self, statement: S.IfThenElse) -> None:
        self.statement = statement
        self.visit(statement.condition)
        with self.where(statement.condition):
            self.visit(statement.then_case)
        if statement.else_case is not None:
            with self.where(E.Not(statement.condition)):
                self.visit(statement.else_case)

    @on(S.While)
    def repetition(self, statement: S.While) -> None:
        self.statement = statement
        self.visit(statement.condition)
        with self.where(statement.condition):
            self.visit(statement.body)

    @on(S.LetStmt, E.Let)
    def let(self, node: Any) -> None:
        self.visit(node.value)
        self.values[node.var] = self.resolved(node.value)
        self.visit(node.body)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        if statement.attr_key == ATOMIC and isinstance(statement.body, S.BufferStore):
            self.atomic(statement.body)
        elif statement.attr_key == WARP_MATRIX:
            self.row(statement)
        elif statement.attr_key == MATRIX_UNIT and self.in_tile is None:
            self.in_tile = len(self.loops)
            self.visit(statement.body)
            self.in_tile = None
        else:
            self.visit(statement.body)

    def row(self, statement: S.AttrStmt) -> None:
        """Of the matrix instructions of PTX only `ldmatrix` touches memory: each lane a row."""
        self.statement = statement
        if self.lane is not None and instruction_of(statement)[0] == "ldmatrix":
            load, index = row_of_lane(statement, self.lane)
            lanes = ROW_BYTES // dtypes.size_in_bytes(load.buffer.dtype)
            self.site(load.buffer, self.analyzer.simplify(index), "load", lanes)

    def atomic(self, update: S.BufferStore) -> None:
        self.statement = update
        self.visit(update.indices[0])
        operands = getattr(update.value, "b", None)
        if operands is not None:
            self.visit(operands)
        self.site(update.buffer, update.indices[0], "atomic")

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        if statement.buffer.data not in self.owners:
            self.result.own.append(statement.buffer)
        self.visit(statement.body)

    @on(S.BufferStore)
    def store(self, statement: S.BufferStore) -> None:
        self.statement = statement
        for part in (*statement.indices, statement.value):
            self.visit(part)
        self.site(statement.buffer, statement.indices[0], "store")

    # Expressions

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> None:
        self.visit(load.indices[0])
        self.site(load.buffer, load.indices[0], "load")

    @on(E.Select)
    def select(self, select: E.Select) -> None:
        self.either(select.condition, select.true_value, select.false_value)

    @on(E.Call)
    def call(self, call: E.Call) -> None:
        if key_of(call) == "if_then_else":
            self.either(*call.args)
        else:
            self.visit_children(call)

    def either(self, condition: Any, first: Any, second: Any) -> None:
        self.visit(condition)
        with self.where(condition):
            self.visit(first)
        with self.where(E.Not(condition)):
            self.visit(second)

    @contextmanager
    def where(self, *conditions: E.PrimExpr) -> Iterator[None]:
        self.conditions += map(self.resolved, conditions)
        yield
        del self.conditions[len(self.conditions) - len(conditions) :]

    def resolved(self, expression: E.PrimExpr) -> E.PrimExpr:
        """An expression of thread indices and loops alone."""
        used = variables_in(expression) & self.values.keys()
        return substitute(expression, {v: self.values[v] for v in used}) if used else expression

    def site(self, buffer: Buffer, index: E.PrimExpr, kind: GpuAccessKind, lanes: int = 1) -> None:
        """Note an access, unless it is of memory of one thread or the same as another one of its
        statement."""
        if buffer.data not in self.owners:
            return
        index = self.resolved(index)
        if isinstance(index, E.Ramp):
            lanes, index = dtypes.lanes(index.dtype), index.base
        counted = [c for c in self.conditions if not reads_memory(c)]
        loops = tuple(self.loops)
        split = len(loops) if self.in_tile is None else self.in_tile
        site = Site(
            buffer,
            kind,
            index,
            dtypes.size_in_bytes(dtypes.element_of(buffer.dtype)),
            lanes * dtypes.lanes(buffer.dtype),
            buffer.data in self.shared,
            loops[:split],
            loops[split:],
            tuple(counted),
            tuple(c for c in self.conditions if reads_memory(c)),
            self.phase,
            self.statement,
        )
        if not any(_same(site, other) for other in self.result.sites[self.first :]):
            self.result.sites.append(site)


def _same(site: Site, other: Site) -> bool:
    """Whether two accesses of one statement are one, which a compiler makes once."""
    return (
        site.statement is other.statement
        and site.kind == other.kind
        and site.buffer.data is other.buffer.data
        and site.conditions == other.conditions
        and same_expression(site.index, other.index)
    )
