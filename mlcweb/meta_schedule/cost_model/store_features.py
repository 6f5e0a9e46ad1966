"""The numbers that TVM's cost models learn from: a row for each buffer that a scheduled program
stores to (Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning",
OSDI 2020, appendix B, with what TVM has made of it since).

A row has five groups: what the store computes and how its loops are annotated, how it accesses its
buffers, its arithmetic intensity, the size of its buffer, the loops around it. Sizes are logarithms
to base 2 of one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log2, prod
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir import IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Visitor, children, on, rewrite_nodes, walk
from mlcweb.meta_schedule.cost_model.store_nests import lowered_for_features
from mlcweb.schedule.analysis.block_facts import axis_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import prim_funcs
from mlcweb.tir.operators import DIVISIONS, Family, keys
from mlcweb.tir.substitute import substitute, variables_in

COMPUTATION, ACCESS, ALLOCATION, OUTER, WORKLOAD = 57, 18, 4, 3, 8
"""How many numbers each group has; of accesses, for each buffer."""

Row = list[float]
Indices = tuple[E.PrimExpr, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """How much of a store is described: see `PerStoreFeature`."""

    buffers_per_store: int = 5
    arith_intensity_curve_num_samples: int = 10
    cache_line_bytes: int = 64

    @property
    def length(self) -> int:
        """Of a row."""
        accesses = ACCESS * self.buffers_per_store
        curve = self.arith_intensity_curve_num_samples
        return COMPUTATION + accesses + curve + ALLOCATION + OUTER


def store_features(module: IRModule, launches: bool, options: Options) -> list[Row]:
    """A row for each buffer that is stored to, in the order of their first stores; of a buffer that
    several statements store to, the last counts. Stores of constants do not.

    Args:
        launches: whether the program is for a target whose loops are bound to threads.
    """
    stores = _Stores(launches, options)
    for func in prim_funcs(module).values():
        lowered = lowered_for_features(func)
        stores.visit(lowered.body)
        for buffer in lowered.buffer_map.values():
            stores.allocate(buffer)
    return stores.rows()


def workload_features(module: IRModule) -> Row:
    """Which kinds of operators the names of a module's blocks speak of: 0 or 1 for each."""
    row = [0.0] * WORKLOAD
    for func in prim_funcs(module).values():
        for block in walk(func.body):
            if isinstance(block, S.Block):
                name = block.name_hint.lower()
                kinds = (n for n, words in enumerate(_KINDS) if any(w in name for w in words))
                kind = next(kinds, None)
                if kind is not None:
                    row[kind] = 1.0
    return row


_KINDS = (
    ("softmax",), ("max", "min"), ("add",), ("batch_matmul",), ("matmul",), ("depthwiseconv2d",),
    ("conv2d_winograd",), ("conv2d",),
)  # fmt: skip


def _log(value: float) -> float:
    return log2(abs(value) + 1)


