"""TensorProto to the data of constants."""

from __future__ import annotations

import math
import struct
from pathlib import Path

from mlcweb.relax.constant_data import HostArray
from mlcweb.relax.frontend.onnx.errors import OnnxError
from mlcweb.relax.frontend.onnx.schema import DTYPES, EXTERNAL, UNSUPPORTED_DTYPES, Proto
from mlcweb.tir import dtype as dtypes

_STORED = {
    "float32": ("float_data", "f"),
    "float64": ("double_data", "d"),
    "int64": ("int64_data", "q"),
    "uint64": ("uint64_data", "Q"),
    "uint32": ("uint64_data", "I"),
    "int32": ("int32_data", "i"),
    "int16": ("int32_data", "h"),
    "int8": ("int32_data", "b"),
    "uint16": ("int32_data", "H"),
    "uint8": ("int32_data", "B"),
    "bool": ("int32_data", "?"),
    "float16": ("int32_data", "H"),
    "bfloat16": ("int32_data", "H"),
}
"""The field that has the elements where there are no raw bytes, and how they are packed."""


def dtype_name(number: int, what: str) -> str:
    """The name of an element type. `what` has it, for messages. Raises: OnnxError."""
    if number in DTYPES:
        return DTYPES[number]
    name = UNSUPPORTED_DTYPES.get(number, f"of the unknown type {number}")
    raise OnnxError(f"{what} is {name}; there are tensors of {', '.join(DTYPES.values())}")


def host_tensor(tensor: Proto, folder: Path | None = None) -> HostArray:
    """A tensor of the model. Those stored in files of their own are found in `folder`.

    Raises: OnnxError.
    """
    name = tensor.name or "without a name"
    dtype = dtype_name(tensor.data_type, f'The tensor "{name}"')
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape):
        raise OnnxError(f'The tensor "{name}" has a negative extent: {shape}')
    expected = math.prod(shape) * dtypes.size_in_bytes(dtype)
    if tensor.data_location == EXTERNAL:
        data = _external(tensor, folder, expected)
    elif tensor.raw_data:
        data = tensor.raw_data
    else:
        field, form = _STORED[dtype]
        values = getattr(tensor, field)
        try:
            data = struct.pack(f"<{len(values)}{form}", *values)
        except struct.error as error:
            raise OnnxError(f'The tensor "{name}" has elements beyond {dtype}: {error}') from None
    if len(data) != expected:
        raise OnnxError(
            f'The tensor "{name}" of shape {shape} and type {dtype} has {len(data)} bytes of data '
            f"where it needs {expected}"
        )
    return HostArray(shape, dtype, data)


def _external(tensor: Proto, folder: Path | None, expected: int) -> bytes:
    """The bytes of a tensor in a file of its own; no more are read than it needs."""
    where = {entry.key: entry.value for entry in tensor.external_data}
    name, location = f'The tensor "{tensor.name}"', where.get("location", "")
    if folder is None:
        raise OnnxError(
            f'The data of the tensor "{tensor.name}" is in the file "{location}": '
            "pass the path of the model instead of its contents"
        )
    root = folder.resolve()
    try:
        path = (root / location).resolve()
        size = path.stat().st_size if path.is_file() else None
        offset, length = (int(where.get(key, default)) for key, default in _RANGE.items())
    except (ValueError, OSError, RuntimeError) as error:  # the last for links in circles
        raise OnnxError(f"{name} does not say where its data is: {error}") from None
    if root not in path.parents:
        raise OnnxError(f"{name} is not in the folder of the model: {path}")
    if size is None:
        raise OnnxError(f'{name} is in the file "{location}", which is not there')
    if length < 0 and "length" not in where:
        length = size - offset
    if not (0 <= offset and 0 <= length and offset + length <= size):
        raise OnnxError(
            f'{name} has {length} bytes from byte {offset} of the file "{location}", '
            f"which has {size}"
        )
    if length != expected:
        raise OnnxError(f"{name} has {length} bytes of data where it needs {expected}")
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise OnnxError(f'{name} is in the file "{location}": {error.strerror}') from None


_RANGE = {"offset": 0, "length": -1}
"""What of the file is the tensor's, where it does not say so."""
