"""The pass that turns loops into vector operations: marked ones, innermost ones of unit stride.

A loop of n iterations becomes one over chunks of as many lanes as the widest element type leaves in
a 128-bit vector, and what is left over stays scalar. Iterations may run side by side if no two
touch the same element of a written buffer; otherwise, and where an operation has no vector form,
the loop stays as it is, also if it was marked.

Sums: a loop that accumulates into one place (`s = s + x[v]`) may only be vectorised if the order of
the operations does not matter. That holds for integers, and for min and max; sums and products of
floats are not reassociated, unless the function's attribute "mlcweb.reassociate" is true.
"""

from __future__ import annotations

from math import gcd, inf

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.transform.optimize.accesses import (
    REGISTER_SCOPE,
    may_alias,
)
from mlcweb.tir.transform.optimize.rewriter import Rewriter, in_sequence, loops_in, operator_name
from mlcweb.tir.transform.optimize.widen import COMPUTED_IN_FLOAT64, NoVectorForm, Widening

VECTOR_BYTES = 16
UNROLL_CHUNKS = 16
"""Marked loops of up to so many chunks are unrolled, as a vector of that length would be."""

SEQUENTIAL = (S.ForKind.SERIAL, S.ForKind.PARALLEL)
ACCUMULATIONS = (E.Add, E.Mul, E.Min, E.Max)


def vectorize(func: PrimFunc) -> PrimFunc:
    """Vectorise marked loops and innermost loops with unit stride."""
    return _Vectorize(func).run()


