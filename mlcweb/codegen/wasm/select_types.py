"""How values of each element type stand on WebAssembly's stack, in its vectors and in memory."""

from __future__ import annotations

from mlcweb.codegen.processor.selection import UnsupportedError, is_unsigned
from mlcweb.codegen.wasm.instructions import ValueType
from mlcweb.tir import dtype as dtypes

VECTOR_BYTES = 16

STACK_TYPES: dict[str, ValueType] = {
    "bool": "i32", "int8": "i32", "int16": "i32", "int32": "i32", "int64": "i64",
    "uint8": "i32", "uint16": "i32", "uint32": "i32", "uint64": "i64",
    "float32": "f32", "float64": "f64", "handle": "i32",
}  # fmt: skip
"""The type of a scalar on the stack. Integers narrower than 32 bits are extended by their sign (or
zeros), a bool is 0 or 1."""

LOADS = {
    "bool": "i32.load8_u", "int8": "i32.load8_s", "int16": "i32.load16_s", "int32": "i32.load",
    "int64": "i64.load", "uint8": "i32.load8_u", "uint16": "i32.load16_u", "uint32": "i32.load",
    "uint64": "i64.load", "float32": "f32.load", "float64": "f64.load",
}  # fmt: skip
STORES = {
    "bool": "i32.store8", "int8": "i32.store8", "int16": "i32.store16", "int32": "i32.store",
    "int64": "i64.store", "uint8": "i32.store8", "uint16": "i32.store16", "uint32": "i32.store",
    "uint64": "i64.store", "float32": "f32.store", "float64": "f64.store",
}  # fmt: skip


def stack_type(dtype: str) -> ValueType:
    """The type of a value of `dtype` on the stack."""
    if dtypes.lanes(dtype) > 1:
        return "v128"
    value_type = STACK_TYPES.get(dtype)
    if value_type is None:
        raise UnsupportedError(f"WebAssembly code has no values of type {dtype}")
    return value_type


def vector_shape(dtype: str) -> str:
    """The shape prefix of vector instructions for an element type: "i8x16", "f32x4", …"""
    kind, bits, _ = dtypes.parse(dtype)
    return f"{'f' if kind == 'float' else 'i'}{bits}x{128 // bits}"


def mask_bits(lanes: int) -> int:
    """The width of a lane of a vector of conditions: such vectors fill all 128 bits."""
    return 128 // lanes


def sign_suffix(dtype: str) -> str:
    """ "_u" or "_s" for instructions that come in both; "" for floats."""
    if dtypes.is_float(dtype):
        return ""
    return "_u" if is_unsigned(dtype) else "_s"


def check_vector(dtype: str) -> None:
    """Raise an UnsupportedError where values of a type do not fit one vector register."""
    _, bits, lanes = dtypes.parse(dtype)
    if lanes & (lanes - 1) or max(bits, 8) * lanes > 128 or lanes > 16:
        raise UnsupportedError(f"WebAssembly has no vectors of type {dtype}")
