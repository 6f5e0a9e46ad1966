"""Elements of images moved from their spatial axes to channels or to the batch, and back."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi import shapes, tags
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.transform import reshape, strided_slice, transpose


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of block_size x block_size pixels become one, with a channel for each."""
    extents = _extents("space_to_depth", data, layout)
    channels = extents["C"]

    def element(*index: PrimExpr) -> PrimExpr:
        place = dict(zip(layout, index, strict=True))
        block = place["C"] // channels
        place["H"] = place["H"] * block_size + block // block_size
        place["W"] = place["W"] * block_size + block % block_size
        place["C"] = place["C"] % channels
        return data(*(place[letter] for letter in layout))

    extents["C"] = channels * (block_size * block_size)
    for letter in "HW":
        _check_divides("space_to_depth", extents[letter], block_size)
        extents[letter] = extents[letter] // block_size
    shape = [extents[letter] for letter in layout]
    return compute(shape, element, "space_to_depth", tag=tags.INJECTIVE)


def depth_to_space(
    data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> Tensor:
    """Channels become blocks of block_size x block_size pixels.

    The channels are those of the result inside of the positions in the block ("DCR"), or the
    positions inside of the channels ("CDR", and ONNX's name for it, "CRD").
    """
    extents = _extents("depth_to_space", data, layout)
    if mode not in ("DCR", "CDR", "CRD"):
        raise DiagnosticError(f'depth_to_space: mode is "DCR" or "CDR", not {mode!r}')
    size = block_size * block_size
    _check_divides("depth_to_space", extents["C"], size)
    channels = extents["C"] // size

    def element(*index: PrimExpr) -> PrimExpr:
        place = dict(zip(layout, index, strict=True))
        row, column = (place[letter] % block_size for letter in "HW")
        block = row * block_size + column
        place["C"] = block * channels + place["C"] if mode == "DCR" else place["C"] * size + block
        for letter in "HW":
            place[letter] = place[letter] // block_size
        return data(*(place[letter] for letter in layout))

    extents["C"] = channels
    for letter in "HW":
        extents[letter] = extents[letter] * block_size
    shape = [extents[letter] for letter in layout]
    return compute(shape, element, "depth_to_space", tag=tags.INJECTIVE)


def space_to_batch_nd(
    data: Tensor,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> Tensor:
    """(batch, spatial …, rest …), padded, with the positions in blocks moved to the batch."""
    count = _check_blocks("space_to_batch_nd", data, block_shape, pad_before, pad_after)
    rest = data.ndim - count - 1
    padded = pad(
        data, [0, *pad_before, *[0] * rest], [0, *pad_after, *[0] * rest], pad_value, "T_pad"
    )
    batch, *extents = padded.shape
    for extent, block in zip(extents, block_shape, strict=False):
        _check_divides("space_to_batch_nd", extent, block)
    outer = [e // b for e, b in zip(extents, block_shape, strict=False)]
    apart = [n for pair in zip(outer, block_shape, strict=True) for n in pair]
    split = reshape(padded, [batch, *apart, *extents[count:]])
    order = [2 + 2 * i for i in range(count)] + [0] + [1 + 2 * i for i in range(count)]
    moved = transpose(split, [*order, *range(1 + 2 * count, split.ndim)])
    whole = batch * shapes.size(shapes.as_shape(list(block_shape)))
    return reshape(moved, [whole, *outer, *extents[count:]])


def batch_to_space_nd(
    data: Tensor,
    block_shape: Sequence[int],
    crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> Tensor:
    """The inverse of `space_to_batch_nd`: positions in blocks out of the batch, then cropped."""
    count = _check_blocks("batch_to_space_nd", data, block_shape, crop_begin_list, crop_end_list)
    size = shapes.size(shapes.as_shape(list(block_shape)))
    _check_divides("batch_to_space_nd", data.shape[0], shapes.constant(size) or 1)
    batch = data.shape[0] // size
    split = reshape(data, [*block_shape, batch, *data.shape[1:]])
    order = [count] + [axis for i in range(count) for axis in (count + 1 + i, i)]
    moved = transpose(split, [*order, *range(2 * count + 1, split.ndim)])
    whole = [
        e * b for e, b in zip(data.shape[1:], block_shape, strict=False)
    ]  # fmt: skip
    joined = reshape(moved, [batch, *whole, *data.shape[1 + count :]])
    ends = [e - c for e, c in zip(whole, crop_end_list, strict=True)]
    return strided_slice(joined, list(crop_begin_list), ends, axes=list(range(1, count + 1)))


def _extents(operator: str, data: Tensor, layout: str) -> dict[str, PrimExpr]:
    if layout not in ("NCHW", "NHWC"):
        raise DiagnosticError(f'{operator}: the layout is "NCHW" or "NHWC", not {layout!r}')
    shapes.need_rank(operator, data, 4, layout)
    return dict(zip(layout, data.shape, strict=True))


def _check_divides(operator: str, extent: PrimExpr, block: int) -> None:
    number = shapes.constant(extent)
    if number is not None and number % block:
        raise DiagnosticError(f"{operator}: {block} does not divide the extent {number}")


def _check_blocks(operator: str, data: Tensor, *lists: Sequence[int]) -> int:
    counts = {len(one) for one in lists}
    if len(counts) != 1 or not 0 < len(lists[0]) < data.ndim:
        raise DiagnosticError(
            f"{operator}: a block and widths for each spatial axis of {shapes.show(data.shape)}"
        )
    return len(lists[0])
