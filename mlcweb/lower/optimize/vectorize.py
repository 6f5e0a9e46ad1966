"""The pass that turns loops into vector operations: marked ones, innermost ones that store
to elements next to each other, and such as have only loops of a few iterations in them.

A loop of n iterations becomes one over chunks of as many lanes as the machine's vectors have of the
widest element type, and what is left over stays scalar. Iterations may run side by side if no two
touch the same element of a written buffer; otherwise, and where an operation has no vector form,
the loop stays as it is, also if it was marked.

Sums: a loop that accumulates into one place (`s = s + x[v]`) may only be vectorised if the order of
the operations does not matter. That holds for integers, and for min and max; sums and products of
floats are not reassociated, unless the function's attribute "mlcweb.reassociate" is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children, on
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.lower.optimize.independence import SEQUENTIAL, are_independent
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.rewriter import Rewriter, loops_in
from mlcweb.lower.optimize.vector_lowering import NoVectorForm, VectorLowering
from mlcweb.lower.statement_simplifier import in_sequence
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import decl_buffer
from mlcweb.tir.contents import accesses_in, variables_used
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import call
from mlcweb.tir.operators import OPERATORS, operator_name
from mlcweb.tir.substitute import reads_memory

REASSOCIATE = "mlcweb.reassociate"
"""The attribute of functions whose sums may be added up in another order, in lanes of vectors."""

UNROLL_CHUNKS = 16
"""Marked loops of up to so many chunks are unrolled, as a vector of that length would be."""

SMALL_NEST = 32
"""Loops with so many iterations together count as part of the body of the loop around them: sums
over a window become sums of vectors."""


def vectorize(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Vectorise marked loops and innermost loops whose stores have unit stride."""
    return _Vectorize(func, machine).run()


