"""What constants hold, without NumPy: the bytes of an array with its shape and element type.

A `Constant` may hold anything that has `shape`, `dtype` and `numpy()`; an NDArray is kept as it is.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mlcweb.ir.errors import DiagnosticError
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    import numpy as np

_FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B",
    "uint16": "H", "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
    "bfloat16": "H",
}  # fmt: skip


class ArrayData(Protocol):
    """What a constant may hold, such as an NDArray."""

    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def dtype(self) -> object: ...
    def numpy(self) -> np.ndarray: ...


Number: TypeAlias = bool | int | float

Nested: TypeAlias = "Number | list[Nested] | tuple[Nested, ...]"
"""A number, or rows of them."""

ArrayLike: TypeAlias = "Nested | Sequence[Nested] | ArrayData | np.ndarray | np.generic"
"""What `host_array` takes. Tensors of PyTorch are `ArrayData`."""


class HostArray:
    """A compact array in the memory of the host. Never changed."""

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: str, data: bytes) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.dtype = dtype
        self.data = data
        if len(data) != math.prod(self.shape) * dtypes.size_in_bytes(dtype):
            raise DiagnosticError(f"{len(data)} bytes are no {dtype} array of shape {self.shape}")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that cannot be written. bfloat16 comes as float32."""
        import numpy as np

        if self.dtype == "bfloat16":
            bits = np.frombuffer(self.data, "uint16")
            return dtypes.widen_bfloat16(bits).reshape(self.shape)
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)

    asnumpy = numpy

    def __array__(self, dtype: str | None = None, copy: bool | None = None) -> np.ndarray:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def tobytes(self) -> bytes:
        return self.data

    def elements(self) -> Iterator[Number]:
        """The elements as Python numbers, in row-major order."""
        if self.dtype == "bfloat16":
            for (bits,) in struct.iter_unpack("<H", self.data):
                yield struct.unpack("<f", struct.pack("<I", bits << 16))[0]
            return
        for (value,) in struct.iter_unpack("<" + _FORMATS[self.dtype], self.data):
            yield value

    def __repr__(self) -> str:
        return f"HostArray(shape={self.shape}, dtype={self.dtype})"


def detached(value: Any) -> Any:
    """A tensor of PyTorch as an array of NumPy; other values as they are."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def host_array(value: ArrayLike, dtype: str | None = None) -> ArrayData:
    """`value` as the data of a constant.

    Numbers and nested lists become int32, float32 or bool without `dtype`; a NumPy array keeps its
    element type, except float64 and int64, which become float32 and int32 as in TVM unless `dtype`
    says otherwise. An NDArray is kept where its type is the one asked for.
    """
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):  # as TVM prints them
        value = float(value)
    if isinstance(value, (bool, int, float, list, tuple)):
        return _from_numbers(value, dtype)
    array = detached(value)
    if type(array).__module__.split(".")[0] == "numpy":
        narrow = {"float64": "float32", "int64": "int32"}.get(str(array.dtype), str(array.dtype))
        return _from_numpy(array, dtype or narrow)
    if not (hasattr(array, "shape") and hasattr(array, "dtype") and hasattr(array, "numpy")):
        raise DiagnosticError(f"A constant is a number or an array, not {type(value).__name__}")
    if dtype is None or str(array.dtype) == dtype:
        return array
    return _from_numpy(array.numpy(), dtype)


def _from_numpy(value: np.ndarray | np.generic, dtype: str) -> HostArray:
    if dtype == "bfloat16":
        return _from_numbers(value.tolist(), dtype)
    return HostArray(value.shape, dtype, value.astype(dtype, order="C").tobytes())


def _from_numbers(value: Nested, dtype: str | None) -> HostArray:
    shape, flat = _shape_of(value), list(_flat(value))
    if math.prod(shape) != len(flat):
        raise DiagnosticError("The rows of a constant differ in length")
    if dtype is None:
        kinds = {type(number) for number in flat}
        dtype = "bool" if kinds == {bool} else "int32" if kinds <= {bool, int} else "float32"
    return HostArray(shape, dtype, b"".join(_packed(number, dtype) for number in flat))


def _shape_of(value: Nested) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return (len(value), *(_shape_of(value[0]) if value else ()))


def _flat(value: Nested) -> Iterator[Number]:
    if not isinstance(value, (list, tuple)):
        yield value
        return
    for item in value:
        yield from _flat(item)


def _packed(number: Number, dtype: str) -> bytes:
    kind = dtypes.kind(dtype)
    if dtype not in _FORMATS:
        raise DiagnosticError(f"There are no constants of {dtype}")
    if kind == "bfloat":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        if not math.isnan(number):
            bits += 0x7FFF + (bits >> 16 & 1)  # rounds to nearest, ties to even
        return struct.pack("<H", bits >> 16 & 0xFFFF)
    if kind == "float":
        number = float(number)
        if dtype != "float64" and math.isfinite(number) and abs(number) > dtypes.max_value(dtype):
            number = math.copysign(math.inf, number)
    elif kind == "bool":
        number = bool(number)
    else:
        number = dtypes.wrap_integer(int(number), dtype)
    return struct.pack("<" + _FORMATS[dtype], number)


def contents(data: ArrayData) -> tuple[tuple[int, ...], str, bytes]:
    """Shape, element type and bytes of a constant's data: equal where two constants are."""
    kept: Any = data
    raw = kept.tobytes() if hasattr(kept, "tobytes") else data.numpy().tobytes()
    return tuple(int(n) for n in data.shape), str(data.dtype), raw


def scalar(data: ArrayData) -> Number | None:
    """The number that data without dimensions holds, else None."""
    if tuple(data.shape) != ():
        return None
    if isinstance(data, HostArray):
        return next(data.elements())
    return data.numpy().item()
