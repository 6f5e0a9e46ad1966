"""Functions that arrange elements anew, choose some, or make new tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from mlcweb.relax import dims, op
from mlcweb.relax import expr as E
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.torch.functions.arithmetic import promoted
from mlcweb.relax.frontend.torch.translator import (
    Axes,
    Result,
    TorchError,
    Translator,
    function,
)
from mlcweb.relax.op.nn.layouts import Extents
from mlcweb.relax.op.registry import several
from mlcweb.relax.struct_info import extents
from mlcweb.tir.expr import PrimExpr

T = TypeVar("T")

Shape: TypeAlias = "Extent | Sequence[Extent]"
"""One of several extents, or all of them."""


def sequence(values: Sequence[T | Sequence[T]]) -> list[T]:
    """`f(1, 2)` and `f((1, 2))` are the same to PyTorch."""
    nested = len(values) == 1 and isinstance(values[0], (list, tuple))
    return list(values[0] if nested else values)  # type: ignore[arg-type]


@function("view", "reshape", "_unsafe_view")
def reshape(
    t: Translator, input: E.Expr, *shape: Shape, size: Sequence[Extent] | None = None
) -> E.Expr:
    target = sequence(shape) if size is None else list(size)
    same = dims.same_shape(extents(target), extents(t.shape(input)))
    return input if same else op.reshape(input, target)


@function("flatten")
def flatten(t: Translator, input: E.Expr, start_dim: int = 0, end_dim: int = -1) -> E.Expr:
    shape = t.shape(input)
    first, last = start_dim % len(shape), end_dim % len(shape)
    middle = dims.product(extents(shape[first : last + 1]))
    return op.reshape(input, [*shape[:first], middle, *shape[last + 1 :]])


@function("unflatten")
def unflatten(t: Translator, input: E.Expr, dim: int, sizes: Sequence[int]) -> E.Expr:
    shape = t.shape(input)
    place = dim % len(shape)
    sizes = list(sizes)
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = t.extent(input, place) // rest
    return op.reshape(input, [*shape[:place], *sizes, *shape[place + 1 :]])


@function("transpose", "swapaxes")
def transpose(t: Translator, input: E.Expr, dim0: int, dim1: int) -> E.Expr:
    axes = list(range(len(t.shape(input))))
    axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return op.permute_dims(input, axes)


@function("t")
def transposed(t: Translator, input: E.Expr) -> E.Expr:
    return op.permute_dims(input) if len(t.shape(input)) == 2 else input


@function("permute")
def permute(t: Translator, input: E.Expr, *dims: Extents) -> E.Expr:
    return op.permute_dims(input, sequence(dims))


@function("squeeze")
def squeeze(t: Translator, input: E.Expr, dim: Axes = None) -> E.Expr:
    if dim is None:
        return op.squeeze(input)
    shape = t.shape(input)
    axes = [axis % len(shape) for axis in ([dim] if isinstance(dim, int) else dim)]
    axes = [axis for axis in axes if not isinstance(shape[axis], PrimExpr) and shape[axis] == 1]
    return op.squeeze(input, axes) if axes else input


@function("unsqueeze")
def unsqueeze(t: Translator, input: E.Expr, dim: int) -> E.Expr:
    return op.expand_dims(input, dim)


@function("cat", "concat", "concatenate")
def cat(
    t: Translator, tensors: Sequence[E.Expr], dim: int = 0, *, axis: int | None = None
) -> E.Expr:
    return op.concat(promoted(t, *tensors), dim if axis is None else axis)


@function("stack")
def stack(t: Translator, tensors: Sequence[E.Expr], dim: int = 0) -> E.Expr:
    return op.stack(promoted(t, *tensors), dim % (t.ndim(tensors[0]) + 1))


@function("split", "split_with_sizes")
def split(t: Translator, tensor: E.Expr, split_size: Extents, dim: int = 0) -> Result:
    if isinstance(split_size, int):
        places = list(range(split_size, t.extent(tensor, dim), split_size))
    else:
        places = [sum(split_size[: i + 1]) for i in range(len(split_size) - 1)]
    return op.split(tensor, places, dim % len(t.shape(tensor))) if places else (tensor,)


@function("chunk")
def chunk(t: Translator, input: E.Expr, chunks: int, dim: int = 0) -> Result:
    return split(t, input, -(-t.extent(input, dim) // chunks), dim)


@function("expand", "broadcast_to")
def expand(t: Translator, input: E.Expr, *size: Shape, implicit: bool = False) -> E.Expr:
    target, shape = sequence(size), t.shape(input)
    shape = [1] * (len(target) - len(shape)) + shape
    full = [
        old if not isinstance(new, PrimExpr) and new == -1 else new
        for old, new in zip(shape, target, strict=True)
    ]
    same = dims.same_shape(extents(full), extents(t.shape(input)))
    return input if same else op.broadcast_to(input, full)


@function("expand_as")
def expand_as(t: Translator, input: E.Expr, other: E.Expr) -> E.Expr:
    return op.broadcast_to(input, t.shape(other))


@function("reshape_as", "view_as")
def reshape_as(t: Translator, input: E.Expr, other: E.Expr) -> E.Expr:
    return op.reshape(input, t.shape(other))


@function("as_strided")
def as_strided(
    t: Translator, input: E.Expr, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> E.Expr:  # fmt: skip
    """Only what is a reshape: of the tensor's memory Relax knows nothing else."""
    contiguous = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    same = all(n == 1 or a == b for n, a, b in zip(size, stride, contiguous, strict=True))
    if not same or storage_offset or math.prod(size) != math.prod(t.shape(input)):
        raise TorchError(
            f"as_strided to {list(size)} with the strides {list(stride)} cannot be imported: it is "
            "no reshape"
        )
    return op.reshape(input, list(size))