class _Vectorize(Rewriter):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        marked = loop.kind == S.ForKind.VECTORIZED
        if marked or (loop.kind in SEQUENTIAL and self.is_innermost(loop)):
            try:
                return self.vectorized(loop, marked)
            except NoVectorForm:
                loop = replace(loop, kind=S.ForKind.SERIAL) if marked else loop
        return super().loop(loop)

    def is_innermost(self, loop: S.For) -> bool:
        return all(inner.kind == S.ForKind.UNROLLED for inner in loops_in(loop.body))

    def vectorized(self, loop: S.For, marked: bool) -> S.Stmt:
        loop = self.rewrite_children(loop)
        body = loop.body
        reduction = None if marked else self.reduction_of(loop)
        if reduction is None:
            self.check_independence(loop)
        lanes = VECTOR_BYTES // self.widest(loop)
        extent = loop.extent
        if lanes < 2 or (isinstance(extent, E.IntImm) and extent.value < lanes):
            raise NoVectorForm
        if reduction is not None:
            return self.reduced(loop, reduction, lanes)
        return self.in_chunks(loop, body, lanes, marked)

    def in_chunks(self, loop: S.For, body: S.Stmt, lanes: int, marked: bool) -> S.Stmt:
        """The loop over chunks, and the one over what is left."""
        dtype = loop.loop_var.dtype
        chunk = E.Var(f"{loop.loop_var.name}_v", dtype)
        count, rest = self.divided(loop.extent, lanes)
        extent = self.indices.interval(loop.extent)[1]
        self.indices.ranges[chunk] = (0, max(int(extent) // lanes - 1, 0))
        base = loop.min + chunk * lanes
        wide = Widening(self, loop.loop_var, base, lanes, gathers=marked).statement(body)
        few = marked and isinstance(count, E.IntImm) and count.value <= UNROLL_CHUNKS
        kind = S.ForKind.UNROLLED if few else S.ForKind.SERIAL
        main = self.rewrite(
            replace(loop, loop_var=chunk, min=const(0, dtype), extent=count, kind=kind, body=wide)
        )
        half = lanes // 2
        if half > 1 and isinstance(rest, E.IntImm) and rest.value >= half:
            start = self.rewrite(loop.min + count * lanes)
            shorter = replace(loop, min=start, extent=rest)
            return in_sequence([main, self.in_chunks(shorter, body, half, marked)])
        return in_sequence([main, self.leftover(loop, body, count, rest, lanes)])

    def divided(self, extent: E.PrimExpr, lanes: int) -> tuple[E.PrimExpr, E.PrimExpr]:
        """How many chunks there are, and how many iterations are left."""
        return self.rewrite(extent // lanes), self.rewrite(extent % lanes)

    def leftover(
        self, loop: S.For, body: S.Stmt, count: E.PrimExpr, rest: E.PrimExpr, lanes: int
    ) -> S.Stmt:
        """The iterations after the last whole chunk, one by one."""
        var = E.Var(loop.loop_var.name, loop.loop_var.dtype)
        self.indices.ranges[var] = (0, lanes - 2)
        start = self.rewrite(loop.min + count * lanes)
        scalar = self.with_values(body, {loop.loop_var: start + var})
        serial = S.ForKind.SERIAL
        tail = replace(
            loop, loop_var=var, min=const(0, var.dtype), extent=rest, kind=serial, body=scalar
        )
        return super().loop(tail)

    def widest(self, loop: S.For) -> int:
        """Bytes of the widest element that the loop computes with; indices do not count."""
        sizes = [1]
        pending: list[Node] = [loop.body]
        while pending:
            node = pending.pop()
            if isinstance(node, E.PrimExpr):
                if not dtypes.is_bool(node.dtype) and not isinstance(node, E.StringImm):
                    if loop.loop_var in self.indices.variables(node):
                        sizes.append(dtypes.size_in_bytes(dtypes.element_of(node.dtype)))
                if isinstance(node, E.BufferLoad):
                    continue
                if operator_name(node) in COMPUTED_IN_FLOAT64:
                    sizes.append(8)
            if isinstance(node, S.BufferStore):
                sizes.append(dtypes.size_in_bytes(node.buffer.dtype))
                pending.append(node.value)
                continue
            pending.extend(children(node))
        return max(sizes)

    def check_independence(self, loop: S.For) -> None:
        """Raise NoVectorForm where iterations may touch each other's elements."""
        accesses = self.accesses.of(loop.body)
        extent = self.indices.interval(loop.extent)[1]
        local = {found.loop_var for found in loops_in(loop.body)}
        for buffer in self.accesses.written(loop.body):
            indices = []
            for access in accesses:
                if access.buffer.data is buffer.data and access.buffer.dtype == buffer.dtype:
                    indices.append(access.indices[0])
                elif may_alias(access.buffer, buffer, self.function):
                    raise NoVectorForm
            self.check_lanes(indices, loop.loop_var, int(extent), local)

    def check_lanes(
        self, indices: list[E.PrimExpr], var: E.Var, extent: int, local: set[E.Var]
    ) -> None:
        """Whether places that different iterations touch differ: all indices move with `var` by the
        same step, and else differ only by multiples of what `var` can reach."""
        first = self.indices.sum_of(indices[0])
        step = self.indices.scale_of(indices[0], var)
        if not step:
            raise NoVectorForm
        stride = 0
        for index in indices:
            total = self.indices.sum_of(index)
            if self.indices.scale_of(index, var) != step:
                raise NoVectorForm
            difference = total.plus(first, -1)
            for atom, scale in [*difference.terms.items(), *total.terms.items()]:
                if atom is var:
                    continue
                moves = atom in local or (
                    not isinstance(atom, E.Var)
                    and not local.isdisjoint(self.indices.variables(atom))
                )
                if moves or atom in difference.terms:
                    if not moves or not isinstance(atom, E.Var):
                        raise NoVectorForm
                    stride = gcd(stride, scale)
            stride = gcd(stride, difference.constant)
        if stride and stride < extent * abs(step):
            raise NoVectorForm

    def reduction_of(self, loop: S.For) -> S.BufferStore | None:
        """The store of a loop that only accumulates into one place, where its order is free."""
        store = loop.body
        if not isinstance(store, S.BufferStore) or not isinstance(store.value, ACCUMULATIONS):
            return None
        if loop.loop_var in self.indices.variables(store.indices[0]):
            return None
        value = store.value
        dtype = store.buffer.dtype
        free = not dtypes.is_float(dtype) or isinstance(value, (E.Min, E.Max))
        if not free and not self.function.attrs.get("mlcweb.reassociate"):
            return None
        if not (isinstance(value.a, E.BufferLoad) and value.a.buffer is store.buffer):
            return None
        if self.indices.key(value.a.indices[0]) != self.indices.key(store.indices[0]):
            return None
        if any(
            may_alias(read.buffer, store.buffer, self.function)
            for read in self.accesses.of(value.b)
        ):
            return None
        return store

    def reduced(self, loop: S.For, store: S.BufferStore, lanes: int) -> S.Stmt:
        """A vector of partial results, combined at the end."""
        value = store.value
        assert isinstance(value, E.BinaryExpr)
        dtype = store.buffer.dtype
        partial = decl_buffer((lanes,), dtype, f"{store.buffer.name}_partial", scope=REGISTER_SCOPE)
        place = (E.Ramp(const(0), const(1), lanes),)
        neutral = const(_neutral(type(value), dtype), dtypes.with_lanes(dtype, lanes))
        start = S.BufferStore(partial, neutral, place)
        chunk = E.Var(f"{loop.loop_var.name}_v", loop.loop_var.dtype)
        count, rest = self.divided(loop.extent, lanes)
        self.indices.ranges[chunk] = (
            0,
            max(int(self.indices.interval(loop.extent)[1]) // lanes - 1, 0),
        )
        widening = Widening(self, loop.loop_var, loop.min + chunk * lanes, lanes, gathers=False)
        wide = S.BufferStore(
            partial,
            type(value)(E.BufferLoad(partial, place), widening.vector(value.b)),
            place,
            span=store.span,
        )
        main = self.rewrite(
            replace(
                loop,
                loop_var=chunk,
                min=const(0, chunk.dtype),
                extent=count,
                body=wide,
                kind=S.ForKind.SERIAL,
            )
        )
        total: E.PrimExpr = value.a
        for lane in range(lanes):
            total = type(value)(total, E.BufferLoad(partial, (const(lane),)))
        finish = replace(store, value=total)
        body = in_sequence(
            [start, main, finish, self.leftover(loop, loop.body, count, rest, lanes)]
        )
        return S.AllocBuffer(partial, body)


def _neutral(operation: type[E.BinaryExpr], dtype: str) -> int | float:
    """The value that an accumulation starts from without a trace."""
    if operation in (E.Add, E.Mul):
        return 0 if operation is E.Add else 1
    if dtypes.is_float(dtype):
        return inf if operation is E.Min else -inf
    return dtypes.max_value(dtype) if operation is E.Min else dtypes.min_value(dtype)
