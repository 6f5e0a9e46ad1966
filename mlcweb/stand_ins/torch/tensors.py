"""Tensors of the stand-in for PyTorch: NumPy's arrays under the names that programs call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np


class dtype:
    """An element type, which prints as PyTorch's: ``torch.float32``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    @property
    def is_floating_point(self) -> bool:
        return self.name.startswith("float")


DTYPES = {
    name: dtype(name)
    for name in (
        "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
    )
}  # fmt: skip


class Refused(AttributeError, NotImplementedError):
    """Something of PyTorch that the stand-in does not have."""


REASON = (
    "is not part of this stand-in for PyTorch, which has no build for browsers; it has what the "
    "course calls. Run this program natively, with PyTorch installed"
)


def refusal(name: str) -> Refused:
    """What to say of a name of PyTorch that is not here."""
    return Refused(f"{name} {REASON}")


def refusing(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module. It raises no AttributeError, in the place of which a
    statement `from module import name` says something else."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{module}.{name} {REASON}")

    return find


class Size(tuple[int, ...]):
    """A shape."""

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        return int(np.prod(self, dtype=int))


class Traced:
    """Something in the place of a tensor that records the functions called with it."""

    def record(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        raise NotImplementedError


METHODS: dict[str, Callable[..., Any]] = {}
"""Functions that are methods of tensors, too, by name."""


class Tensor:
    """An array in memory; `Tensor(data)` copies to float32, as PyTorch's does."""

    requires_grad = False
    grad = None
    device = "cpu"
    __array_priority__ = 1000  # so that NumPy's arrays leave mixed operators to us

    def __init__(self, data: Any = ()) -> None:
        self._array: np.ndarray = np.array(array_of(data), np.float32)

    # Memory

    def numpy(self) -> np.ndarray:
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    @property
    def data(self) -> Tensor:
        return wrap(self._array)

    @data.setter
    def data(self, value: Tensor) -> None:
        self._array = value._array

    def detach(self) -> Tensor:
        return wrap(self._array)

    def cpu(self) -> Tensor:
        return self

    contiguous = cpu

    def clone(self) -> Tensor:
        return wrap(self._array.copy())

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.requires_grad = requires_grad
        return self

    def to(self, target: Any) -> Tensor:
        """The tensor as another element type, or on a device, of which there is one."""
        if isinstance(target, dtype):
            return self if target is self.dtype else wrap(self._array.astype(target.name))
        if str(target) == "cpu":
            return self
        raise refusal(f"Tensor.to({target!r})")

    def float(self) -> Tensor:
        return self.to(DTYPES["float32"])

    def long(self) -> Tensor:
        return self.to(DTYPES["int64"])

    # Form

    @property
    def shape(self) -> Size:
        return Size(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    def dim(self) -> int:
        return self._array.ndim

    @property
    def dtype(self) -> dtype:
        return DTYPES[self._array.dtype.name]

    @property
    def T(self) -> Tensor:
        return wrap(self._array.T)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self._array.size

    # Elements

    def item(self) -> Any:
        return self._array.item()

    def tolist(self) -> Any:
        return self._array.tolist()

    def __getitem__(self, index: Any) -> Tensor:
        return wrap(self._array[_plain(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[_plain(index)] = array_of(value)

    def __iter__(self) -> Iterator[Tensor]:
        return (wrap(each) for each in self._array)

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array.item())

    def __float__(self) -> Any:
        return self._array.item() * 1.0

    def __index__(self) -> int:
        return self._array.item().__index__()

    def __format__(self, form: str) -> str:
        return format(self.item() if self.ndim == 0 else str(self), form)

    def __repr__(self) -> str:
        whole = bool(np.all(self._array == np.trunc(self._array)))
        text = np.array2string(
            self._array, precision=4, separator=", ", prefix="tensor(",
            floatmode="maxprec" if whole else "fixed",
        )  # fmt: skip
        usual = ("float32", "int64", "bool")
        kind = "" if self._array.dtype.name in usual else f", dtype={self.dtype}"
        return f"tensor({text}{kind})"

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(METHODS[name], self)
        raise Refused(name) if name.startswith("__") else refusal(f"Tensor.{name}")

    __hash__ = object.__hash__


def wrap(array: Any) -> Tensor:
    """A tensor over the memory of an array."""
    tensor = Tensor.__new__(Tensor)
    tensor._array = np.asarray(array)
    return tensor


def array_of(value: Any) -> Any:
    """The array of a tensor, and everything else as it is; tensors in lists, too."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, (list, tuple)):
        return type(value)(array_of(each) for each in value)
    return value


def _plain(index: Any) -> Any:
    return tuple(map(array_of, index)) if isinstance(index, tuple) else array_of(index)


def _operator(name: str, swapped: bool = False) -> Callable[[Tensor, Any], Any]:
    def operate(self: Tensor, other: Any) -> Any:
        if isinstance(other, Traced):
            return NotImplemented
        return METHODS[name](other, self) if swapped else METHODS[name](self, other)

    return operate


for _symbol in ("add", "sub", "mul", "truediv", "pow", "matmul"):
    _name = {"truediv": "div"}.get(_symbol, _symbol)
    setattr(Tensor, f"__{_symbol}__", _operator(_name))
    setattr(Tensor, f"__r{_symbol}__", _operator(_name, swapped=True))
for _symbol in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_symbol}__", _operator(_symbol))
setattr(Tensor, "__neg__", lambda self: METHODS["neg"](self))  # noqa: B010
