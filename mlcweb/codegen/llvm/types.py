"""Types and constants of LLVM: those of values, of elements in memory, and of arguments."""

from __future__ import annotations

import ctypes
import struct

from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.dtype import wrap_integer

_FLOATS = {"float16": "half", "float32": "float", "float64": "double"}
_INTEGER_BITS = (8, 16, 32, 64)

INDEX = "i64"
"""Addresses are computed in integers of this type."""


def value_type(dtype: str) -> str:
    """The type of a value: i1 for a bool, the same integers for signed and unsigned ones."""
    kind, bits, lanes = dtypes.parse(dtype)
    if kind == "handle":
        return "ptr"
    element = dtypes.element_of(dtype)
    if dtypes.is_bool(element):
        name = "i1"
    elif kind in ("int", "uint") and bits in _INTEGER_BITS:
        name = f"i{bits}"
    elif element in _FLOATS:
        name = _FLOATS[element]
    else:
        raise UnsupportedError(f"LLVM code has no values of type {dtype}")
    return name if lanes == 1 else f"<{lanes} x {name}>"


def memory_type(dtype: str) -> str:
    """The type of elements in memory, where a bool takes a byte."""
    if dtypes.is_bool(dtypes.element_of(dtype)):
        return value_type(dtypes.with_lanes("uint8", dtypes.lanes(dtype)))
    return value_type(dtype)


def argument_type(dtype: str) -> str:
    """The type of a scalar that is passed from outside or to Python: narrow ones are widened."""
    if dtypes.is_float(dtype):
        return "double" if dtype == "float64" else "float"
    return "i64" if dtypes.bits(dtype) == 64 else "i32"


def suffix(dtype: str) -> str:
    """How the names of intrinsic functions end for a type: "v8f32", "i64"."""
    kind, bits, lanes = dtypes.parse(dtype)
    name = f"{'f' if kind == 'float' else 'i'}{bits}"
    return name if lanes == 1 else f"v{lanes}{name}"


def constant(value: float, dtype: str) -> str:
    """A number, in all lanes of a vector."""
    element = dtypes.element_of(dtype)
    if dtypes.is_bool(element):
        text = "true" if value else "false"
    elif element == "float16":
        text = f"0xH{_half_bits(value):04X}"
    elif dtypes.is_float(element):
        number = ctypes.c_float(value).value if element == "float32" else float(value)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    else:
        text = str(wrap_integer(int(value), f"int{dtypes.bits(element)}"))
    if dtypes.lanes(dtype) == 1:
        return text
    return f"splat ({value_type(element)} {text})"


def _half_bits(value: float) -> int:
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00
