"""Operators that arrange elements anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.relax import dims, op
from mlcweb.relax.expr import Expr, TupleGetItem
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.onnx import arguments
from mlcweb.relax.frontend.onnx.arguments import axis_of, normalized
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.frontend.onnx.operators.padding import by_index
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

if TYPE_CHECKING:
    from mlcweb import te


@converter("Reshape", "Squeeze", "Unsqueeze", "Flatten")
def _reshape(node: Node) -> Expr:
    shape = node.shape(0)
    target = arguments.result_shape(node, shape)
    if any(not isinstance(extent, PrimExpr) and extent == 0 for extent in target):
        return op.zeros(target, node.dtype(0))
    return op.reshape(node.tensor(0), target)


@converter("Transpose")
def _transpose(node: Node) -> Expr:
    return op.permute_dims(node.tensor(0), node.attrs.get("perm"))


@converter("Concat")
def _concat(node: Node) -> Expr:
    return op.concat(node.tensors(), axis_of(node, 1, node.ndim(0)))


@converter("Split")
def _split(node: Node) -> Expr | list[TupleGetItem]:
    axis = axis_of(node, 0, node.ndim(0))
    sizes = arguments.int_list(node, "split", 1)
    if sizes is None:
        extent = node.static_shape(0, [axis])[0]
        count = node.attrs.get("num_outputs", len(node.outputs))
        if count != len(node.outputs):
            raise node.wrong(f"{len(node.outputs)} outputs, where num_outputs={count}")
        step = -(-extent // count)
        sizes = [min(step, extent - i * step) for i in range(count)]
    if len(sizes) == 1:
        return node.tensor(0)
    places = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    parts = node.emit(op.split(node.tensor(0), places, axis))
    return [TupleGetItem(parts, i) for i in range(len(sizes))]


@converter("Slice")
def _slice(node: Node) -> Expr:
    if any(node.has(index) and not node.can_know(index) for index in (1, 2, 4)):
        return _dynamic_slice(node)
    starts, ends, axes, steps = arguments.slice_arguments(node, node.ndim(0))
    shape = node.shape(0)
    sliced = [
        place
        for place, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True))
        if not (arguments.is_number(start, 0) and step == 1 and _reaches(end, shape[axes[place]]))
    ]
    if not sliced:
        return node.tensor(0)
    chosen: list[list[Any]] = [
        [values[place] for place in sliced] for values in (axes, starts, ends, steps)
    ]
    for place, (axis, first, last, step) in enumerate(zip(*chosen, strict=True)):
        extent: Any = shape[axis]
        if any(isinstance(value, PrimExpr) for value in (extent, first, last)):
            continue
        taken = range(*slice(first, last, step).indices(extent))
        chosen[1][place] = taken.start
        # A range that runs backwards to the front ends before 0, which -1 does not say.
        chosen[2][place] = taken.stop if taken.stop >= 0 else -extent - 1
    # A symbolic end is an extent that the model computed to be within the tensor.
    symbolic = any(isinstance(value, PrimExpr) for value in chosen[1] + chosen[2])
    return op.strided_slice(node.tensor(0), *chosen, assume_inbound=symbolic)


def _dynamic_slice(node: Node) -> Expr:
    """By positions that come with a run."""
    shape = node.shape(0)
    (count,) = node.static_shape(1)
    if count > len(shape):
        raise node.wrong(f"{count} axes are to be sliced, of a tensor that has {len(shape)}")
    axes = node.ints(3, "axes") if node.has(3) else list(range(count))
    axes = [normalized(node, axis, len(shape)) for axis in axes]

    def vector(index: int, other: int) -> Expr:
        """An input as a vector for all axes, `other` for those that are not sliced."""
        if not node.has(index):
            return node.const([1] * len(shape), "int64")
        whole = node.emit(op.astype(node.tensor(index), "int64"))
        parts: list[Expr] = [node.const([other], "int64")] * len(shape)
        for place, axis in enumerate(axes):
            parts[axis] = node.emit(op.strided_slice(whole, [0], [place], [place + 1]))
        return node.emit(op.concat(parts, 0))

    positions = vector(1, 0), vector(2, 2**63 - 1), vector(4, 1)
    result = node.emit(op.dynamic_strided_slice(node.tensor(0), *positions))
    name = node.builder.get_unique_name("sliced")
    extents = [
        PrimVar(f"{name}_{axis}", "int64") if axis in axes else extent
        for axis, extent in enumerate(shape)
    ]
    return node.builder.match_cast(result, TensorStructInfo(extents, node.dtype(0)))


def _reaches(end: Extent, extent: Extent) -> bool:
    """Whether a slice goes on to the end of an axis; symbolic extents are below 2**31 - 1."""
    if isinstance(end, PrimExpr):
        return isinstance(extent, PrimExpr) and dims.equal(end, extent)
    return end >= (2**31 - 1 if isinstance(extent, PrimExpr) else extent)


@converter("Expand")
def _expand(node: Node) -> Expr:
    target = node.elements(1, "shape")
    shape = node.shape(0)
    ndim = max(len(shape), len(target))
    shape = [1] * (ndim - len(shape)) + shape
    target = [1] * (ndim - len(target)) + target
    runtime = not node.can_know(1)
    if runtime and any(isinstance(extent, PrimExpr) for extent in shape):
        raise node.unsupported(f"a shape that comes with a run, for a tensor of the shape {shape}")
    # An extent other than 1 stays as it is, whether 1 or itself is asked for.
    full = [
        old if arguments.is_number(new, 1) or (runtime and old != 1) else new
        for old, new in zip(shape, target, strict=True)
    ]
    return op.broadcast_to(node.tensor(0), full)


@converter("ConstantOfShape")
def _constant_of_shape(node: Node) -> Expr:
    fill = arguments.fill_value(node)
    shape = node.elements(0, "shape")
    return op.full(shape, node.const(fill.elements[0], fill.dtype), fill.dtype)


@converter("Tile")
def _tile(node: Node) -> Expr:
    if node.can_know(1):
        return op.tile(node.tensor(0), node.ints(1, "repeats"))
    return node.builder.emit_te(_tiled, node.tensor(0), node.elements(1, "repeats"))


def _tiled(x: te.Tensor, repeats: list[Extent]) -> te.Tensor:
    from mlcweb import te, tir

    shape = [extent * count for extent, count in zip(x.shape, repeats, strict=True)]
    return te.compute(
        shape,
        lambda *index: x(*(tir.floormod(i, n) for i, n in zip(index, x.shape, strict=True))),
        name="tile",
    )


@converter("Pad")
def _pad(node: Node) -> Expr:
    shape = node.shape(0)
    widths = node.attrs.get("pads", node.attrs.get("paddings"))
    if widths is None:
        widths = node.ints(1, "pads")
    axes = node.ints(3, "axes") if node.has(3) else range(len(shape))
    before, behind = [0] * len(shape), [0] * len(shape)
    for place, axis in enumerate(axes):
        axis = normalized(node, axis, len(shape))
        before[axis], behind[axis] = widths[place], widths[len(axes) + place]
    x, mode = node.tensor(0), node.attrs.get("mode", "constant")
    if mode != "constant":
        return node.builder.emit_te(by_index, x, before, behind, mode)
    if any(width < 0 for width in before + behind):
        extents = node.static_shape(0)
        starts = [max(-width, 0) for width in before]
        ends = [n + min(width, 0) for n, width in zip(extents, behind, strict=True)]
        x = node.emit(op.strided_slice(x, list(range(len(shape))), starts, ends))
        before, behind = ([max(width, 0) for width in side] for side in (before, behind))
    value = node.attrs.get("value", 0.0)
    if node.has(2):
        value = node.number(2, "constant_value")
    pairs = [width for pair in zip(before, behind, strict=True) for width in pair]
    return op.nn.pad(x, pairs, "constant", value)


@converter("DepthToSpace")
def _depth_to_space(node: Node) -> Expr:
    n, c, h, w = node.shape(0)
    block = node.attrs["blocksize"]
    depth = c // (block * block)
    if node.attrs.get("mode", "DCR") == "DCR":
        blocks = op.reshape(node.tensor(0), [n, block, block, depth, h, w])
        moved = op.permute_dims(blocks, [0, 3, 4, 1, 5, 2])
    else:
        blocks = op.reshape(node.tensor(0), [n, depth, block, block, h, w])
        moved = op.permute_dims(blocks, [0, 1, 4, 2, 5, 3])
    return op.reshape(moved, [n, depth, h * block, w * block])


@converter("SpaceToDepth")
def _space_to_depth(node: Node) -> Expr:
    n, c, h, w = node.shape(0)
    block = node.attrs["blocksize"]
    blocks = op.reshape(node.tensor(0), [n, c, h // block, block, w // block, block])
    deep = node.attrs.get("mode", "DCR") == "DCR"
    moved = op.permute_dims(blocks, [0, 3, 5, 1, 2, 4] if deep else [0, 1, 3, 5, 2, 4])
    return op.reshape(moved, [n, c * block * block, h // block, w // block])
