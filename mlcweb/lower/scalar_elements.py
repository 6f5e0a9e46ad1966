"""Buffers whose elements are vectors, as buffers of numbers with one dimension more: `A[i]` of
`T.Buffer((n,), "float32x4")` is `A[i, 0:4]` of `T.Buffer((n, 4), "float32")`."""

from __future__ import annotations

from operator import is_
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import BufferMutator


def scalar_elements(func: PrimFunc) -> PrimFunc:
    """The function whose buffers, its parameters too, have numbers as elements.

    Raises:
        TVMError: several vectors of a buffer are accessed at once.
    """
    rewriter = _ScalarElements()
    params = {param: rewriter.buffer(buffer) for param, buffer in func.buffer_map.items()}
    new = func.with_body(rewriter.rewrite(func.body))
    is_same = all(map(is_, rewriter.buffers.keys(), rewriter.buffers.values()))
    return func if is_same else replace(new, buffer_map=params)


class _ScalarElements(BufferMutator):
    def changed(self, buffer: Buffer) -> Buffer:
        lanes = dtypes.lanes(buffer.dtype)
        if lanes == 1:
            return buffer
        strides = (*(stride * lanes for stride in buffer.strides), const(1))
        offset = buffer.elem_offset
        return replace(
            buffer,
            dtype=dtypes.element_of(buffer.dtype),
            shape=(*buffer.shape, const(lanes)),
            strides=strides if buffer.strides else (),
            elem_offset=offset if isinstance(offset, E.Var) else offset * lanes,
        )

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: Any) -> Any:
        new, buffer = self.rewrite_children(node), self.buffer(node.buffer)
        if buffer is node.buffer:
            return new
        if any(dtypes.lanes(index.dtype) > 1 for index in new.indices):
            raise TVMError(
                f'"{buffer.name}" is a buffer of vectors, of which one is accessed at a time; '
                "declare its numbers one by one, and index it with a slice",
                node.span,
            )
        lane = E.Ramp(const(0), const(1), dtypes.lanes(node.buffer.dtype))
        return replace(new, buffer=buffer, indices=(*new.indices, lane))

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        new, buffer = self.rewrite_children(region), self.buffer(region.buffer)
        if buffer is region.buffer:
            return new
        lanes = Range(const(0), buffer.shape[-1])
        return replace(new, buffer=buffer, region=(*new.region, lanes))
