"""Functions on tensors, computed by NumPy; with something traced among the arguments they record
themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from mlcweb.stand_ins.torch.tensors import (
    DTYPES,
    METHODS,
    Tensor,
    Traced,
    array_of,
    dtype,
    wrap,
)

__all__ = [
    "abs", "add", "allclose", "arange", "argmax", "bmm", "cat", "div", "empty", "eq", "equal",
    "exp", "flatten", "from_dlpack", "from_numpy", "full", "ge", "gt", "is_tensor", "le", "log",
    "lt", "manual_seed", "matmul", "max", "maximum", "mean", "min", "minimum", "mm", "mul", "ne",
    "neg", "no_grad", "ones", "permute", "pow", "rand", "randn", "randperm", "relu", "reshape",
    "sigmoid", "softmax", "sqrt", "squeeze", "stack", "sub", "sum", "tanh", "tensor", "transpose",
    "unsqueeze", "view", "zeros",
]  # fmt: skip


def function(run: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of arrays one of tensors, which torch.fx can trace.

    A result in float64 becomes float32 where no argument is of that type, as in PyTorch.
    """

    @wraps(run)
    def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, Traced):
                    return each.record(call, args, kwargs)
        arrays = [array_of(arg) for arg in args]
        result = run(*arrays, **{name: array_of(value) for name, value in kwargs.items()})
        if isinstance(result, tuple):
            return tuple(wrap(each) for each in result)
        double = any(getattr(each, "dtype", None) == np.float64 for each in arrays)
        if getattr(result, "dtype", None) == np.float64 and not double:
            result = result.astype(np.float32)
        if out is None:
            return wrap(result)
        out.numpy()[...] = result
        return out

    return call


def method(run: Callable[..., Any]) -> Callable[..., Any]:
    """As `function`, and a method of tensors."""
    METHODS[run.__name__] = call = function(run)
    return call


def _elementwise(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        return compute(*operands)

    run.__name__ = run.__qualname__ = name
    return method(run)


add, sub = _elementwise("add", np.add), _elementwise("sub", np.subtract)
mul, div = _elementwise("mul", np.multiply), _elementwise("div", np.true_divide)
pow = _elementwise("pow", np.power)
maximum, minimum = _elementwise("maximum", np.maximum), _elementwise("minimum", np.minimum)
exp, log, sqrt = (_elementwise(f.__name__, f) for f in (np.exp, np.log, np.sqrt))
tanh, abs = _elementwise("tanh", np.tanh), _elementwise("abs", np.abs)
neg = _elementwise("neg", np.negative)
eq, ne = _elementwise("eq", np.equal), _elementwise("ne", np.not_equal)
lt, le = _elementwise("lt", np.less), _elementwise("le", np.less_equal)
gt, ge = _elementwise("gt", np.greater), _elementwise("ge", np.greater_equal)
matmul, mm = _elementwise("matmul", np.matmul), _elementwise("mm", np.matmul)
bmm = _elementwise("bmm", np.matmul)
relu = _elementwise("relu", lambda x: np.maximum(x, 0))
sigmoid = _elementwise("sigmoid", lambda x: 1 / (1 + np.exp(-x)))


@method
def softmax(x: Any, dim: int) -> Any:
    powers = np.exp(x - x.max(axis=dim, keepdims=True))
    return powers / powers.sum(axis=dim, keepdims=True)


# Reductions


@method
def sum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.sum(x, axis=dim, keepdims=keepdim)


@method
def mean(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.mean(x, axis=dim, keepdims=keepdim)


@method
def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return np.asarray(np.argmax(x, axis=dim, keepdims=keepdim))


def _extreme(name: str, along: Any, place: Any, elementwise: Any) -> Callable[..., Any]:
    """The largest or smallest element; along a dimension with its places."""

    def run(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, np.ndarray):
            return elementwise(x, dim)
        if dim is None:
            return along(x)
        return along(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)

    run.__name__ = run.__qualname__ = name
    return method(run)


max = _extreme("max", np.max, np.argmax, np.maximum)
min = _extreme("min", np.min, np.argmin, np.minimum)


# Movement


def _extents(shape: Sequence[Any]) -> Sequence[Any]:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape


@method
def reshape(x: Any, *shape: Any) -> Any:
    return x.reshape(_extents(shape))


@method
def view(x: Any, *shape: Any) -> Any:
    return x.reshape(_extents(shape))


@method
def view_as(x: Any, other: Any) -> Any:
    return x.reshape(other.shape)


@method
def permute(x: Any, *dims: Any) -> Any:
    return x.transpose(_extents(dims))


@method
def transpose(x: Any, dim0: int, dim1: int) -> Any:
    return x.swapaxes(dim0, dim1)


@method
def squeeze(x: Any, dim: int | None = None) -> Any:
    return x.squeeze() if dim is None else x.squeeze(dim) if x.shape[dim] == 1 else x


@method
def unsqueeze(x: Any, dim: int) -> Any:
    return np.expand_dims(x, dim)


@method
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    end = end_dim % x.ndim + 1
    return x.reshape(*x.shape[:start_dim], -1, *x.shape[end:])


@function
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    return np.concatenate(tensors, dim)


@function
def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    return np.stack(tensors, dim)


# Making tensors

_random = np.random.default_rng()


def manual_seed(seed: int) -> None:
    """Start the random numbers anew. They are not PyTorch's."""
    global _random
    _random = np.random.default_rng(seed)


def generator() -> np.random.Generator:
    return _random


def tensor(data: Any, *, dtype: dtype | None = None, requires_grad: bool = False) -> Tensor:
    """A copy of numbers; Python's are float32 and int64."""
    array = np.array(array_of(data))
    if dtype is not None:
        array = array.astype(dtype.name)
    elif array.dtype == np.float64 and not isinstance(data, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    return wrap(array).requires_grad_(requires_grad)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor over the memory of an array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return wrap(array)


def from_dlpack(source: Any) -> Tensor:
    """A tensor over the memory of another library's array."""
    return wrap(np.from_dlpack(source))


def full(size: Sequence[int], value: Any, *, dtype: dtype = DTYPES["float32"]) -> Tensor:
    return wrap(np.full(size, value, dtype.name))


def zeros(*size: Any, dtype: dtype = DTYPES["float32"]) -> Tensor:
    return full(_extents(size), 0, dtype=dtype)


def ones(*size: Any, dtype: dtype = DTYPES["float32"]) -> Tensor:
    return full(_extents(size), 1, dtype=dtype)


empty = zeros


def randn(*size: Any) -> Tensor:
    return wrap(_random.standard_normal(_extents(size), np.float32))


def rand(*size: Any) -> Tensor:
    return wrap(_random.random(_extents(size), np.float32))


def randperm(n: int) -> Tensor:
    return wrap(_random.permutation(n))


def arange(*bounds: Any, dtype: dtype | None = None) -> Tensor:
    return tensor(np.arange(*bounds).tolist(), dtype=dtype)


# Comparing


def allclose(x: Tensor, y: Tensor, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    return bool(np.allclose(x.numpy(), y.numpy(), rtol, atol))


def equal(x: Tensor, y: Tensor) -> bool:
    return bool(np.array_equal(x.numpy(), y.numpy()))


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


class no_grad:
    """A context, and a decorator. There are no gradients here, so it changes nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
