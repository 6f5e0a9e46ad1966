"""Operators that make one tensor of several, or several of one."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, Tuple, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.layout import (
    Decision,
    InBlocks,
    Layout,
    Order,
    blocks_of,
    data_order,
    info_of,
    moved,
    whole_blocks,
)
from mlcweb.relax.op.legalize import attribute, fields_of, topi
from mlcweb.relax.op.registry import FOLLOW, Legalize, call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, extent
from mlcweb.tir.expr import PrimExpr


def _common(
    call: Call, infos: Sequence[TensorStructInfo], free: int | None
) -> tuple[list[PrimExpr] | None, int, str]:
    """The shape that all tensors have except on the axis `free`, its length, and the element type.
    The shape is None where it is not known, or not known to be the same."""
    types = {info.dtype for info in infos}
    if len(types - {""}) > 1:
        dtypes = ", ".join(info.dtype or "unknown" for info in infos)
        raise infer.dtype_error(call, f"all tensors must have one element type, not {dtypes}")
    ranks = {info.ndim for info in infos} - {-1}
    shapes = ", ".join(dims.shape_text(info.values, info.ndim) for info in infos)
    if len(ranks) > 1:
        raise infer.shape_error(call, f"all tensors must have the same rank: {shapes}")
    ndim = ranks.pop() if ranks else -1
    if free is not None and ndim != -1:
        free = infer.normalized_axis(call, free, ndim)
    dtype = infos[0].dtype if len(types) == 1 else ""
    values = [info.values for info in infos if info.values is not None]
    sure = len(values) == len(infos)
    for axis in range(max(ndim, 0)):
        for other in values[1:]:
            if axis == free or dims.equal(values[0][axis], other[axis]):
                continue
            if dims.differ(values[0][axis], other[axis]):
                where = "" if free is None else f" outside axis {free}"
                raise infer.shape_error(
                    call, f"shapes must agree{where}, but axis {axis} differs: {shapes}"
                )
            sure = False
    return (list(values[0]) if sure else None), ndim, dtype


def _infer_concat(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors_of_tuple(call, 0, context)
    axis = infer.attribute(call, "axis")
    if len(infos) == 1 and axis is not None:
        if infos[0].ndim != -1:
            infer.normalized_axis(call, axis, infos[0].ndim)
        return infos[0]
    place = 0 if axis is None else axis
    shape, ndim, dtype = _common(call, infos, place)
    if axis is None and ndim > 1:
        raise infer.shape_error(call, f"axis=None joins vectors; these have {ndim} dimensions")
    if ndim == -1:
        return TensorStructInfo(None, dtype, ndim=1 if axis is None else -1)
    place = infer.normalized_axis(call, place, ndim)
    if shape is None:
        return TensorStructInfo(None, dtype, ndim=ndim)
    parts = [info.values[place] for info in infos if info.values is not None]
    total = extent(0)
    for part in parts:
        total = total + part
    shape[place] = dims.simplify(total)
    return TensorStructInfo(shape, dtype)


def _legalize_joined(name: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        parts = fields_of(builder, call.args[0])
        return builder.call_te(getattr(topi, name), parts, attribute(call, "axis") or 0)

    return legalize


def _whole_blocks(info: StructInfo | None, order: Order) -> bool:
    """Whether all tensors of a tuple are whole numbers of blocks."""
    return isinstance(info, TupleStructInfo) and all(
        whole_blocks(field, order) for field in info.fields
    )


def _layout_concat(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    fields, axis = layouts[0], infer.attribute(call, "axis")
    if not isinstance(fields, list) or not isinstance(fields[0], tuple) or axis is None:
        return None
    order = fields[0]
    alike = all(field == order for field in fields)
    if blocks_of(fields) and not (alike and _whole_blocks(info_of(call.args[0]), order)):
        return None
    together: Layout = [order for _ in fields]
    return Decision([together], order, {"axis": moved(call, "axis", order)})


@operator(
    "relax.concat", "tensors",
    infer=_infer_concat, legalize=_legalize_joined("concatenate"), layout=InBlocks(_layout_concat),
    precision=FOLLOW,
)  # fmt: skip
def concat(tensors: ExprLike, axis: int | None = 0) -> Call:
    """Tensors one behind the other along an axis."""
    return call(concat, tensors, axis=axis)


def _infer_stack(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors_of_tuple(call, 0, context)
    shape, ndim, dtype = _common(call, infos, None)
    if ndim == -1:
        return TensorStructInfo(None, dtype)
    place = infer.normalized_axis(call, infer.attribute(call, "axis"), ndim + 1)
    if shape is None:
        return TensorStructInfo(None, dtype, ndim=ndim + 1)
    return TensorStructInfo([*shape[:place], extent(len(infos)), *shape[place:]], dtype)


@operator("relax.stack", "tensors", infer=_infer_stack, legalize=_legalize_joined("stack"))
def stack(tensors: ExprLike, axis: int = 0) -> Call:
    """Tensors of one shape side by side along a new axis."""
    return call(stack, tensors, axis=whole(axis))


def _infer_split(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    axis, sections = infer.attribute(call, "axis"), infer.attribute(call, "indices_or_sections")
    place = infer.normalized_axis(call, axis, info.ndim) if info.ndim != -1 else 0
    count = sections if isinstance(sections, int) else len(sections) + 1
    if count < 1:
        raise infer.shape_error(
            call, f"indices_or_sections is {sections}: at least 1 part is needed"
        )
    if info.values is None:
        return TupleStructInfo([TensorStructInfo(None, info.dtype, ndim=info.ndim)] * count)
    length = info.values[place]
    if isinstance(sections, int):
        each = dims.simplify((length + (count - 1)) // count)
        cuts = [dims.simplify(each * number) for number in range(1, count)]
    else:
        cuts = [extent(cut) for cut in sections]
    number = constant_int(length)
    parts = []
    for start, end in zip([extent(0), *cuts], [*cuts, length], strict=True):
        size = dims.simplify(end - start)
        low, high, width = constant_int(start), constant_int(end), constant_int(size)
        if number is not None and low is not None and high is not None:
            width = max(0, min(high, number) - min(low, number))
        elif width is not None and width < 0:
            width = 0
        parts.append(size if width is None else extent(width))
    shape = info.values
    return TupleStructInfo([
        TensorStructInfo([*shape[:place], part, *shape[place + 1 :]], info.dtype) for part in parts
    ])  # fmt: skip


def _legalize_split(builder: BlockBuilder, call: Call) -> Expr:
    sections, axis = attribute(call, "indices_or_sections"), attribute(call, "axis")
    if sections in (1, []):
        same = builder.call_te(topi.identity, call.args[0], primfunc_name_hint="split")
        return Tuple([builder.emit(same)])
    return builder.call_te(topi.split, call.args[0], sections, axis)


def _layout_split(call: Call, layouts: Sequence[Layout]) -> Decision | None:
    if not isinstance(call.struct_info, TupleStructInfo):
        return None
    order, sections = data_order(layouts), infer.attribute(call, "indices_or_sections")
    if blocks_of(order) and not (
        isinstance(sections, int) and _whole_blocks(call.struct_info, order)
    ):
        return None
    parts: Layout = [order for _ in call.struct_info.fields]
    return Decision([order], parts, {"axis": moved(call, "axis", order)})


@operator(
    "relax.split", "x",
    infer=_infer_split, legalize=_legalize_split, layout=InBlocks(_layout_split), precision=FOLLOW,
)  # fmt: skip
def split(x: ExprLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> Call:
    """A tuple of parts along an axis: so many of one size (the last may be smaller), or cut before
    each of the given positions."""
    sections = (
        indices_or_sections
        if isinstance(indices_or_sections, int)
        else [whole(cut) for cut in indices_or_sections]
    )
    return call(split, x, indices_or_sections=sections, axis=whole(axis))


def _infer_meshgrid(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors_of_tuple(call, 0, context)
    for number, info in enumerate(infos):
        if info.ndim not in (-1, 1):
            text = dims.shape_text(info.values, info.ndim)
            raise infer.shape_error(call, f"tensors[{number}] of shape {text} is no vector")
    order = list(range(len(infos)))
    if infer.attribute(call, "indexing") == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    lengths = [infos[i].values for i in order]
    extents = [values[0] for values in lengths if values is not None]
    shape = extents if len(extents) == len(infos) else None
    return TupleStructInfo([TensorStructInfo(shape, info.dtype, ndim=len(infos)) for info in infos])


def _legalize_meshgrid(builder: BlockBuilder, call: Call) -> Expr:
    parts = fields_of(builder, call.args[0])
    return builder.call_te(topi.meshgrid, parts, attribute(call, "indexing"))


@operator(
    "relax.meshgrid", "tensors",
    infer=_infer_meshgrid, legalize=_legalize_meshgrid, precision=FOLLOW,
)  # fmt: skip
def meshgrid(tensors: ExprLike, indexing: str = "ij") -> Call:
    """The coordinates of a grid, from the coordinates of its axes (vectors)."""
    return call(meshgrid, tensors, indexing=indexing)
