"""Named arrays as bytes, in TVM's format: `tvm.runtime.save_param_dict` and `load_param_dict`."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.ndarray import NDArray, array, empty
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.dtype import DataType

_LIST, _ARRAY = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
_CPU, _BOOL = (1, 0), (6, 8, 1)
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """Arrays by name as bytes that `load_param_dict`, TVM's as well, reads."""
    names = [name.encode() for name in params]
    parts = [struct.pack("<QQQ", _LIST, 0, len(names))]
    parts += [struct.pack("<Q", len(name)) + name for name in names]
    parts.append(struct.pack("<Q", len(names)))
    for value in params.values():
        tensor = value if isinstance(value, NDArray) else array(value)
        kind = DataType(tensor.dtype)
        numbers = _BOOL if tensor.dtype == "bool" else (kind.type_code, kind.bits, kind.lanes)
        data = tensor.tobytes()
        parts.append(struct.pack("<QQiii", _ARRAY, 0, *_CPU, tensor.ndim))
        parts.append(struct.pack("<BBH", *numbers))
        parts.append(struct.pack(f"<{tensor.ndim}qq", *tensor.shape, len(data)) + data)
    return b"".join(parts)


def load_param_dict(param_bytes: bytes) -> dict[str, NDArray]:
    """The arrays that `save_param_dict` has saved, here or in TVM.

    Raises:
        TVMError: the bytes are of something else, or damaged.
    """
    try:
        return _read(BytesIO(param_bytes))
    except (ValueError, TypeError, OverflowError, MemoryError, struct.error) as error:
        raise TVMError(f"The bytes of these parameters are damaged: {error}") from error


def _read(stream: BytesIO) -> dict[str, NDArray]:

    def read(form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", data(struct.calcsize(f"<{form}")))

    def data(size: int) -> bytes:
        chunk = stream.read(size) if size >= 0 else b""
        if len(chunk) != size:
            raise TVMError("The bytes of these parameters end too early")
        return chunk

    magic, _, count = read("QQQ")
    if magic != _LIST:
        raise TVMError("These bytes are no parameters that save_param_dict has saved")
    names = [data(*read("Q")).decode() for _ in range(count)]
    read("Q")
    params = {}
    for name in names:
        magic, _, _, _, ndim = read("QQiii")
        code, bits, lanes = read("BBH")
        if magic != _ARRAY or lanes != 1:
            raise TVMError(f'The array "{name}" is not one of numbers')
        *shape, size = read(f"{ndim}qq")
        params[name] = _tensor(data(size), _dtype(code, bits), tuple(shape))
    return params


def save_param_dict_to_file(params: Mapping[str, Any], path: str) -> None:
    """Write arrays by name to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str) -> dict[str, NDArray]:
    """Read arrays by name from a file."""
    return load_param_dict(Path(path).read_bytes())


def _dtype(code: int, bits: int) -> str:
    if code == _BOOL[0] or bits == 1:
        return "bool"
    return f"{_KINDS.get(code, 'float')}{bits}"


def _tensor(data: bytes, dtype: str, shape: tuple[int, ...]) -> NDArray:
    import numpy as np

    if len(data) != math.prod(shape) * dtypes.size_in_bytes(dtype):
        raise TVMError(f"These {len(data)} bytes are no array {dtype}{list(shape)}")
    result = empty(shape, dtype)
    view = result.view()
    view[...] = np.frombuffer(data, view.dtype).reshape(shape)
    return result
