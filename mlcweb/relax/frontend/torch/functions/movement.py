"""Functions that arrange elements anew, choose some, or make new tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from mlcweb.relax import dims, op
from mlcweb.relax import expr as E
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.torch.functions.arithmetic import promoted
from mlcweb.relax.frontend.torch.translator import (
    Axes,
    Number,
    Result,
    TorchError,
    Translator,
    dtype_name,
    function,
)
from mlcweb.relax.op.create import Scalar
from mlcweb.relax.op.nn.layouts import Extents
from mlcweb.relax.struct_info import extents
from mlcweb.tir.expr import PrimExpr

T = TypeVar("T")

Shape: TypeAlias = "Extent | Sequence[Extent]"
"""One of several extents, or all of them."""


def _sequence(values: Sequence[T | Sequence[T]]) -> list[T]:
    """`f(1, 2)` and `f((1, 2))` are the same to PyTorch."""
    nested = len(values) == 1 and isinstance(values[0], (list, tuple))
    return list(values[0] if nested else values)  # type: ignore[arg-type]


@function("view", "reshape", "_unsafe_view")
def reshape(
    t: Translator, input: E.Expr, *shape: Shape, size: Sequence[Extent] | None = None
) -> E.Expr:
    return op.reshape(input, _sequence(shape) if size is None else list(size))


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
    return op.permute_dims(input, _sequence(dims))


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
    ndim = len(t.shape(tensors[0])) + 1
    return op.concat([op.expand_dims(x, dim % ndim) for x in promoted(t, *tensors)], dim % ndim)


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


@function("unbind")
def unbind(t: Translator, input: E.Expr, dim: int = 0) -> Result:
    return tuple(select(t, input, dim, i) for i in range(t.extent(input, dim)))


@function("expand")
def expand(t: Translator, input: E.Expr, *size: Shape, implicit: bool = False) -> E.Expr:
    wanted, shape = _sequence(size), t.shape(input)
    shape = [1] * (len(wanted) - len(shape)) + shape
    full = [
        old if not isinstance(new, PrimExpr) and new == -1 else new
        for old, new in zip(shape, wanted, strict=True)
    ]
    return op.broadcast_to(input, full)


@function("expand_as")
def expand_as(t: Translator, input: E.Expr, other: E.Expr) -> E.Expr:
    return op.broadcast_to(input, t.shape(other))


@function("repeat")
def repeat(t: Translator, input: E.Expr, *sizes: Extents) -> E.Expr:
    return op.tile(input, _sequence(sizes))


@function("flip")
def flip(t: Translator, input: E.Expr, *dims: Extents) -> E.Expr:
    for axis in _sequence(dims):
        input = op.flip(input, axis)
    return input


@function("tril")
def tril(t: Translator, input: E.Expr, diagonal: int = 0) -> E.Expr:
    return op.tril(input, diagonal)


@function("triu")
def triu(t: Translator, input: E.Expr, diagonal: int = 0) -> E.Expr:
    return op.triu(input, diagonal)


# Choosing


@function("select")
def select(t: Translator, input: E.Expr, dim: int, index: int) -> E.Expr:
    axis = dim % len(t.shape(input))
    return op.squeeze(_sliced(t, input, axis, index, None if index == -1 else index + 1, 1), [axis])


@function("slice")
def slice_(
    t: Translator, input: E.Expr, dim: int = 0, start: Extent | None = None,
    end: Extent | None = None, step: int = 1,
) -> E.Expr:  # fmt: skip
    return _sliced(t, input, dim % len(t.shape(input)), start, end, step)


@function("narrow")
def narrow(t: Translator, input: E.Expr, dim: int, start: int, length: int) -> E.Expr:
    return _sliced(t, input, dim % len(t.shape(input)), start, start + length, 1)


def _sliced(
    t: Translator, input: E.Expr, axis: int, start: Extent | None, end: Extent | None,
    step: int | None,
) -> E.Expr:  # fmt: skip
    extent = t.shape(input)[axis]
    whole = 2**31 - 1 if isinstance(extent, PrimExpr) else extent
    start, step = start or 0, step or 1
    if start == 0 and step == 1 and (end is None or (isinstance(end, int) and end >= whole)):
        return input
    if not isinstance(extent, PrimExpr):
        taken = range(*slice(start, end, step).indices(extent))
        start, end = taken.start, taken.stop
    end = extent if end is None else end
    return op.strided_slice(input, [axis], [start], [end], [step])


@function("getitem")
def getitem(t: Translator, input: E.Expr | Sequence[Result], index: Any) -> Result:
    return _indexed(t, input, index) if isinstance(input, E.Expr) else input[index]


def _indexed(t: Translator, input: E.Expr, index: Any) -> E.Expr:
    items = list(index) if isinstance(index, tuple) else [index]
    ndim, axis, dropped = len(t.shape(input)), 0, []
    used = sum(item is not None and item is not Ellipsis for item in items)
    new: list[int] = []
    place = 0
    for item in items:
        if item is None:
            new.append(place)
            place += 1
        elif item is Ellipsis:
            axis += ndim - used
            place += ndim - used
        elif isinstance(item, slice):
            input = t.bound(_sliced(t, input, axis, item.start, item.stop, item.step))
            axis, place = axis + 1, place + 1
        elif isinstance(item, int):
            end = None if item == -1 else item + 1
            input = t.bound(_sliced(t, input, axis, item, end, 1))
            dropped.append(axis)
            axis += 1
        elif isinstance(item, E.Expr) and used == 1 and len(t.shape(item)) == 1:
            input = t.bound(op.take(input, item, axis))
            axis, place = axis + 1, place + 1
        else:
            raise TorchError(f"A tensor indexed by {items} cannot be imported")
    if dropped:
        input = t.bound(op.squeeze(input, dropped))
    for where in new:
        input = t.bound(op.expand_dims(input, where))
    return input


@function("index_select")
def index_select(t: Translator, input: E.Expr, dim: int, index: E.Expr) -> E.Expr:
    return op.take(input, index, dim % len(t.shape(input)))


@function("gather")
def gather(t: Translator, input: E.Expr, dim: int, index: E.Expr) -> E.Expr:
    return op.gather_elements(input, index, dim % len(t.shape(input)))


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


# New tensors


def _constant(t: Translator, shape: Sequence[Extent], value: Number, dtype: object) -> E.Expr:
    if dtype is None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        dtype = "bool" if isinstance(value, bool) else "int64" if whole else "float32"
    name = dtype_name(dtype)
    return op.full(list(shape), t.const(value, name), name)


@function("zeros")
def zeros(t: Translator, *size: Shape, dtype: object = None, **ignored: object) -> E.Expr:
    return _constant(t, _sequence(size), 0.0, dtype)


@function("ones")
def ones(t: Translator, *size: Shape, dtype: object = None, **ignored: object) -> E.Expr:
    return _constant(t, _sequence(size), 1.0, dtype)


@function("full")
def full(
    t: Translator, size: Sequence[Extent], fill_value: Number, *, dtype: object = None,
    **ignored: object,
) -> E.Expr:  # fmt: skip
    return _constant(t, size, fill_value, dtype)


@function("zeros_like", "new_zeros")
def zeros_like(
    t: Translator, input: E.Expr, size: Sequence[Extent] | None = None, dtype: object = None,
    **_: object,
) -> E.Expr:  # fmt: skip
    return _constant(t, t.shape(input) if size is None else size, 0.0, dtype or t.dtype(input))


@function("ones_like", "new_ones")
def ones_like(
    t: Translator, input: E.Expr, size: Sequence[Extent] | None = None, dtype: object = None,
    **_: object,
) -> E.Expr:  # fmt: skip
    return _constant(t, t.shape(input) if size is None else size, 1.0, dtype or t.dtype(input))


@function("full_like")
def full_like(
    t: Translator, input: E.Expr, fill_value: Number, dtype: object = None, **_: object
) -> E.Expr:
    return _constant(t, t.shape(input), fill_value, dtype or t.dtype(input))


@function("arange")
def arange(
    t: Translator, start: Scalar, end: Scalar | None = None, step: Scalar = 1, *,
    dtype: object = None, **ignored: object,
) -> E.Expr:  # fmt: skip
    if end is None:
        start, end = 0, start
    floats = any(isinstance(value, float) for value in (start, end, step))
    return op.arange(start, end, step, dtype_name(dtype or ("float32" if floats else "int64")))