class _Vectorize(Rewriter):
    def __init__(self, func: PrimFunc, machine: MachineModel) -> None:
        super().__init__(func)
        self.machine = machine

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        marked = loop.kind == S.ForKind.VECTORIZED
        eligible = marked or (loop.kind in SEQUENTIAL and is_innermost(loop))
        new = super().loop(loop)
        if not eligible or not isinstance(new, S.For) or new.loop_var is not loop.loop_var:
            return new
        try:
            return self.vectorized(new, marked)
        except NoVectorForm:
            return replace(new, kind=S.ForKind.SERIAL) if marked else new

    def vectorized(self, loop: S.For, marked: bool) -> S.Stmt:
        body = loop.body
        reduction = None if marked else self.reduction_of(loop)
        if reduction is None:
            if not are_independent(self, loop):
                raise NoVectorForm
        extent = loop.extent
        if reads_memory(extent) or reads_memory(loop.min):
            # What is left over would ask for them again, when the body may have changed them.
            raise NoVectorForm
        lanes = self.lanes_of(extent, self.widest(loop))
        if lanes < 2 or (isinstance(extent, E.IntImm) and extent.value < lanes):
            raise NoVectorForm
        if reduction is not None:
            return self.reduced(loop, reduction, lanes)
        return self.in_chunks(loop, body, lanes, marked)

    def lanes_of(self, extent: E.PrimExpr, size: int) -> int:
        """The lanes of `size` bytes of the longest vectors, or of such as a short loop fills."""
        length = self.machine.vector_bytes
        if isinstance(extent, E.IntImm):
            while extent.value * size < length > self.machine.min_vector_bytes:
                length //= 2
        return length // size

    def in_chunks(self, loop: S.For, body: S.Stmt, lanes: int, marked: bool) -> S.Stmt:
        """The loop over chunks, and the one over what is left."""
        dtype = loop.loop_var.dtype
        chunk = E.Var(f"{loop.loop_var.name}_v", dtype)
        count, rest = self.divided(loop.extent, lanes)
        extent = self.indices.interval(loop.extent)[1]
        self.indices.bind(chunk, 0, max(int(extent) // lanes - 1, 0))
        base = loop.min + chunk * lanes
        lowering = VectorLowering(self, self.machine, loop.loop_var, base, lanes, gathers=marked)
        wide = lowering.lowered(body)
        few = marked and isinstance(count, E.IntImm) and count.value <= UNROLL_CHUNKS
        plain = S.ForKind.SERIAL if marked else loop.kind
        kind = S.ForKind.UNROLLED if few else plain
        main = self.rewrite(
            replace(loop, loop_var=chunk, min=const(0, dtype), extent=count, kind=kind, body=wide)
        )
        left = rest.value if isinstance(rest, E.IntImm) else 0
        if left > 1:
            start = self.rewrite(loop.min + count * lanes)
            shorter = replace(loop, min=start, extent=rest)
            fewer = 1 << left.bit_length() - 1
            return in_sequence([main, self.in_chunks(shorter, body, fewer, marked)])
        return in_sequence([main, self.leftover(loop, body, count, rest, lanes)])

    def divided(self, extent: E.PrimExpr, lanes: int) -> tuple[E.PrimExpr, E.PrimExpr]:
        """How many chunks there are, and how many iterations are left."""
        return self.rewrite(extent // lanes), self.rewrite(extent % lanes)

    def leftover(
        self, loop: S.For, body: S.Stmt, count: E.PrimExpr, rest: E.PrimExpr, lanes: int
    ) -> S.Stmt:
        """The iterations after the last whole chunk, one by one."""
        var = E.Var(loop.loop_var.name, loop.loop_var.dtype)
        self.indices.bind(var, 0, lanes - 2)
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
                    if loop.loop_var in variables_used(node):
                        sizes.append(self.machine.size_of(node.dtype))
                if isinstance(node, E.BufferLoad):
                    continue
                if operator_name(node) in self.machine.computed_in_float64:
                    sizes.append(8)
            if isinstance(node, S.BufferStore):
                sizes.append(self.machine.size_of(node.buffer.dtype))
                pending.append(node.value)
                continue
            pending.extend(children(node))
        return max(sizes)

    def reduction_of(self, loop: S.For) -> S.BufferStore | None:
        """The store of a loop that only accumulates into one place, where its order is free."""
        store = loop.body
        if not isinstance(store, S.BufferStore) or not isinstance(store.value, E.BinaryExpr):
            return None
        if OPERATORS[type(store.value)].identity is None:
            return None
        if loop.loop_var in variables_used(store.indices[0]):
            return None
        value = store.value
        dtype = store.buffer.dtype
        if not self.machine.vectors_have(type(value), dtype):
            return None
        free = not dtypes.is_float(dtype) or isinstance(value, (E.Min, E.Max))
        if not free and not self.function.attrs.get(REASSOCIATE):
            return None
        if not (isinstance(value.a, E.BufferLoad) and value.a.buffer is store.buffer):
            return None
        interned = self.indices.interned
        if interned(value.a.indices[0]) is not interned(store.indices[0]):
            return None
        if any(self.may_alias(read.buffer, store.buffer) for read in accesses_in(value.b)):
            return None
        return store

    def reduced(self, loop: S.For, store: S.BufferStore, lanes: int) -> S.Stmt:
        """Vectors of partial results, combined at the end."""
        value = store.value
        assert isinstance(value, E.BinaryExpr)
        operation, dtype = type(value), store.buffer.dtype
        length = loop.extent.value if isinstance(loop.extent, E.IntImm) else 0
        step = lanes * self.terms_in_a_lane(value.b, lanes, length)
        many = self.machine.vector_sums
        vectors = many if length >= 2 * many * step else 1
        name = f"{store.buffer.name}_partial"
        partial = decl_buffer((vectors * lanes,), dtype, name, scope=REGISTER_SCOPE)
        places = [E.Ramp(const(n * lanes), const(1), lanes) for n in range(vectors)]
        sums = [E.BufferLoad(partial, (place,)) for place in places]
        identity = OPERATORS[operation].identity
        assert identity is not None
        neutral = const(identity(dtype), dtypes.with_lanes(dtype, lanes))
        statements: list[S.Stmt] = [S.BufferStore(partial, neutral, (p,)) for p in places]
        statements.append(self.accumulation(loop, store, sums, step))
        done = length - length % (vectors * step)
        if vectors > 1 and length - done >= step:
            end = self.rewrite(loop.min + done)
            remaining = replace(loop, min=end, extent=const(length - done, end.dtype))
            statements.append(self.accumulation(remaining, store, sums[:1], step))
        for other in sums[1:]:
            statements.append(S.BufferStore(partial, operation(sums[0], other), (places[0],)))
        total: E.PrimExpr = value.a
        for lane in range(lanes):
            total = operation(total, E.BufferLoad(partial, (const(lane),)))
        statements.append(replace(store, value=total))
        count, rest = self.divided(loop.extent, step)
        statements.append(self.leftover(loop, loop.body, count, rest, step))
        return S.AllocBuffer(partial, in_sequence(statements))

    def terms_in_a_lane(self, term: E.PrimExpr, lanes: int, length: int) -> int:
        """How many terms a lane of a vector of sums takes at once."""
        fits = lanes * dtypes.size_in_bytes(term.dtype) == self.machine.vector_bytes
        enough = length == 0 or length >= 2 * lanes
        return 2 if fits and enough and self.machine.pair_products and _factors(term) else 1

    def accumulation(
        self, loop: S.For, store: S.BufferStore, sums: Sequence[E.BufferLoad], step: int
    ) -> S.Stmt:
        """A loop over chunks of `step` terms for each vector of sums."""
        value = store.value
        assert isinstance(value, E.BinaryExpr)
        length = len(sums) * step
        chunk = E.Var(f"{loop.loop_var.name}_v", loop.loop_var.dtype)
        count, _ = self.divided(loop.extent, length)
        most = int(self.indices.interval(loop.extent)[1]) // length
        self.indices.bind(chunk, 0, max(most - 1, 0))
        body: list[S.Stmt] = []
        for number, total in enumerate(sums):
            base = loop.min + chunk * length + number * step
            lowering = VectorLowering(self, self.machine, loop.loop_var, base, step, gathers=False)
            if step == dtypes.lanes(total.dtype):
                wide = lowering.vector(value.b)
            else:
                a, b = (lowering.vector(factor) for factor in _factors(value.b))
                name = E.StringImm(self.machine.pair_products)
                wide = call(total.dtype, "call_llvm_pure_intrin", name, a, b)
            new = type(value)(total, wide)
            body.append(S.BufferStore(total.buffer, new, total.indices, span=store.span))
        start, kind = const(0, chunk.dtype), S.ForKind.SERIAL
        return self.rewrite(
            replace(
                loop, loop_var=chunk, min=start, extent=count, body=in_sequence(body), kind=kind
            )
        )


def is_innermost(loop: S.For) -> bool:
    """Whether a loop has no others in it but such as are written out."""
    inside = [inner for inner in loops_in(loop.body) if inner.kind != S.ForKind.UNROLLED]
    extents = [inner.extent.value for inner in inside if isinstance(inner.extent, E.IntImm)]
    return len(extents) == len(inside) and prod(extents) <= SMALL_NEST


def _factors(term: E.PrimExpr) -> tuple[E.PrimExpr, ...]:
    """Two factors in int16 of a product in int32; nothing where there are none."""
    if not isinstance(term, E.Mul) or term.dtype != "int32":
        return ()
    factors = term.a, term.b
    if not all(isinstance(f, E.Cast) and f.value.dtype in _NARROW for f in factors):
        return ()
    return tuple(cast("int16", factor.value) for factor in factors)  # type: ignore[attr-defined]


_NARROW = ("int8", "uint8", "int16")
"""The types whose numbers int16 has, too."""