@function("tile", "repeat")
def tile(t: Translator, input: E.Expr, *dims: Extents) -> E.Expr:
    return op.tile(input, sequence(dims))


@function("roll")
def roll(t: Translator, input: E.Expr, shifts: Extents, dims: Axes = None) -> E.Expr:
    """Elements moved along axes, those beyond the end to the front; without axes in the flat
    tensor."""
    if not isinstance(dims, int) and not dims:
        flat = t.bound(op.reshape(input, [-1]))
        return op.reshape(roll(t, flat, shifts, 0), t.shape(input))
    axes = [dims] if isinstance(dims, int) else dims
    for shift, axis in zip(several(shifts, len(axes)), axes, strict=True):
        extent = t.shape(input)[axis]
        cut = (extent - shift) if isinstance(extent, PrimExpr) else -shift % max(extent, 1)
        if cut != 0:
            front, behind = (
                t.emit(op.strided_slice(input, [axis], [low], [high], [1]))
                for low, high in ((0, cut), (cut, extent))
            )
            input = t.emit(op.concat([behind, front], axis))
    return input


@function("meshgrid")
def meshgrid(t: Translator, *tensors: E.Expr | Sequence[E.Expr], indexing: str = "ij") -> Result:
    return op.meshgrid([_vector(t, tensor) for tensor in sequence(tensors)], indexing)


@function("aten.meshgrid")
def aten_meshgrid(t: Translator, tensors: Sequence[E.Expr], indexing: str = "ij") -> Result:
    return meshgrid(t, tensors, indexing=indexing)


def _vector(t: Translator, tensor: E.Expr) -> E.Expr:
    return tensor if t.ndim(tensor) else t.bound(op.reshape(tensor, [1]))


@function("outer", "ger")
def outer(t: Translator, input: E.Expr, vec2: E.Expr) -> E.Expr:
    return op.outer(*promoted(t, input, vec2))


@function("flip")
def flip(t: Translator, input: E.Expr, *dims: Extents) -> E.Expr:
    for axis in sequence(dims):
        input = op.flip(input, axis)
    return input


@function("tril")
def tril(t: Translator, input: E.Expr, diagonal: int = 0) -> E.Expr:
    return op.tril(input, diagonal)


@function("triu")
def triu(t: Translator, input: E.Expr, diagonal: int = 0) -> E.Expr:
    return op.triu(input, diagonal)


# Shapes


@function("size")
def size(t: Translator, input: E.Expr, dim: int | None = None) -> Result:
    return t.shape(input) if dim is None else t.shape(input)[dim]


@function("sym_size")
def sym_size(t: Translator, input: E.Expr, dim: int) -> Extent:
    return t.shape(input)[dim]


@function("dim")
def dim_(t: Translator, input: E.Expr) -> int:
    return len(t.shape(input))


@function("numel")
def numel(t: Translator, input: E.Expr) -> Extent:
    return math.prod(t.shape(input))


@function("getattr")
def getattr_(t: Translator, input: E.Expr, name: str) -> Result:
    if name == "shape":
        return t.shape(input)
    if name == "dtype":
        return t.dtype(input)
    if name == "T":
        return op.permute_dims(input)
    if name == "device":
        return None
    raise TorchError(f'The attribute "{name}" of a tensor cannot be imported')
