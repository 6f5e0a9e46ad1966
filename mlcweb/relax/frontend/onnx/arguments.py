"""Reading the arguments of operators, which moved from attributes to inputs between opsets."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.frontend.common import Extent, as_extents
from mlcweb.relax.frontend.onnx.known import Known, known
from mlcweb.relax.frontend.onnx.node import Node
from mlcweb.relax.frontend.onnx.tensors import dtype_name
from mlcweb.relax.struct_info import extents
from mlcweb.tir.arithmetic import floordiv
from mlcweb.tir.expr import IntImm, PrimExpr


def axis_of(node: Node, default: int, ndim: int) -> int:
    """The attribute `axis`, counted from the front."""
    return normalized(node, node.attrs.get("axis", default), ndim)


def normalized(node: Node, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise node.wrong(f"there is no axis {axis} in a tensor of {ndim} dimension(s)")
    return axis % ndim


def int_list(node: Node, name: str, index: int) -> list[int] | None:
    """Integers that are an attribute or an input; None where they are neither."""
    if node.has(index):
        return node.ints(index, name)
    return node.attrs.get(name)


def cast_dtype(node: Node) -> str:
    """What Cast and others make, by their attribute `to` (a name in old models)."""
    to = node.attrs["to"]
    return to.lower() if isinstance(to, str) else dtype_name(to, f"{node}: the result")


def fill_value(node: Node) -> Known:
    """The one element of ConstantOfShape."""
    value = node.attrs.get("value", known((1,), (0.0,), "float32"))
    if not isinstance(value, Known) or len(value.elements) != 1:
        raise node.wrong("value must be a tensor of one element")
    return value


def reduced_axes(node: Node, ndim: int) -> tuple[list[int], bool]:
    """The axes that a reduction runs over, and whether they stay as extents of 1."""
    axes = int_list(node, "axes", 1)
    if not axes:
        nothing = node.attrs.get("noop_with_empty_axes", 0)
        axes = [] if nothing else range(ndim)
    return [normalized(node, axis, ndim) for axis in axes], bool(node.attrs.get("keepdims", 1))


def slice_arguments(
    node: Node, ndim: int
) -> tuple[list[Extent], list[Extent], list[int], list[int]]:
    """Starts, ends, axes and steps of Slice; starts and ends may be symbolic."""
    if node.opset < 10 and "starts" in node.attrs:
        starts, ends = node.attrs["starts"], node.attrs["ends"]
        axes = node.attrs.get("axes")
        steps = None
    else:
        starts, ends = node.extents(1, "starts"), node.extents(2, "ends")
        axes = node.ints(3, "axes") if node.has(3) else None
        steps = node.ints(4, "steps") if node.has(4) else None
    places = range(len(starts)) if axes is None else axes
    if steps and 0 in steps:
        raise node.wrong(f"a step is 0: {steps}")
    return starts, ends, [normalized(node, a, ndim) for a in places], steps or [1] * len(starts)


def result_shape(node: Node, shape: Sequence[Extent]) -> list[Extent]:
    """The shape that Reshape, Squeeze, Unsqueeze or Flatten gives to a tensor of `shape`."""
    return _RESULT_SHAPES[node.op_type](node, list(shape))


def _reshape(node: Node, shape: list[Extent]) -> list[Extent]:
    if node.has(1):
        target = list(node.needed(1, "shape").elements)
    else:
        target = list(node.attrs["shape"])
    if not node.attrs.get("allowzero", 0):
        target = [shape[i] if is_number(extent, 0) else extent for i, extent in enumerate(target)]
    if any(not isinstance(extent, PrimExpr) and extent < -1 for extent in target):
        raise node.wrong(f"the shape {target} has a negative extent")
    unknown = [i for i, extent in enumerate(target) if is_number(extent, -1)]
    if len(unknown) > 1:
        raise node.wrong(f"the shape {target} leaves {len(unknown)} extents open; one can be")
    if unknown:
        (place,) = unknown
        rest = target[:place] + target[place + 1 :]
        target[place] = _quotient(shape, rest)
    return target


def is_number(extent: Extent, value: int) -> bool:
    return not isinstance(extent, PrimExpr) and extent == value


def _quotient(shape: Sequence[Extent], rest: Sequence[Extent]) -> Extent:
    """The extent that is left of a shape when others are taken out."""
    whole, parts = dims.product(extents(shape)), dims.product(extents(rest))
    if isinstance(parts, IntImm) and parts.value == 0:
        return 0
    return as_extents([dims.simplify(floordiv(whole, parts))])[0]


def _squeeze(node: Node, shape: list[Extent]) -> list[Extent]:
    axes = int_list(node, "axes", 1)
    if axes is None:
        return [extent for extent in shape if not is_number(extent, 1)]
    dropped = {normalized(node, axis, len(shape)) for axis in axes}
    for axis in dropped:
        if not isinstance(shape[axis], PrimExpr) and shape[axis] != 1:
            raise node.wrong(f"axis {axis} of the shape {shape} is not 1")
    return [extent for axis, extent in enumerate(shape) if axis not in dropped]


def _unsqueeze(node: Node, shape: list[Extent]) -> list[Extent]:
    axes = int_list(node, "axes", 1) or []
    ndim = len(shape) + len(axes)
    new = {normalized(node, axis, ndim) for axis in axes}
    if len(new) < len(axes):
        raise node.wrong(f"the axes {axes} name one place twice")
    old = iter(shape)
    return [1 if axis in new else next(old) for axis in range(ndim)]


def _flatten(node: Node, shape: list[Extent]) -> list[Extent]:
    axis = node.attrs.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return as_extents([dims.product(extents(side)) for side in (shape[:axis], shape[axis:])])


_RESULT_SHAPES = {
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
}
