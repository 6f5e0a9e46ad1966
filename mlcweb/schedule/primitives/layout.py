"""Layouts: transform_layout changes where the elements of a buffer lie, set_axis_separator how
they become physical dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.arith.index_map import IndexMap, IndexMapError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes
from mlcweb.schedule.accessed_buffer import AccessedBuffer
from mlcweb.schedule.analysis.regions import check_no_declared_view
from mlcweb.schedule.arguments import Integers, PadValue
from mlcweb.schedule.errors import ArgumentError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import BufferReplacement, LayoutRewriter
from mlcweb.schedule.rewriting.layout_padding import with_padding
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr
from mlcweb.tir.stmt import Block, BlockIdentity


@primitive("TransformLayout", inputs=("index_map",), title="transform_layout")
def transform_layout(
    state: ScheduleState,
    block: BlockIdentity,
    buffer: AccessedBuffer,
    index_map: IndexMap,
    pad_value: PadValue = None,
    *,
    assume_injective_transform: bool = False,
) -> ScheduleState:
    """Store each element of a buffer that a block reads or writes at the indices that `index_map`
    gives, everywhere in the program; a parameter gets another shape.

    Where the map rounds dimensions up, `pad_value` fills the elements that are new: in the stores
    themselves where a loop nest writes the whole buffer in order, else by a block after the last
    writer. Of a buffer that nobody writes, it is assumed that the caller has filled them. It is a
    number, or a function of the new indices; a Python number gets the buffer's type where it is of
    the same kind.

    Checked: the block has such a buffer, which is compact and no view of another; the map takes as
    many indices as the buffer has, is affine, gives each element a place of its own and leaves no
    gaps (not where `assume_injective_transform`); new elements have a value of the buffer's dtype.

    rewrite, by lambda i, j: [i // 4, j, i % 4]:
        B = T.alloc_buffer((16, 24))       -->    B = T.alloc_buffer((4, 24, 4))
        B[vi, vj] = A[vi, vj]                     B[vi // 4, vj, vi % 4] = A[vi, vj]
    """
    place = state.block(block)
    old = buffer.at(place)
    owner = _owner(state, place, old)
    if old.strides:
        raise ArgumentError(
            f'The buffer "{old.name}" has strides, which describe its present layout',
            [place.realize],
            "a buffer without strides of its own",
        )
    index_map = index_map.with_index_dtype(old.shape[0].dtype if old.shape else "int32")
    if pad_value is not None:
        pad_value = pad_value.with_index_dtype(index_map.initial_indices[0].dtype)
        _check_pad_value(old, pad_value, len(index_map.final_indices))
    try:
        inverse: IndexMap | None = None
        padding: PrimExpr = const(False)
        if not assume_injective_transform:
            inverse, padding = index_map.non_surjective_inverse(old.shape)
        shape = tuple(index_map.map_shape(old.shape))
    except IndexMapError as error:
        raise ArgumentError(
            f'The layout of "{old.name}" cannot be transformed: {error.message}',
            [place.realize],
            "a map of digits of the indices, each used once, as lambda i, j: [i // 4, j, i % 4]",
        ) from None
    if not is_const_int(padding, 0) and pad_value is None:
        raise ArgumentError(
            f'The transformation {index_map!r} applied on buffer "{old.name}" of shape '
            f"{_shape_text(old.shape)} would result in shape {_shape_text(shape)}. However, "
            f"this would introduce padding wherever {padding!r} is true",
            [place.realize],
            "factors that divide the shape, or a pad_value for the new elements",
        )
    new = replace(old, shape=shape, axis_separators=())
    top = owner if owner is not None else _root(place)
    rewritten = top
    if inverse is not None and pad_value is not None and not is_const_int(padding, 0):
        rewritten = with_padding(top, old, new, inverse, padding, pad_value)
    rewritten = LayoutRewriter(old, new, index_map).rewrite(rewritten)
    state = state.replaced(place.function, {top: rewritten})
    return state if owner is not None else _with_parameter(state, place.function, old, new)


@primitive("SetAxisSeparator")
def set_axis_separator(
    state: ScheduleState,
    block: BlockIdentity,
    buffer: AccessedBuffer,
    axis_separators: Integers | None,
) -> ScheduleState:
    """Say at which dimensions a buffer that a block reads or writes is cut when it is flattened:
    the dimensions before, between and after the separators become one physical dimension each.

    Checked: the block has such a buffer, which is no view of another; the separators are in rising
    order and inside of the buffer.

    Buffers that are matched to regions of the buffer get them, too.

    rewrite, by [1]:
        B = T.alloc_buffer((16, 24))   -->   B = T.alloc_buffer((16, 24), axis_separators=[1])
    """
    place = state.block(block)
    old = buffer.at(place)
    owner = _owner(state, place, old)
    separators = tuple(axis_separators or ())
    inside = all(0 < axis < old.ndim for axis in separators)
    if not inside or list(separators) != sorted(set(separators)):
        raise ArgumentError(
            f'The axis separators {list(separators)} of buffer "{old.name}" are not rising '
            f"numbers between 0 and {old.ndim} (its number of dimensions)",
            [place.realize],
            "rising numbers of the first axes of each group after the first",
        )
    new = replace(old, axis_separators=separators)

    def changed(buffer: Buffer) -> Buffer:
        if buffer is old:
            return new
        # A view without all dimensions lies after each cut, as TVM has it.
        cuts = separators if buffer.ndim == old.ndim else (0,) * len(separators)
        return replace(buffer, axis_separators=cuts)

    separated = BufferReplacement(old, changed)
    top = owner if owner is not None else _root(place)
    state = state.replaced(place.function, {top: separated.rewrite(top)})
    return state if owner is not None else _with_parameter(state, place.function, old, new)


def _owner(state: ScheduleState, place: BlockPlace, buffer: Buffer) -> Block | None:
    """The block that allocates a buffer; None where it is a parameter of the function."""
    check_no_declared_view(place, state.function(place.function).body, buffer)
    for parent in (place.block, *reversed(place.parents)):
        if not isinstance(parent, Block):
            continue
        if buffer in parent.alloc_buffers:
            return parent
        if any(match.buffer is buffer for match in parent.match_buffers):
            raise ArgumentError(
                f'The buffer "{buffer.name}" is a view of a region of another buffer, whose layout '
                "it shares",
                [place.realize],
                "transform the layout of the buffer that is viewed",
            )
    return None


def _root(place: BlockPlace) -> Block:
    around = (*place.parents, place.block)
    return next(parent for parent in around if isinstance(parent, Block))


def _with_parameter(state: ScheduleState, function: str, old: Buffer, new: Buffer) -> ScheduleState:
    func = state.function(function)
    buffers = {var: new if b is old else b for var, b in func.buffer_map.items()}
    return state.with_function(function, replace(func, buffer_map=buffers))


def _check_pad_value(buffer: Buffer, pad_value: IndexMap, ndim: int) -> None:
    if len(pad_value.final_indices) != 1:
        raise ArgumentError(
            f"The pad value {pad_value!r} has {len(pad_value.final_indices)} outputs, but should "
            "have one",
            advice="a constant, or a function with one result",
        )
    if len(pad_value.initial_indices) != ndim:
        raise ArgumentError(
            f"The pad value {pad_value!r} takes {len(pad_value.initial_indices)} indices, but the "
            f"new layout has {ndim}",
            advice="a function of as many indices as the new layout has",
        )
    value = pad_value.final_indices[0]
    if value.dtype != buffer.dtype:
        raise ArgumentError(
            f'The buffer "{buffer.name}" has elements of type {buffer.dtype}, but the padding '
            f"{pad_value!r} is of type {value.dtype}",
            advice=f'a value of the buffer\'s type, as tir.const(0, "{buffer.dtype}")',
        )
    for node in find_nodes(value, BufferLoad):
        if node.buffer is not buffer:
            raise ArgumentError(
                f'The padding {pad_value!r} of "{buffer.name}" reads the buffer '
                f'"{node.buffer.name}", which need not hold the same later on',
                advice=f'a value of constants, indices and elements of "{buffer.name}"',
            )


def _shape_text(shape: Sequence[PrimExpr]) -> str:
    inner = ", ".join(map(repr, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
