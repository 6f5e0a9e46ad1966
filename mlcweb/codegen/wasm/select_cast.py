"""Conversions between types: scalars, vectors, masks and constants."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mlcweb.codegen.processor.selection import UnsupportedError
from mlcweb.codegen.wasm.binary import single_bytes
from mlcweb.codegen.wasm.select_types import (
    mask_bits,
    sign_suffix,
    stack_type,
    vector_shape,
)
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_function import FunctionSelector

ALL_ONES = b"\xff" * 16
ALL_ZEROS = bytes(16)


def constant_bytes(value: float, dtype: str, lanes: int) -> bytes:
    """The 16 bytes of a vector with `value` in all lanes."""
    if dtypes.is_bool(dtype):
        return ALL_ONES if value else ALL_ZEROS
    if dtypes.is_float(dtype):
        one = single_bytes(value) if dtype == "float32" else struct.pack("<d", value)
    else:
        size = dtypes.size_in_bytes(dtype)
        one = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return (one * 16)[:16]


def push_constant(selector: FunctionSelector, value: bytes) -> None:
    """A vector constant."""
    selector.emit("v128.const", value)


def wrap(selector: FunctionSelector, dtype: str) -> None:
    """Bring the value on the stack, the result of arithmetic, into the range of its type."""
    if dtype in ("int8", "int16"):
        selector.emit(f"i32.extend{dtypes.bits(dtype)}_s")
    elif dtype in ("uint8", "uint16", "bool"):
        selector.emit("i32.const", (1 << dtypes.bits(dtype)) - 1)
        selector.emit("i32.and")


def cast_scalar(selector: FunctionSelector, source: str, target: str) -> None:
    """Convert the value on the stack."""
    emit = selector.emit
    start, end = stack_type(source), stack_type(target)
    if source == target:
        return
    if target == "bool":
        emit(f"{start}.const", 0)
        emit(f"{start}.ne")
    elif dtypes.is_float(target):
        if not dtypes.is_float(source):
            emit(f"{end}.convert_{start}{sign_suffix(source)}")
        elif start != end:
            emit("f64.promote_f32" if end == "f64" else "f32.demote_f64")
        wrap(selector, target)
    elif dtypes.is_float(source):
        _truncate(selector, start, target)
    elif start != end:
        if end == "i64":
            emit(f"i64.extend_i32{sign_suffix(source)}")
        else:
            emit("i32.wrap_i64")
            wrap(selector, target)
    elif not _contains(target, source):
        wrap(selector, target)


def _truncate(selector: FunctionSelector, source: str, target: str) -> None:
    """Convert a float of the stack type `source` to an integer, toward zero."""
    emit = selector.emit
    if dtypes.bits(target) < 32:
        # Out of range gives the nearest end, in the types that the engine does not know, too.
        emit(f"{source}.const", float(dtypes.min_value(target)))
        emit(f"{source}.max")
        emit(f"{source}.const", float(dtypes.max_value(target)))
        emit(f"{source}.min")
    emit(f"{stack_type(target)}.trunc_sat_{source}{sign_suffix(target)}")


def _contains(target: str, source: str) -> bool:
    """Whether every value of one integer type is in another, as it stands on the stack."""
    least, greatest = dtypes.min_value(target), dtypes.max_value(target)
    return least <= dtypes.min_value(source) and dtypes.max_value(source) <= greatest


def cast_vector(selector: FunctionSelector, source: str, target: str, lanes: int) -> None:
    """Convert the vector on the stack."""
    emit = selector.emit
    before, after = dtypes.bits(source), dtypes.bits(target)
    if source == target:
        return
    if dtypes.is_bool(source):
        resize(selector, mask_bits(lanes), after)
        push_constant(selector, constant_bytes(1, target, lanes))
        emit("v128.and")
    elif dtypes.is_bool(target):
        emit("v128.const", ALL_ZEROS)
        emit(f"{vector_shape(source)}.ne")
        resize(selector, before, mask_bits(lanes))
    elif dtypes.is_float(source) and dtypes.is_float(target):
        emit("f64x2.promote_low_f32x4" if after == 64 else "f32x4.demote_f64x2_zero")
    elif dtypes.is_float(target):
        if before > 32:
            raise UnsupportedError(f"WebAssembly cannot convert vectors of {source} to {target}")
        resize(selector, before, 32, sign_suffix(source))
        suffix = sign_suffix(source)
        emit(f"f32x4.convert_i32x4{suffix}" if after == 32 else f"f64x2.convert_low_i32x4{suffix}")
    elif dtypes.is_float(source):
        if after > 32:
            raise UnsupportedError(f"WebAssembly cannot convert vectors of {source} to {target}")
        suffix = sign_suffix(target) if after == 32 else "_s"
        emit(
            f"i32x4.trunc_sat_f32x4{suffix}"
            if before == 32
            else f"i32x4.trunc_sat_f64x2{suffix}_zero"
        )
        if after < 32:
            push_constant(selector, constant_bytes(dtypes.min_value(target), "int32", 4))
            emit("i32x4.max_s")
            push_constant(selector, constant_bytes(dtypes.max_value(target), "int32", 4))
            emit("i32x4.min_s")
            narrow(selector, 4, after // 8)
    else:
        resize(selector, before, after, sign_suffix(source))


def resize(selector: FunctionSelector, source: int, target: int, suffix: str = "_s") -> None:
    """Change the width of the lanes of the mask or the integers on the stack; they fill the lower
    lanes. `suffix` says whether they are widened by their sign, as masks are, or by zeros."""
    while source < target:
        selector.emit(f"{_shape(source * 2)}.extend_low_{_shape(source)}{suffix}")
        source *= 2
    if source > target:
        narrow(selector, source // 8, target // 8)


def _shape(bits: int) -> str:
    return f"i{bits}x{128 // bits}"


def narrow(selector: FunctionSelector, source: int, target: int) -> None:
    """Keep the lower `target` bytes of each lane of `source` bytes."""
    kept = [lane * source + byte for lane in range(16 // source) for byte in range(target)]
    selector.emit("v128.const", ALL_ZEROS)
    selector.emit("i8x16.shuffle", tuple(kept + [16] * (16 - len(kept))))