def _bytes(buffer: Buffer) -> int:
    return max(1, -(-dtypes.bits(buffer.dtype) // 8))


def _extent(loop: S.For) -> int:
    """1 where it is no constant."""
    return int(constant_value(loop.extent) or 1)


class _Stores(Visitor):
    """Goes through a lowered function; `loops`, outermost first, are those around a statement."""

    def __init__(self, launches: bool, options: Options) -> None:
        self.launches = launches
        self.options = options
        self.analyzer = Analyzer()
        self.loops: list[S.For] = []
        # How many elements of a buffer each store in a loop touches.
        self.touched: dict[S.For, dict[Buffer, list[int]]] = {}
        self.stores: dict[Buffer, tuple[Row, int, Row]] = {}
        self.allocations: dict[Buffer, tuple[int, int]] = {}

    @property
    def iterations(self) -> int:
        """Of all loops around."""
        return prod(map(_extent, self.loops))

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        self.loops.append(loop)
        self.visit(loop.body)
        self.loops.pop()

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        self.visit(statement.body)
        self.allocate(statement.buffer)

    def allocate(self, buffer: Buffer) -> None:
        self.allocations[buffer] = prod(_shape(buffer, self.analyzer)), self.iterations

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> None:
        if isinstance(store.value, (E.IntImm, E.FloatImm)):
            return
        counts = _operations(store.value)
        row = [_log(count * self.iterations) for count in counts]
        for kind in (S.ForKind.VECTORIZED, S.ForKind.UNROLLED, S.ForKind.PARALLEL):
            row += _annotated([loop for loop in self.loops if loop.kind == kind])
        row += self.launch()
        accesses = self.accesses(store)
        most = self.options.buffers_per_store
        for access in accesses[:most]:
            row += access.row()
        row += [0.0] * (ACCESS * (most - len(accesses)))
        row += self.intensity(sum(counts[:_FLOAT_OPERATIONS]), accesses)
        limits = (int(constant_value(loop.annotations.get(_UNROLL, 0)) or 0) for loop in self.loops)
        limit = [each for each in limits if each > 0][-1:] or [0]
        outer = [float(self.iterations), float(len(self.loops)), *map(float, limit)]
        self.stores[store.buffer] = row, self.iterations, list(map(_log, outer))

    def rows(self) -> list[Row]:
        rows = []
        for buffer, (row, iterations, outer) in self.stores.items():
            elements, around = self.allocations.get(buffer, (0, 1))
            sizes = (elements * _bytes(buffer), elements * around, around, iterations / around)
            rows.append([*row, *map(_log, sizes), *outer])
        return rows

    def launch(self) -> Row:
        """How many iterations each axis has, and the virtual threads."""
        extents = []
        for axis in _AXES:
            bound = (loop for loop in self.loops if axis_of(loop).startswith(axis))
            first = next(bound, None) if self.launches else None
            extents.append(1 if first is None else _extent(first))
        return [float(self.launches), *map(_log, extents)]

    def accesses(self, store: S.BufferStore) -> list[_Access]:
        """The buffers that a store accesses, those that most lines of are touched first."""
        by_buffer: dict[Buffer, _Access] = {}
        loads = (node for node in walk(store.value) if isinstance(node, E.BufferLoad))
        for node in (store, *loads):
            buffer = node.buffer
            access = by_buffer.setdefault(buffer, _Access(buffer, _shape(buffer, self.analyzer)))
            if node is store:
                access.writes = True
                access.indices.append(store.indices)
            else:
                access.reads = True
                if not access.writes:
                    access.indices.append(node.indices)
        accesses = list(by_buffer.values())
        starts = {loop.loop_var: loop.min for loop in self.loops}
        for var, start in starts.items():
            self.analyzer.bind(var, start)
        for access in accesses:
            access.ranges = [self.without_remainders(each, starts) for each in access.indices]
        for loop in reversed(self.loops):
            self.analyzer.bind(loop.loop_var, loop.domain)
            in_loop = self.touched.setdefault(loop, {})
            for access in accesses:
                access.touch(self.analyzer)
                in_loop.setdefault(access.buffer, []).append(access.elements[-1])
        for access in accesses:
            access.move(self.loops)
            self.find_reuse(access, sum(_bytes(each.buffer) for each in accesses))
            access.count(self.iterations, self.options.cache_line_bytes)
        return sorted(accesses, key=lambda each: (-each.lines, -each.bytes, each.buffer.name))

    def without_remainders(self, indices: Indices, starts: Mapping[E.Var, E.PrimExpr]) -> Indices:
        """Indices in which remainders of constants are what they are at the start of all loops: TVM
        takes them for that when it looks at which elements are touched."""

        def at_start(remainder: E.PrimExpr) -> E.PrimExpr:
            value = self.analyzer.simplify(substitute(remainder, starts))
            return value if isinstance(value, E.IntImm) else remainder

        return tuple(rewrite_nodes(index, E.FloorMod, at_start) for index in indices)

    def find_reuse(self, access: _Access, bytes_of_all: int) -> None:
        """The innermost loop that comes back to what an access touches: because it leaves the
        access where it is, or because another store in it touches the same buffer."""
        used = {var for indices in access.indices for var in variables_in(*indices)}
        inner = 1
        for number, loop in reversed(list(enumerate(self.loops))):
            if loop.loop_var not in used:
                last = number == len(self.loops) - 1
                distance = bytes_of_all if last else self.bytes_in(self.loops[number + 1])
                access.reuse = _Reuse(0, inner, distance, _extent(loop))
                return
            touched = self.touched[loop][access.buffer]
            if len(touched) > 1:
                extent = _extent(loop)
                distance = self.bytes_in(loop) / extent
                access.reuse = _Reuse(1, min(touched) / extent, distance, len(touched) - 1)
                return
            inner *= _extent(loop)

    def bytes_in(self, loop: S.For) -> int:
        """What all stores in a loop touch."""
        return sum(_bytes(buffer) * sum(each) for buffer, each in self.touched[loop].items())

    def intensity(self, operations: int, accesses: Sequence[_Access]) -> Row:
        """Operations for each byte that is touched, where so many have been made: at equal steps
        up to all of them, between those that whole loops make."""
        samples = self.options.arith_intensity_curve_num_samples
        if not operations or not self.loops:
            return [0.0] * samples
        cumulative: list[float] = []
        for loop in reversed(self.loops):
            operations *= _extent(loop)
            cumulative.append(operations)
        touched = [
            sum(_bytes(each.buffer) * each.elements[number] for each in accesses)
            for number in range(len(self.loops))
        ]
        ratios = [a / b for a, b in zip(cumulative, touched, strict=True)]
        curve, n = [], 0
        for sample in range(1, samples + 1):
            at = sample / samples * cumulative[-1]
            while cumulative[n] < at - 1e-4:
                n += 1
            if n == 0:
                curve.append(ratios[0])
            else:
                slope = (ratios[n] - ratios[n - 1]) / (cumulative[n] - cumulative[n - 1])
                curve.append(ratios[n - 1] + slope * (at - cumulative[n - 1]))
        return list(map(_log, curve))


_UNROLL = "pragma_auto_unroll_max_step"

_AXES = (
    *(f"{axis}.{letter}" for axis in ("blockIdx", "threadIdx") for letter in "xyz"),
    "vthread",
)


def _annotated(loops: Sequence[S.For]) -> Row:
    """Loops of one kind: how many, their iterations, those of the innermost one; and whether there
    are none. Which iterators they are over, TVM has numbers for, but does not find out."""
    if not loops:
        return [0.0, 0.0, 0.0, 1.0, *[0.0] * 7]
    sizes = len(loops), prod(map(_extent, loops)), _extent(loops[-1])
    return [*map(_log, sizes), *[0.0] * 7, 1.0]


@dataclass(frozen=True, slots=True)
class _Reuse:
    """How an access comes back to what it touched: by a loop (0), by another store (1) or not at
    all (2); after how many iterations and bytes; how often."""

    kind: int = 2
    iterations: float = 0.0
    bytes: float = 0.0
    count: int = 0


@dataclass(slots=True)
class _Access:
    """All accesses of a store to one buffer.

    Attributes:
        elements: how many are touched in the innermost loop, in that and the next one, and so on.
        box: how many different values each index takes in all loops.
        stride: elements by which the innermost loop that moves the access does so.
        innermost_stride: the same of the innermost loop.
        still: iterations of the loops inside of that.
    """

    buffer: Buffer
    shape: Sequence[int]
    indices: list[Indices] = field(default_factory=list)
    reads: bool = False
    writes: bool = False
    ranges: list[Indices] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    box: list[int] = field(default_factory=list)
    contiguous_bytes: int = 1
    stride: int = 0
    innermost_stride: int = 0
    still: int = 1
    reuse: _Reuse = _Reuse()
    bytes: float = 0.0
    unique_bytes: float = 1.0
    lines: float = 1.0
    unique_lines: float = 1.0

    def touch(self, analyzer: Analyzer) -> None:
        """See what is touched while loop variables are in the bounds of an analyzer. An index that
        may be anything touches all there is."""
        self.box = []
        for each, extent in zip(zip(*self.ranges, strict=True), self.shape, strict=True):
            low, high = zip(*map(analyzer.const_int_bound, each), strict=True)
            size = max(high) - min(low) + 1
            self.box.append(int(size) if size < inf else extent)
        self.elements.append(prod(self.box))

    def move(self, loops: Sequence[S.For]) -> None:
        """See how the loops move the access."""
        shape = self.shape
        box = self.box or [1] * len(shape)
        whole = (extent for size, extent in zip(box, shape, strict=True) if size == extent)
        rows = [*whole][-1:]
        self.contiguous_bytes = rows[0] * _bytes(self.buffer) if rows else 1
        weights = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
        for loop in reversed(loops):
            self.stride = min(
                (each for indices in self.indices if (each := _stride(indices, weights, loop))),
                default=0,
            )
            if self.stride:
                self.innermost_stride = self.stride if loop is loops[-1] else 0
                return
            self.still *= _extent(loop)

    def count(self, iterations: int, line_bytes: int) -> None:
        """The bytes and cache lines that are touched."""
        size = _bytes(self.buffer)
        self.bytes = size * iterations
        if not self.elements:
            return
        self.unique_bytes = self.elements[-1] * size
        share = min(1.0, self.stride * size / line_bytes)
        self.lines = max(1.0, iterations / self.still * share)
        self.unique_lines = max(1.0, self.unique_bytes / min(line_bytes, self.contiguous_bytes))

    def row(self) -> Row:
        kinds = (self.reads and not self.writes, self.writes and not self.reads)
        sizes = [self.bytes, self.unique_bytes, self.lines, self.unique_lines]
        reuse = self.reuse
        count = reuse.count or 0.5
        return [
            *map(float, kinds), float(self.reads and self.writes),
            *map(_log, sizes),
            *(float(reuse.kind == kind) for kind in range(3)),
            *map(_log, (reuse.iterations, reuse.bytes, reuse.count)),
            *(_log(each / count) for each in sizes),
            _log(self.innermost_stride),
        ]  # fmt: skip


def _stride(indices: Indices, weights: Sequence[int], loop: S.For) -> int:
    """Elements that a loop moves an access by, as the last index with its variable tells."""
    for index, weight in zip(reversed(indices), reversed(weights), strict=True):
        coefficient = _coefficient(index, loop.loop_var)
        if coefficient:
            return abs(coefficient) * weight
    return 0


def _coefficient(index: E.PrimExpr, var: E.Var) -> int:
    """What a variable is multiplied by in an index, as TVM reads it: the last constant factor after
    the variable, before a sum that has it outside of a product."""
    seen = added = multiplied = False
    factor = 0

    def visit(expr: Any) -> None:
        nonlocal seen, added, multiplied, factor
        if expr is var:
            seen, factor = True, 2
            return
        for child in children(expr):
            visit(child)
        if type(expr) is E.Mul and seen and not added:
            for operand in (expr.a, expr.b):
                if isinstance(operand, E.IntImm):
                    multiplied, factor = True, operand.value
                    break
        elif type(expr) is E.Add and seen and not multiplied:
            added, factor = True, 1

    visit(index)
    return 1 if seen and not added and not multiplied else factor


_FLOAT_OPERATIONS = 7
_ADD, _MULTIPLY, _DIVIDE, _COMPARE, _CALL, _EFFECT = range(1, _FLOAT_OPERATIONS)
_BOOL, _SELECT = 14, 15

_KIND: dict[Any, int] = {
    **dict.fromkeys((E.Add, E.Sub), _ADD),
    E.Mul: _MULTIPLY,
    **dict.fromkeys(DIVISIONS, _DIVIDE),
    **dict.fromkeys((E.Min, E.Max, *keys(Family.COMPARISON)), _COMPARE),
}


def _operations(value: E.PrimExpr) -> list[int]:
    """How many operations there are in a value, indices included: multiply-adds (TVM counts none),
    sums, products, quotients, comparisons, calls without and with an effect, first of floating
    point, then of others; then of `and`, `or` and `not`; then choices."""
    counts = [0] * 16
    for node in walk(value):
        if isinstance(node, (E.And, E.Or, E.Not)):
            counts[_BOOL] += 1
        elif isinstance(node, E.Select):
            counts[_SELECT] += 1
        elif (kind := _KIND.get(type(node), _call(node))) is not None:
            assert isinstance(node, E.PrimExpr)
            floats = 0 if dtypes.is_float(node.dtype) else _FLOAT_OPERATIONS
            counts[kind + floats] += 1
    return counts


def _call(node: Node) -> int | None:
    if not isinstance(node, E.Call):
        return None
    return _CALL if isinstance(node.op, Op) and node.op.pure else _EFFECT


def _shape(buffer: Buffer, analyzer: Analyzer) -> list[int]:
    """The extents of a buffer; of symbolic ones the largest that is possible, or 1."""
    shape = []
    for extent in buffer.shape:
        size = analyzer.const_int_bound(extent).max_value
        shape.append(int(size) if 0 <= size < inf else 1)
    return shape
