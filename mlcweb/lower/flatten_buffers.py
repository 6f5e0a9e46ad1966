"""The pass that gives every buffer one dimension."""

from __future__ import annotations

from functools import reduce
from math import gcd, prod

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, multiply
from mlcweb.tir.buffer import Buffer, has_constant_layout, row_major_strides
from mlcweb.tir.function import PrimFunc


@lowering_pass("FlattenBuffer", needed=True, removes=("accesses by several indices",))
def flatten_buffers(func: PrimFunc) -> PrimFunc:
    """Rewrite accesses to a flat index, by the strides and offset of the buffer.

    The parameters keep their buffers, which say what callers pass; the flat ones share their data.
    """
    owners = {buffer.data: buffer for buffer in func.parameter_buffers}
    return func.with_body(_Flattening(owners).rewrite(func.body))


class _Flattening(Mutator):
    """`owners` are the buffers that have memory of their own, by their data."""

    def __init__(self, owners: dict[E.Var, Buffer]) -> None:
        self.owners = owners
        self.flat: dict[Buffer, Buffer] = {}

    def flattened(self, buffer: Buffer) -> Buffer:
        flat = self.flat.get(buffer)
        if flat is None:
            flat = buffer if _is_flat(buffer) else _flat(buffer)
            owner = self.owners.get(buffer.data, buffer)
            if owner is not buffer and not has_constant_layout(flat):
                # A view whose place depends on loops; flat, it is all of the memory.
                flat = replace(flat, shape=(_elements(owner, buffer),))
            self.flat[buffer] = flat
        return flat

    @on(S.AllocBuffer, S.DeclBuffer)
    def declaration(self, statement: S.AllocBuffer | S.DeclBuffer) -> S.Stmt:
        if isinstance(statement, S.AllocBuffer):
            self.owners[statement.buffer.data] = statement.buffer
        buffer, body = self.flattened(statement.buffer), self.rewrite(statement.body)
        if buffer is statement.buffer and body is statement.body:
            return statement
        return replace(statement, buffer=buffer, body=body)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        buffer = self.flattened(node.buffer)
        if buffer is node.buffer:
            return new
        return replace(new, buffer=buffer, indices=(_flat_index(node.buffer, new.indices),))


def _is_flat(buffer: Buffer) -> bool:
    at_start = isinstance(buffer.elem_offset, E.IntImm) and buffer.elem_offset.value == 0
    return len(buffer.shape) == 1 and not buffer.strides and at_start


def _flat(buffer: Buffer) -> Buffer:
    index_type = buffer.shape[0].dtype if buffer.shape else "int32"
    # With strides, as far as the last element of the outermost dimension reaches.
    factors = (buffer.strides[0], buffer.shape[0]) if buffer.strides else buffer.shape
    numbers = [part.value for part in (buffer.elem_offset, *factors) if isinstance(part, E.IntImm)]
    if len(numbers) > len(factors):
        size = _size(buffer, numbers[0] + prod(numbers[1:]), index_type)
    else:
        size = add(buffer.elem_offset, reduce(multiply, factors, const(1, index_type)))
    zero = const(0, index_type)
    return replace(buffer, shape=(size,), strides=(), elem_offset=zero, axis_separators=())


def _size(buffer: Buffer, count: int, index_type: str) -> E.PrimExpr:
    """A number of elements, which indices must reach."""
    if count > dtypes.max_value(index_type):
        raise TVMError(
            f'The buffer "{buffer.name}" has {count} elements, more than an index of '
            f"{index_type} reaches; write its shape as int64",
            buffer.span,
        )
    return const(count, index_type)


def _elements(owner: Buffer, view: Buffer) -> E.PrimExpr:
    """How many elements of a view's type the memory of a buffer holds."""
    count = (owner if _is_flat(owner) else _flat(owner)).shape[0]
    have, want = (dtypes.size_in_bytes(buffer.dtype) for buffer in (owner, view))
    if isinstance(count, E.IntImm):
        return _size(view, count.value * have // want, count.dtype)
    common = gcd(have, want)
    return floordiv(multiply(count, have // common), want // common)


def _flat_index(buffer: Buffer, indices: tuple[E.PrimExpr, ...]) -> E.PrimExpr:
    place = buffer.elem_offset
    for index, stride in zip(indices, row_major_strides(buffer), strict=True):
        if isinstance(index, E.Ramp) and not isinstance(place, E.Ramp):
            base = add(place, multiply(index.base, stride))
            place = E.Ramp(base, multiply(index.stride, stride), index.lanes)
        elif isinstance(place, E.Ramp) and index.dtype == stride.dtype:
            place = replace(place, base=add(place.base, multiply(index, stride)))
        else:
            place = add(place, multiply(index, stride))
    return place
