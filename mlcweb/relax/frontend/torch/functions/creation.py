"""Functions that make new tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.torch.functions.movement import Shape, sequence
from mlcweb.relax.frontend.torch.translator import (
    Number,
    TorchError,
    Translator,
    dtype_name,
    function,
)
from mlcweb.relax.op.create import Scalar


def _constant(t: Translator, shape: Sequence[Extent], value: Number, dtype: object) -> E.Expr:
    if dtype is None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        dtype = "bool" if isinstance(value, bool) else "int64" if whole else "float32"
    name = dtype_name(dtype)
    return op.full(list(shape), t.const(value, name), name)


_LIKE: dict[float, Callable[..., E.Expr]] = {0.0: op.zeros_like, 1.0: op.ones_like}


def _filled(value: float, names: Sequence[str], like_names: Sequence[str]) -> None:
    @function(*names)
    def convert(t: Translator, *size: Shape, dtype: object = None, **ignored: object) -> E.Expr:
        return _constant(t, sequence(size), value, dtype)

    @function(*like_names)
    def convert_like(
        t: Translator, input: E.Expr, *size: Shape, dtype: object = None, **ignored: object
    ) -> E.Expr:
        if size:
            return _constant(t, sequence(size), value, dtype or t.dtype(input))
        return _LIKE[value](input, None if dtype is None else dtype_name(dtype))


_filled(0.0, ("zeros", "empty"), ("zeros_like", "new_zeros", "empty_like", "new_empty"))
_filled(1.0, ("ones",), ("ones_like", "new_ones"))


@function("empty_permuted")
def empty_permuted(
    t: Translator, size: Sequence[Extent], physical_layout: Sequence[int], *,
    dtype: object = None, **ignored: object,
) -> E.Expr:  # fmt: skip
    return _constant(t, size, 0.0, dtype)


@function("full")
def full(
    t: Translator, size: Sequence[Extent], fill_value: Number, *, dtype: object = None,
    **ignored: object,
) -> E.Expr:  # fmt: skip
    return _constant(t, size, fill_value, dtype)


@function("full_like")
def full_like(
    t: Translator, input: E.Expr, fill_value: Number, dtype: object = None, **_: object
) -> E.Expr:
    name = t.dtype(input) if dtype is None else dtype_name(dtype)
    return op.full_like(input, t.const(fill_value, name), None if dtype is None else name)


@function("arange")
def arange(
    t: Translator, start: Scalar, end: Scalar | None = None, step: Scalar = 1, *,
    dtype: object = None, **ignored: object,
) -> E.Expr:  # fmt: skip
    if end is None:
        start, end = 0, start
    floats = any(isinstance(value, float) for value in (start, end, step))
    return op.arange(start, end, step, dtype_name(dtype or ("float32" if floats else "int64")))


@function("fill")
def fill(t: Translator, input: E.Expr, value: E.Expr | Number) -> E.Expr:
    if isinstance(value, E.Expr):
        return op.broadcast_to(value, t.shape(input))
    return _constant(t, t.shape(input), value, t.dtype(input))


@function("zero")
def zero(t: Translator, input: E.Expr) -> E.Expr:
    return fill(t, input, 0)


@function("new_full")
def new_full(
    t: Translator, input: E.Expr, size: Sequence[Extent], fill_value: Number,
    dtype: object = None, **ignored: object,
) -> E.Expr:  # fmt: skip
    return _constant(t, size, fill_value, dtype or t.dtype(input))


def _flat(data: Number | Sequence[Number]) -> list[Number]:
    if isinstance(data, (list, tuple)):
        return [value for part in data for value in _flat(part)]
    return [data]  # type: ignore[list-item]


@function("scalar_tensor", "tensor")
def tensor(
    t: Translator, data: Number | Sequence[Number], *, dtype: object = None, **ignored: object
) -> E.Expr:
    if dtype is None:
        kinds = {type(value) for value in _flat(data)}
        dtype = "bool" if kinds == {bool} else "int64" if kinds <= {bool, int} else "float32"
    return t.emit(t.const(data, dtype_name(dtype)))


@function("eye")
def eye(
    t: Translator, n: int, m: int | None = None, *, dtype: object = None, **ignored: object
) -> E.Expr:
    return op.eye(n, m, dtype=dtype_name(dtype or "float32"))


@function("linspace")
def linspace(
    t: Translator, start: Number, end: Number, steps: int, *, dtype: object = None,
    **ignored: object,
) -> E.Expr:  # fmt: skip
    """From both ends to the middle, as PyTorch counts."""
    step = (end - start) / max(steps - 1, 1)
    half = (steps + 1) // 2
    values = [start + i * step for i in range(half)]
    values += [end - i * step for i in reversed(range(steps - half))]
    return t.const(values, dtype_name(dtype or "float32"))


@function("one_hot")
def one_hot(t: Translator, input: E.Expr, num_classes: int = -1) -> E.Expr:
    if num_classes <= 0:
        raise TorchError(
            "one_hot needs num_classes, a positive number: how many classes there are must be "
            "known without the elements"
        )
    return op.one_hot(input, E.PrimValue(1), E.PrimValue(0), num_classes)


@function("hamming_window")
def hamming_window(
    t: Translator, window_length: int, periodic: bool = True, alpha: float = 0.54,
    beta: float = 0.46, *, dtype: object = None, **ignored: object,
) -> E.Expr:  # fmt: skip
    return op.hamming_window(window_length, periodic, alpha, beta, dtype_name(dtype or "float32"))
