"""Loops over neighbouring elements, in a language that has vectors but no pointers: memory is an
array of vectors where all that write it write vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mlcweb.analysis.threads import is_shared
from mlcweb.arith import Analyzer
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.codegen.gpu.vector_copies import first_neighbour
from mlcweb.ir.visitor import children, find_nodes, walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, floordiv
from mlcweb.tir.operators import key_of, operands_of
from mlcweb.tir.substitute import uses

_LANES = (2, 4)
_TYPES = ("float32", "int32", "uint32")

BY_LANES = (E.Add, E.Sub, E.Mul, E.Div, E.Min, E.Max, "exp", "exp2", "log", "log2", "sqrt", "rsqrt",
            "sin", "cos", "tanh", "floor", "ceil", "trunc", "fabs", "abs")  # fmt: skip
"""Operators that WGSL applies to each lane of vectors."""


class VectorStore(NamedTuple):
    """A store whose iterations are the lanes of one vector, and the accesses that are vectors, too,
    with the index of the vector."""

    store: S.BufferStore
    lanes: int
    vectors: dict[E.BufferLoad | S.BufferStore, E.PrimExpr]


def vector_store(loop: S.For, analyzer: Analyzer) -> VectorStore | None:
    """The store of a vector that a vectorized loop is; None where it is something else, or its
    elements are no vectors: 2 or 4 neighbours of 4 bytes each, the first at a multiple of that."""
    store, extent = loop.body, loop.extent
    if loop.kind is not S.ForKind.VECTORIZED or not isinstance(store, S.BufferStore):
        return None
    if not isinstance(extent, E.IntImm) or extent.value not in _LANES:
        return None
    accesses = list(_lanewise(store.value, loop.loop_var))
    if None in accesses:
        return None
    vectors: dict[E.BufferLoad | S.BufferStore, E.PrimExpr] = {}
    for part in (store, *accesses):
        if part is None or part.buffer.dtype not in _TYPES or len(part.indices) != 1:
            return None
        first = first_neighbour(part.indices[0], loop, extent.value, analyzer)
        if first is None:
            return None
        vectors[part] = analyzer.simplify(floordiv(first, const(extent.value, first.dtype)))
    if any(_is_scalar_of(part, store, vectors) for part in walk(store.value)):
        return None
    return VectorStore(store, extent.value, vectors)


def _is_scalar_of(part: object, store: S.BufferStore, vectors: object) -> bool:
    """Whether a lane reads what another lane may have stored."""
    is_load = isinstance(part, E.BufferLoad) and part.buffer.data is store.buffer.data
    return is_load and part not in vectors  # type: ignore[operator]


def _lanewise(value: E.PrimExpr, var: E.Var) -> Iterator[E.BufferLoad | None]:
    """The loads of a value that each lane reads for itself; a None where the value has an operator
    that is not one of vectors."""
    if not uses(value, var):
        return
    if isinstance(value, E.BufferLoad):
        yield value
        return
    key = key_of(value)
    is_exact = key is not E.Div or value.dtype == "float32"
    if key not in BY_LANES or value.dtype not in _TYPES or not is_exact:
        yield None
        return
    for operand in operands_of(value):
        yield from _lanewise(operand, var)


def vector_memory(kernel: DeviceKernel) -> dict[E.Var, int]:
    """The data that is an array of vectors in a kernel, and their lanes: some loop moves vectors of
    it, and no store is of one element, which threads would do to the rest of its vector as well.
    Memory of a thread for itself may be stored either way."""
    stores = list(_vector_stores(kernel.body, Analyzer(kernel.domains)))
    if not stores:
        return {}
    sizes, refused = _memory(kernel, {vector.store for vector in stores})
    while True:
        lanes: dict[E.Var, set[int]] = {}
        for vector in stores:
            for part in vector.vectors:
                lanes.setdefault(part.buffer.data, set()).add(vector.lanes)
        for data, counts in lanes.items():
            if len(counts) > 1 or sizes.get(data, 1) % max(counts):
                refused.add(data)
        accepted = [v for v in stores if not any(part.buffer.data in refused for part in v.vectors)]
        refused |= {vector.store.buffer.data for vector in stores if vector not in accepted}
        if len(accepted) == len(stores):
            return {data: counts.pop() for data, counts in lanes.items()}
        stores = accepted


def _memory(
    kernel: DeviceKernel, vectors: set[S.BufferStore]
) -> tuple[dict[E.Var, int], set[E.Var]]:
    """The constant sizes of memory in a kernel, and the data of which single elements matter: it is
    seen as another type, passed on by its address, or other threads may see the elements stored."""
    own = [part.buffer for part in find_nodes(kernel.body, S.AllocBuffer)]
    owners = {buffer.data: buffer for buffer in (*kernel.buffers, *kernel.shared, *own)}
    private = {buffer.data for buffer in own if not is_shared(buffer)}
    single: set[E.Var] = set()
    for part in walk(kernel.body):
        if isinstance(part, E.Var) and part.dtype == "handle":
            single.add(part)
        if not isinstance(part, (E.BufferLoad, S.BufferStore)):
            continue
        data = part.buffer.data
        is_view = data not in owners or owners[data].dtype != part.buffer.dtype
        is_stored = isinstance(part, S.BufferStore) and part not in vectors
        if is_view or (is_stored and data not in private):
            single.add(data)
    extents = {data: buffer.shape[0] for data, buffer in owners.items()}
    sizes = {data: size.value for data, size in extents.items() if isinstance(size, E.IntImm)}
    return sizes, single


def _vector_stores(statement: S.Stmt, analyzer: Analyzer) -> Iterator[VectorStore]:
    """The stores of vectors in a statement."""
    if isinstance(statement, S.For):
        if (vector := vector_store(statement, analyzer)) is not None:
            yield vector
            return
        analyzer.bind(statement.loop_var, statement.domain)
    for part in children(statement):
        if isinstance(part, S.Stmt):
            yield from _vector_stores(part, analyzer)
