"""Lowering of products of matrices, and of shapes as tensors."""

from __future__ import annotations

from typing import Any

from mlcweb import te, topi
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import attribute, by, enter, fields, known
from mlcweb.tir import arithmetic


def _outer(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return te.compute((a.shape[0], b.shape[0]), lambda i, j: a(i) * b(j), "outer")


def _einsum(builder: BlockBuilder, call: E.Call) -> Any:
    operands = fields(builder, call.args[0])
    return builder.call_te(topi.einsum, attribute(call, "subscripts"), *operands)


def _numbers(values: Any) -> te.Tensor:
    """A vector of the extents of a shape."""

    def element(i: Any) -> Any:
        value = arithmetic.const(0, "int64")
        for place, extent in enumerate(values):
            here = arithmetic.equal(i, arithmetic.const(place, "int64"))
            value = arithmetic.select(here, arithmetic.cast("int64", extent), value)
        return value

    return te.compute((arithmetic.const(len(values), "int64"),), element, "shape_to_tensor")


def _shape_to_tensor(builder: BlockBuilder, call: E.Call) -> Any:
    shape = known(builder, call.args[0])
    if shape.values is None:
        return call
    return builder.call_te(_numbers, list(shape.values), primfunc_name_hint="shape_to_tensor")


def _size(builder: BlockBuilder, call: E.Call) -> Any:
    shape = known(builder, call.args[0]).values

    def size(values: Any) -> te.Tensor:
        total = arithmetic.const(1, "int64")
        for value in values:
            total = arithmetic.multiply(total, value)
        return topi.full((), "int64", total)

    return builder.call_te(size, list(shape))


enter({
    "matmul": by(topi.matmul, "out_dtype", hint="matmul"),
    "outer": by(_outer, hint="outer"),
    "einsum": _einsum,
    "shape_to_tensor": _shape_to_tensor,
    "size": _size,
})  # fmt: skip
