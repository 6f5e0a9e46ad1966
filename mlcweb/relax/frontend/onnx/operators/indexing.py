"""Operators that choose elements by index, and that make tensors of indices."""

from __future__ import annotations

from typing import Any

from mlcweb.relax import op
from mlcweb.relax.frontend.onnx.arguments import axis_of, normalized
from mlcweb.relax.frontend.onnx.known import known
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.frontend.onnx.tensors import dtype_name
from mlcweb.tir.expr import PrimExpr


def counted_from_front(node: Node, index: int, extent: Any) -> Any:
    """An input of indices, with negative ones counted from the end."""
    found = node.known(index)
    if found is not None and not isinstance(extent, PrimExpr):
        elements = [i + extent if i < 0 else i for i in found.elements]
        return known(found.shape, elements, found.dtype).constant()
    indices, dtype = node.tensor(index), node.dtype(index)
    if isinstance(extent, PrimExpr):
        raise node.unsupported(f"the extent {extent} that indices count in is symbolic")
    wrapped = op.add(indices, node.const(extent, dtype))
    return node.emit(op.where(op.less(indices, node.const(0, dtype)), wrapped, indices))


@converter("Gather")
def _gather(node: Node) -> Any:
    shape = node.shape(0)
    axis = axis_of(node, 0, len(shape))
    if isinstance(shape[axis], PrimExpr):
        indices = node.known(1)
        if indices is None or any(i < 0 for i in indices.elements):
            raise node.unsupported(f"indices from the end of the symbolic extent {shape[axis]}")
        return op.take(node.tensor(0), node.tensor(1), axis)
    return op.take(node.tensor(0), counted_from_front(node, 1, shape[axis]), axis)


@converter("GatherElements")
def _gather_elements(node: Node) -> Any:
    shape = node.shape(0)
    axis = axis_of(node, 0, len(shape))
    return op.gather_elements(node.tensor(0), counted_from_front(node, 1, shape[axis]), axis)


@converter("GatherND")
def _gather_nd(node: Node) -> Any:
    batch = node.attrs.get("batch_dims", 0)
    return op.gather_nd(node.tensor(0), _places(node, batch), batch)


def _places(node: Node, batch: int) -> Any:
    """Indices of GatherND and ScatterND, with negative ones counted from the end."""
    count = node.static_shape(1)[-1]
    extents = node.static_shape(0, range(batch, batch + count))
    dtype, indices = node.dtype(1), node.tensor(1)
    wrapped = op.add(indices, node.const(extents, dtype))
    return node.emit(op.where(op.less(indices, node.const(0, dtype)), wrapped, indices))


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converter("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> Any:
    shape = node.shape(0)
    axis = axis_of(node, 0, len(shape))
    indices = counted_from_front(node, 1, shape[axis])
    how = _REDUCTIONS[node.attrs.get("reduction", "none")]
    return op.scatter_elements(node.tensor(0), indices, node.tensor(2), axis, how)


@converter("ScatterND")
def _scatter_nd(node: Node) -> Any:
    how = _REDUCTIONS[node.attrs.get("reduction", "none")]
    return op.scatter_nd(node.tensor(0), _places(node, 0), node.tensor(2), how)


@converter("OneHot")
def _one_hot(node: Node) -> Any:
    """By comparing: the values may be any two numbers, and indices may be of any type."""
    depth = int(node.number(1, "depth"))
    ndim = node.ndim(0)
    axis = normalized(node, node.attrs.get("axis", -1), ndim + 1)
    indices = op.astype(node.tensor(0), "int64")
    wrapped = op.add(indices, node.const(depth, "int64"))
    indices = node.emit(op.where(op.less(indices, node.const(0, "int64")), wrapped, indices))
    counted = node.const(list(range(depth)), "int64")
    if ndim > axis:
        counted = op.expand_dims(counted, [1 + i for i in range(ndim - axis)])
    chosen = node.emit(op.equal(op.expand_dims(indices, axis), counted))
    values = node.tensor(2)
    off, on = (op.squeeze(op.strided_slice(values, [0], [i], [i + 1]), [0]) for i in range(2))
    return op.where(chosen, on, off)


@converter("Trilu")
def _triangle(node: Node) -> Any:
    k = int(node.number(1, "k")) if node.has(1) else 0
    return (op.triu if node.attrs.get("upper", 1) else op.tril)(node.tensor(0), k)


@converter("EyeLike")
def _eye_like(node: Node) -> Any:
    rows, columns = node.static_shape(0)
    dtype = node.dtype(0)
    if "dtype" in node.attrs:
        dtype = dtype_name(node.attrs["dtype"], f"{node}: the result")
    return op.eye(rows, columns, node.attrs.get("k", 0), dtype)


@converter("Range")
def _range(node: Node) -> Any:
    start, limit, delta = (
        node.number(i, name) for i, name in enumerate(("start", "limit", "delta"))
    )
    return op.arange(start, limit, delta, node.dtype(0))
