"""Arrays that programs work on. `array` copies in, `.numpy()` copies out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from mlcweb.ir.errors import TVMError
from mlcweb.ir.structural import COMPARED_AS
from mlcweb.runtime.device import DEVICE_TYPES, Device, cpu, cuda, device, require
from mlcweb.runtime.storage import BORROWED, HostStorage, Storage, StorageView, allocate
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    import numpy as np

_STORED_AS = {"bfloat16": "uint16", **dict.fromkeys(dtypes.NUMBERS_OF_BYTES, "uint8")}
"""The integers that are the bits of types that NumPy lacks."""

gpu = cuda


class ArrayError(TVMError, ValueError):
    """An array does not fit what is asked of it."""


class ArrayMemoryError(TVMError, MemoryError):
    """An array is larger than the memory that is left."""


class Layout:
    """What a prepared call has to know of an array: shape, element type, device, and the memory
    that it lies in. There is one object for all arrays that agree in all of these."""

    __slots__ = ("__weakref__", "device", "dtype", "memory", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: str, dev: Device, memory: object) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = dev
        self.memory = memory


_layouts: WeakValueDictionary[tuple[Any, ...], Layout] = WeakValueDictionary()


def layout_of(shape: tuple[int, ...], dtype: str, dev: Device, memory: object) -> Layout:
    """The layout of arrays like that, which is the same object as long as anybody holds it."""
    key = (shape, dtype, dev, id(memory))
    layout = _layouts.get(key)
    if layout is None:
        layout = _layouts[key] = Layout(shape, dtype, dev, memory)
    return layout


class NDArray:
    """A compact array of a fixed shape and element type on a device.

    Made by `array`, `empty` or `from_dlpack`.
    """

    __slots__ = ("address", "device", "dtype", "layout", "shape", "storage")

    def __init__(self, shape: tuple[int, ...], dtype: str, dev: Device, storage: Storage) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = dev
        self.storage = storage
        self.address = storage.address
        self.layout = layout_of(shape, dtype, dev, storage.memory)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """How many elements lie between neighbours along each dimension."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def is_contiguous(self) -> bool:
        """Whether the elements lie side by side in order: always."""
        return True

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.storage.nbytes

    def view(self) -> np.ndarray[Any, Any]:
        """The elements in place: what is written to the result is written to the array. bfloat16,
        which NumPy lacks, comes as its bits in uint16."""
        return self.shaped(self.storage.view())

    def _create_view(
        self, shape: Sequence[int], dtype: str | None = None, relative_byte_offset: int = 0
    ) -> NDArray:
        """An array over a part of the memory of this one, from `relative_byte_offset` on.

        Raises: ArrayError (a ValueError) where this one has no such part.
        """
        extents, dtype = tuple(map(int, shape)), _type_name(dtype or self.dtype)
        start = relative_byte_offset
        end = start + math.prod(extents) * dtypes.size_in_bytes(dtype)
        if start < 0 or end > self.nbytes:
            raise ArrayError(
                f"A view of shape {extents} and dtype {dtype} would occupy bytes {start} <= i_byte "
                f"< {end}, but the Tensor being viewed only contains {self.nbytes} bytes"
            )
        part = StorageView(self.storage, start, end - start)
        return NDArray(extents, dtype, self.device, part)

    def same_as(self, other: object) -> bool:
        """Whether the other is this very array, not only an equal one."""
        return self is other

    def overlaps(self, other: NDArray) -> bool:
        """Whether some byte belongs to both arrays."""
        memories = self.layout.memory, other.layout.memory
        if BORROWED not in memories:
            # What was allocated apart stays apart.
            return self.storage is other.storage
        visible = self.storage.visible
        if visible is not other.storage.visible:
            return False
        if not visible:
            first, second = (_extent(array.storage) for array in (self, other))
            return first[0] is second[0] and first[1] < second[2] and second[1] < first[2]
        one, two = self.view(), other.view()
        first, second = (array.__array_interface__["data"][0] for array in (one, two))
        return first < second + two.nbytes and second < first + one.nbytes

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy of the elements as a NumPy array. bfloat16 and floats of 8 bits come as float32:
        NumPy lacks them."""
        return from_bits(self.bits(), self.dtype)

    def bits(self) -> np.ndarray[Any, Any]:
        """A copy of what `view` shows, also where Python cannot reach the array in place."""
        return self.shaped(self.storage.read())

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, and what is pickled, has memory of its own."""
        return _of_bits, (self.shape, self.dtype, self.device, self.bits())

    def shaped(self, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Bytes as elements of this array lie in memory."""
        return data.view(_numpy_dtype(self.dtype)).reshape(self.numbers.shape)

    @property
    def numbers(self) -> NDArray:
        """The array itself, or, of vectors, their numbers in place, with one dimension more."""
        lanes = dtypes.lanes(self.dtype)
        if lanes == 1:
            return self
        return NDArray(
            (*self.shape, lanes), dtypes.element_of(self.dtype), self.device, self.storage
        )

    asnumpy = numpy

    def tobytes(self) -> bytes:
        """The elements as they lie in memory."""
        return self.bits().tobytes()

    def copyfrom(self, source_array: Any) -> NDArray:
        """Overwrite the elements with those of an array of the same shape; types are converted."""
        import numpy as np

        source = source_array
        values = source.numpy() if isinstance(source, NDArray) else np.asarray(source)
        shape = self.numbers.shape
        if values.shape != shape:
            raise ArrayError(
                f"Cannot copy an array of shape {values.shape} into one of shape {shape}"
            )
        self.storage.write(to_bits(values, dtypes.element_of(self.dtype)))
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy into another array, or into a new one on a device, whose memory has one scope."""
        if mem_scope not in (None, "", "global"):
            raise ArrayError(f'Arrays live in "global" memory here, not in "{mem_scope}"')
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target)
        if target.dtype != self.dtype:
            raise ArrayError(f"Cannot copy {self.dtype} elements into an array of {target.dtype}")
        return target.copyfrom(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        if self.dtype in _STORED_AS:
            raise ArrayError(f"NumPy, which exports arrays, has no {self.dtype}; export `.numpy()`")
        return self.view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return DEVICE_TYPES[self.device.type], self.device.index

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        values = self.numpy()
        values[index] = value.numpy() if isinstance(value, NDArray) else value
        self.copyfrom(values)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("An array without dimensions has no length")
        return self.shape[0]

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        head = f"<{type(self).__module__}.{type(self).__name__} shape={self.shape}, {self.device}>"
        return f"{head}\n{self.numpy()!r}"


COMPARED_AS[NDArray] = lambda array: (array.shape, array.dtype, array.numpy().tobytes())


def empty(
    shape: int | Sequence[int],
    dtype: Any = "float32",
    device: Device | str | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """An array of undefined content."""
    where = require(_device(device))
    extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise ArrayError(f"A shape has no negative extents: {extents}")
    name = _type_name(dtype)
    nbytes = math.prod(extents) * dtypes.size_in_bytes(name)
    try:
        return NDArray(extents, name, where, allocate(nbytes, where.type))
    except MemoryError as error:
        shown = ", ".join(map(str, extents))
        raise ArrayMemoryError(
            f"No memory for an array of shape ({shown}) and type {name}, which takes {nbytes} "
            f"bytes. {error}"
        ) from None


def array(arr: Any, device: Device | str | None = None, mem_scope: str | None = None) -> NDArray:
    """A new array with the elements of a NumPy array, an NDArray, or nested lists.

    Element types are kept (lists give float64 or int64, as in NumPy).
    """
    import numpy as np

    if not isinstance(arr, NDArray):
        arr = np.asarray(arr)
    return empty(arr.shape, arr.dtype, device).copyfrom(arr)


@cache
def default_integer() -> str:
    """The type of integers that NumPy makes where none is named: int32 in a browser."""
    import numpy as np

    return np.arange(0).dtype.name


def from_dlpack(ext_tensor: Any) -> NDArray:
    """An array over the memory of another library's tensor, without a copy where it is compact."""
    import numpy as np

    values = np.from_dlpack(ext_tensor)
    if not (values.flags.c_contiguous and values.flags.writeable):
        return array(values)
    storage = HostStorage(values.reshape(-1).view(np.uint8), BORROWED)
    return NDArray(values.shape, _type_name(values.dtype), cpu(), storage)


def _extent(storage: Storage) -> tuple[object, int, int]:
    """The memory that bytes lie in, and the first address and the one after the last."""
    memory = storage.whole.memory if isinstance(storage, StorageView) else storage.memory
    return memory, storage.address, storage.address + storage.nbytes


def _device(dev: Device | str | None) -> Device:
    return cpu() if dev is None else device(dev)


def _type_name(dtype: Any) -> str:
    """A dtype as TVM spells it, from its name or from NumPy's type."""
    if not isinstance(dtype, str):
        import numpy as np

        dtype = np.dtype(dtype).name
    return "bool" if dtype == "bool_" else _checked(dtype)


def _checked(dtype: str) -> str:
    if dtypes.kind(dtype) in ("handle", "void"):
        raise ArrayError(f"An array cannot hold {dtype} elements")
    return dtype


def _numpy_dtype(dtype: str) -> Any:
    from mlcweb.codegen.interpreter.support import numpy_dtype

    return numpy_dtype(_STORED_AS.get(dtype, dtype))


def to_bits(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Values as they lie in an array of a type: converted to it, and types that NumPy lacks as
    bits."""
    import numpy as np

    if dtype == "bfloat16":
        values = _rounded(values)
    elif dtype in dtypes.NUMBERS_OF_BYTES:
        values = _nearest_bytes(values, dtype)
    return np.asarray(values, _numpy_dtype(dtype), order="C")


def _of_bits(
    shape: tuple[int, ...], dtype: str, dev: Device, bits: np.ndarray[Any, Any]
) -> NDArray:
    result = empty(shape, dtype, dev)
    result.storage.write(bits)
    return result


def from_bits(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The values of an array of a type, of how they lie in it: float32 for types that NumPy
    lacks."""
    import numpy as np

    if dtype in dtypes.NUMBERS_OF_BYTES:
        return np.array(dtypes.NUMBERS_OF_BYTES[dtype], "float32")[bits]
    return bits if dtype != "bfloat16" else dtypes.widen_bfloat16(bits)


def from_bytes(data: Any, dtype: str, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The values of an array of a type and shape, of its bytes."""
    import numpy as np

    return from_bits(np.frombuffer(data, _numpy_dtype(dtype)).reshape(shape), dtype)


def _rounded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of the bfloat16 nearest to each number, of two the even one."""
    import numpy as np

    with np.errstate(all="ignore"):  # what is too large becomes infinite
        wide = np.asarray(values, "float32", order="C")
    bits = wide.view("uint32")
    rounded = bits + (((bits >> 16) & 1) + 0x7FFF)
    return (np.where(np.isnan(wide), bits | 0x400000, rounded) >> 16).astype("uint16")


def _nearest_bytes(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The bits of the float of 8 bits nearest to each number, of two the even one."""
    import numpy as np

    numbers = np.asarray(values, "float64")
    magnitudes = np.array(dtypes.NUMBERS_OF_BYTES[dtype][:128])
    finite = magnitudes[np.isfinite(magnitudes)]
    steps = np.diff(finite, append=2 * finite[-1] - finite[-2])
    halves = finite + steps / 2
    bits = np.searchsorted(halves, np.abs(numbers))
    ties = np.isin(np.abs(numbers), halves)
    bits += ties & (bits % 2 == 1)
    bits[np.isnan(numbers)] = 0x7F
    return (bits | (np.signbit(numbers) << 7)).astype("uint8")
