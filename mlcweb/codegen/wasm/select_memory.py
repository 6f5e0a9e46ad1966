"""Vector loads and stores to SIMD instructions, of elements next to each other and of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlcweb.codegen.processor.selection import (
    UnsupportedError,
    every_other,
    is_contiguous,
    is_every_other,
)
from mlcweb.codegen.wasm.select_cast import (
    ALL_ZEROS,
    constant_bytes,
    push_constant,
    resize,
)
from mlcweb.codegen.wasm.select_types import check_vector, mask_bits
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

if TYPE_CHECKING:
    from mlcweb.codegen.wasm.select_address import Place
    from mlcweb.codegen.wasm.select_function import FunctionSelector


def load_vector(selector: FunctionSelector, load: E.BufferLoad) -> None:
    check_vector(load.dtype)
    if load.buffer.scope() == REGISTER_SCOPE:
        local, _ = selector.register(load)
        selector.emit("local.get", local)
        return
    index, dtype = load.indices[0], load.buffer.dtype
    size = dtypes.size_in_bytes(dtype)
    place = selector.addresses.place(load)
    lanes = dtypes.lanes(load.dtype)
    if is_contiguous(index):
        _load_contiguous(selector, place, place.offset, lanes * size)
    elif is_every_other(index):
        _load_every_other(selector, place, lanes, size)
    else:
        _gather(selector, load, size)
    if dtypes.is_bool(dtype):
        selector.emit("v128.const", ALL_ZEROS)
        selector.emit("i8x16.ne")
        resize(selector, 8, mask_bits(lanes))


def _load_contiguous(selector: FunctionSelector, place: Place, offset: int, length: int) -> None:
    """So many bytes in the lower lanes, at another offset than that of the place."""
    selector.addresses.push(place)
    if length == 16:
        selector.emit("v128.load", offset)
    elif length >= 4:
        selector.emit(f"v128.load{length * 8}_zero", offset)
    else:
        selector.emit("v128.const", ALL_ZEROS)
        selector.emit("v128.load16_lane", offset, 0)


def _load_every_other(selector: FunctionSelector, place: Place, lanes: int, size: int) -> None:
    for offset in (place.offset, place.offset + (lanes - 1) * size):
        _load_contiguous(selector, place, offset, lanes * size)
    picked = [
        16 * vector + lane * size + byte
        for vector, lane in every_other(lanes)
        for byte in range(size)
    ]
    zeros = [15] * (16 - len(picked))
    selector.emit("i8x16.shuffle", tuple(picked + zeros))


def _gather(selector: FunctionSelector, load: E.BufferLoad, size: int) -> None:
    """Lanes from places that are not next to each other."""
    result = selector.builder.local("v128")
    selector.emit("v128.const", ALL_ZEROS)
    selector.emit("local.set", result)
    for lane, offset in _pushed_lanes(selector, load):
        selector.emit("local.get", result)
        selector.emit(f"v128.load{size * 8}_lane", offset, lane)
        selector.emit("local.set", result)
    selector.emit("local.get", result)
    selector.builder.release(result)


def _pushed_lanes(
    selector: FunctionSelector, access: E.BufferLoad | S.BufferStore
) -> Iterator[tuple[int, int]]:
    """Each lane, once its address is on the stack, with the offset that goes with that."""
    index = access.indices[0]
    if not isinstance(index, E.Ramp):
        raise UnsupportedError("WebAssembly has no gathering access", access.span)
    size = dtypes.size_in_bytes(access.buffer.dtype)
    place, step = selector.addresses.place(access), index.stride
    for lane in range(dtypes.lanes(index.dtype)):
        selector.addresses.push(place)
        if isinstance(step, E.IntImm) and step.value >= 0:
            yield lane, place.offset + lane * step.value * size
        else:
            selector.addresses.add_scaled(step, lane * size)
            yield lane, place.offset


def store_vector(selector: FunctionSelector, store: S.BufferStore) -> None:
    """A store of several elements."""
    index, dtype = store.indices[0], store.buffer.dtype
    size = dtypes.size_in_bytes(dtype)
    lanes = dtypes.lanes(index.dtype)
    check_vector(store.value.dtype)
    if is_contiguous(index):
        place = selector.addresses.place(store)
        selector.addresses.push(place)
        _push_elements(selector, store.value)
        if lanes * size == 16:
            selector.emit("v128.store", place.offset)
        else:
            selector.emit(f"v128.store{lanes * size * 8}_lane", place.offset, 0)
        return
    value = selector.builder.local("v128")
    _push_elements(selector, store.value)
    selector.emit("local.set", value)
    for lane, offset in _pushed_lanes(selector, store):
        selector.emit("local.get", value)
        selector.emit(f"v128.store{size * 8}_lane", offset, lane)
    selector.builder.release(value)


def _push_elements(selector: FunctionSelector, value: E.PrimExpr) -> None:
    """A value as it stands in memory: conditions are bytes of 0 or 1 there."""
    selector.push(value)
    if dtypes.is_bool(value.dtype):
        resize(selector, mask_bits(dtypes.lanes(value.dtype)), 8)
        push_constant(selector, constant_bytes(1, "uint8", 16))
        selector.emit("v128.and")
