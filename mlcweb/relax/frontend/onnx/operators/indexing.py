"""Operators that choose elements by index, and that make tensors of indices."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import op
from mlcweb.relax.constant_data import HostArray
from mlcweb.relax.expr import Constant, Expr
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.onnx.arguments import axis_of, normalized
from mlcweb.relax.frontend.onnx.known import Known, known
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.frontend.onnx.tensors import dtype_name
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import PrimExpr


def counted_from_front(node: Node, index: int, extent: Extent) -> Expr:
    """An input of indices, with negative ones counted from the end."""
    constant = node.known(index)
    check_range(node, index, [extent])
    if constant is not None and not isinstance(extent, PrimExpr):
        elements = [i + extent if i < 0 else i for i in constant.elements]
        return known(constant.shape, elements, constant.dtype).constant()
    indices, dtype = node.tensor(index), node.dtype(index)
    if isinstance(extent, PrimExpr):
        raise node.unsupported(f"the extent {extent} that indices count in is symbolic")
    return _from_front(node, indices, extent, dtype)


def _from_front(node: Node, indices: Expr, extent: int | list[int], dtype: str) -> Expr:
    wrapped = indices + node.const(extent, dtype)
    return node.emit(op.where(indices < node.const(0, dtype), wrapped, indices))


def check_range(node: Node, index: int, extents: Sequence[Extent]) -> None:
    """Constant indices must be in range; those of as many axes as there are extents alternate."""
    value = node.required(index)
    data = value.data if isinstance(value, Constant) else None
    elements = value.elements if isinstance(value, Known) else ()
    if data is not None:
        elements = data.elements() if isinstance(data, HostArray) else data.numpy().ravel().tolist()
    for place, element in enumerate(elements):
        extent = extents[place % len(extents)]
        if isinstance(element, PrimExpr) or isinstance(extent, PrimExpr):
            continue
        if not -extent <= element < extent:
            raise node.wrong(f"the index {element} is out of range for an extent of {extent}")


@converter("Gather")
def _gather(node: Node) -> Expr:
    shape = node.shape(0)
    axis = axis_of(node, 0, len(shape))
    if isinstance(shape[axis], PrimExpr):
        indices = node.known(1)
        if indices is None or any(i < 0 for i in indices.elements):
            raise node.unsupported(f"indices from the end of the symbolic extent {shape[axis]}")
        return op.take(node.tensor(0), node.tensor(1), axis)
    return op.take(node.tensor(0), counted_from_front(node, 1, shape[axis]), axis)


@converter("GatherElements")
def _gather_elements(node: Node) -> Expr:
    shape = node.shape(0)
    axis = axis_of(node, 0, len(shape))
    return op.gather_elements(node.tensor(0), counted_from_front(node, 1, shape[axis]), axis)


@converter("GatherND")
def _gather_nd(node: Node) -> Expr:
    batch = node.attrs.get("batch_dims", 0)
    return op.gather_nd(node.tensor(0), _places(node, batch), batch)


def _check_places(node: Node, batch: int) -> list[int]:
    """Checks the indices of GatherND and ScatterND, gives the extents that they count in."""
    shape, ndim = node.static_shape(1), node.ndim(0)
    count = shape[-1] if shape else 0
    if not 0 <= batch <= batch + count <= ndim:
        raise node.wrong(f"indices of shape {shape} do not fit a tensor of {ndim} dimension(s)")
    if count == 0:
        raise node.unsupported("indices of no axis")
    extents = node.static_shape(0, range(batch, batch + count))
    check_range(node, 1, extents)
    return extents


def _places(node: Node, batch: int) -> Expr:
    """Indices of GatherND, with negative ones counted from the end."""
    extents = _check_places(node, batch)
    return _from_front(node, node.tensor(1), extents, node.dtype(1))


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(node: Node) -> str:
    name = node.attrs.get("reduction", "none")
    if name not in _REDUCTIONS:
        raise node.wrong(f'there is no reduction "{name}", but {", ".join(_REDUCTIONS)}')
    return _REDUCTIONS[name]


@converter("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> Expr:
    shape = node.shape(0)
    axis = axis_of(node, 0, len(shape))
    check_range(node, 1, [shape[axis]])
    chosen = node.tensor(1), node.tensor(2)
    return op.scatter_elements(node.tensor(0), *chosen, axis, _reduction(node))


@converter("ScatterND")
def _scatter_nd(node: Node) -> Expr:
    _check_places(node, 0)
    return op.scatter_nd(node.tensor(0), node.tensor(1), node.tensor(2), _reduction(node))


@converter("OneHot")
def _one_hot(node: Node) -> Expr:
    """By comparing: the values may be any two numbers, and indices may be of any type."""
    depth = int(node.number(1, "depth"))
    if depth < 1:
        raise node.wrong(f"the depth must be positive, not {depth}")
    ndim = node.ndim(0)
    axis = normalized(node, node.attrs.get("axis", -1), ndim + 1)
    indices = _from_front(node, op.astype(node.tensor(0), "int64"), depth, "int64")
    counted = node.emit(op.arange(0, depth, 1, "int64"))
    if ndim > axis:
        counted = op.expand_dims(counted, [1 + i for i in range(ndim - axis)])
    chosen = node.emit(op.equal(op.expand_dims(indices, axis), counted))
    values = node.tensor(2)
    off, on = (op.squeeze(op.strided_slice(values, [0], [i], [i + 1]), [0]) for i in range(2))
    return op.where(chosen, on, off)


@converter("Trilu")
def _triangle(node: Node) -> Expr:
    k = int(node.number(1, "k")) if node.has(1) else 0
    return (op.triu if node.attrs.get("upper", 1) else op.tril)(node.tensor(0), k)


@converter("EyeLike")
def _eye_like(node: Node) -> Expr:
    rows, columns = node.shape(0)
    dtype = node.dtype(0)
    if "dtype" in node.attrs:
        dtype = dtype_name(node.attrs["dtype"], f"{node}: the result")
    return op.eye(rows, columns, node.attrs.get("k", 0), dtype)


@converter("Range")
def _range(node: Node) -> Expr:
    names = ("start", "limit", "delta")
    dtype = node.dtype(0)
    if all(node.can_know(index) for index in range(3)):
        start, limit, delta = (node.number(index, name) for index, name in enumerate(names))
        return op.arange(start, limit, delta, dtype)
    start, limit, delta = (op.reshape(node.tensor(index), [1]) for index in range(3))
    way = node.emit(limit - start)
    if dtypes.is_float(dtype):
        count = op.ceil(op.astype(way, "float64") / op.astype(delta, "float64"))
    else:
        count = op.negative(op.floor_divide(op.negative(way), delta))
    count = op.maximum(op.astype(node.emit(count), "int64"), node.const([0], "int64"))
    (size,) = node.extents_in(count, 1, "count")
    steps = op.astype(node.emit(op.arange(0, size, 1, "int64")), dtype)
    return start + steps * delta
