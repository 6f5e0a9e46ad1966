"""Operators that order elements, or pick those that are something."""

from __future__ import annotations

from mlcweb.relax import op
from mlcweb.relax.expr import Expr, TupleGetItem
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.onnx.arguments import axis_of, normalized
from mlcweb.relax.frontend.onnx.node import Node, Value, converter
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


@converter("TopK")
def _topk(node: Node) -> list[Expr]:
    axis = axis_of(node, -1, node.ndim(0))
    k = node.attrs["k"] if "k" in node.attrs else int(node.number(1, "k"))
    largest = bool(node.attrs.get("largest", 1))
    if k == 0:
        shape = [0 if i == axis else extent for i, extent in enumerate(node.shape(0))]
        return [op.zeros(shape, node.dtype(0)), op.zeros(shape, "int64")]
    both = node.emit(op.topk(node.tensor(0), k, axis, "both", largest, "int64"))
    return [TupleGetItem(both, 0), TupleGetItem(both, 1)]


def found_when_run(node: Node, value: Expr, name: str, *extents: Extent | None) -> Expr:
    """A tensor whose first unknown extents get names: it can be computed with from here on.
    `extents`: None stands for one that is not known."""
    var = node.emit(value)
    shape = [PrimVar(name, "int64") if extent is None else extent for extent in extents]
    info = TensorStructInfo(shape, node.info_of(var).dtype)
    return node.builder.match_cast(var, info)


@converter("NonZero")
def _nonzero(node: Node) -> Expr:
    return found_when_run(node, op.nonzero(node.tensor(0)), "found", max(node.ndim(0), 1), None)


@converter("Compress")
def _compress(node: Node) -> Expr:
    """The slices where the condition holds: their places are found when the model runs."""
    x, condition = node.tensor(0), node.tensor(1)
    axis = node.attrs.get("axis")
    if axis is None:
        x, axis = node.emit(op.flatten(x)), 0
    axis = normalized(node, axis, node.info_of(x).ndim)
    places = found_when_run(node, op.nonzero(condition), "kept", 1, None)
    return op.take(x, node.emit(op.squeeze(places, [0])), axis)


@converter("Unique")
def _unique(node: Node) -> Value | list[Value]:
    axis = node.attrs.get("axis")
    shape = node.shape(0)
    extents: list[Extent | None] = [None]
    if axis is not None:
        axis = normalized(node, axis, len(shape))
        extents = [None if i == axis else extent for i, extent in enumerate(shape)]
    ordered = bool(node.attrs.get("sorted", 1))
    requested = [bool(name) for name in (*node.outputs, "", "", "")[1:4]]
    first, inverse, counts = requested
    result = node.emit(op.unique(node.tensor(0), ordered, first, inverse, counts, axis))
    if not any(requested):
        return found_when_run(node, result, "different", *extents)
    count = PrimVar("different", "int64")
    values = TensorStructInfo(
        [count if extent is None else extent for extent in extents], node.dtype(0)
    )
    elements = _count(shape) if axis is None else shape[axis]
    infos = [TensorStructInfo([n], "int64") for n in (count, elements, count)]
    outputs: list[Value] = [node.builder.match_cast(node.emit(TupleGetItem(result, 0)), values)]
    place = 1
    for asked, info in zip(requested, infos, strict=True):
        outputs.append(None)
        if asked:
            var = node.emit(TupleGetItem(result, place))
            outputs[-1] = node.builder.match_cast(var, info)
            place += 1
    return outputs


def _count(shape: list[Extent]) -> PrimExpr:
    from mlcweb.relax import dims
    from mlcweb.tir.expr import IntImm

    return dims.product([n if isinstance(n, PrimExpr) else IntImm("int64", n) for n in shape])


@converter("ReverseSequence")
def _reverse_sequence(node: Node) -> Expr:
    return op.reverse_sequence(
        node.tensor(0),
        node.tensor(1),
        node.attrs.get("time_axis", 0),
        node.attrs.get("batch_axis", 1),
    )
