"""Loads and stores: addresses of elements, and vectors of elements next to each other or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlcweb.codegen.llvm.types import INDEX, constant, memory_type, value_type
from mlcweb.codegen.processor.selection import is_contiguous
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector

Access = E.BufferLoad | S.BufferStore


def address(selector: Selector, data: E.Var, index: E.PrimExpr, dtype: str) -> str:
    """The address of an element. Where no term overflows, it is computed in 64 bits, one term
    after the other, outer loops first: what accesses have in common is computed once."""
    emit, kind = selector.builder.value, memory_type(dtypes.element_of(dtype))
    indices = selector.indices
    total = indices.sum_of(index)
    base = selector.values[data]
    if not indices.is_exact(total):
        return emit(f"getelementptr {kind}, ptr {base}, {INDEX} {selector.wide(index)}")
    for place, scale in _scaled(selector, total.terms):
        base = selector.available(
            (base, place, scale, kind),
            lambda base=base, place=place, scale=scale: _step(selector, base, place, scale, kind),
        )
    if not total.constant:
        return base
    return emit(f"getelementptr {kind}, ptr {base}, {INDEX} {total.constant}")


def _scaled(selector: Selector, terms: dict[E.PrimExpr, int]) -> Iterator[tuple[str, int]]:
    """The terms of an index, those first that change last."""
    values = [(selector.wide(atom), scale) for atom, scale in terms.items()]
    return iter(sorted(values, key=lambda term: selector.age(term[0])))


def _step(selector: Selector, base: str, place: str, scale: int, kind: str) -> str:
    """An address so many elements further."""
    if scale != 1:
        place = selector.builder.value(f"mul {INDEX} {place}, {scale}")
    return selector.builder.value(f"getelementptr {kind}, ptr {base}, {INDEX} {place}")


def load(selector: Selector, access: E.BufferLoad) -> str:
    index, dtype = access.indices[0], access.dtype
    if dtypes.lanes(index.dtype) == 1 or is_contiguous(index):
        first = index.base if isinstance(index, E.Ramp) else index
        place = address(selector, access.buffer.data, first, access.buffer.dtype)
        return _as_value(selector, _load(selector, place, dtype), dtype)
    element = access.buffer.dtype
    kind, one = memory_type(dtype), memory_type(element)
    result = "poison"
    for lane, place in _lanes(selector, access):
        value = _load(selector, place, element)
        result = selector.builder.value(f"insertelement {kind} {result}, {one} {value}, i64 {lane}")
    return _as_value(selector, result, dtype)


def _load(selector: Selector, place: str, dtype: str) -> str:
    align = dtypes.size_in_bytes(dtypes.element_of(dtype))
    return selector.builder.value(f"load {memory_type(dtype)}, ptr {place}, align {align}")


def store(selector: Selector, statement: S.BufferStore) -> None:
    index, dtype = statement.indices[0], statement.value.dtype
    value = _as_memory(selector, selector.value(statement.value), dtype)
    align = dtypes.size_in_bytes(dtypes.element_of(dtype))
    emit, kind = selector.builder.line, memory_type(dtype)
    if dtypes.lanes(index.dtype) == 1 or is_contiguous(index):
        first = index.base if isinstance(index, E.Ramp) else index
        place = address(selector, statement.buffer.data, first, dtype)
        emit(f"store {kind} {value}, ptr {place}, align {align}")
        return
    one = memory_type(dtypes.element_of(dtype))
    for lane, place in _lanes(selector, statement):
        part = selector.builder.value(f"extractelement {kind} {value}, i64 {lane}")
        emit(f"store {one} {part}, ptr {place}, align {align}")


def _lanes(selector: Selector, access: Access) -> Iterator[tuple[int, str]]:
    """Each lane and the address of its element."""
    index, buffer = access.indices[0], access.buffer
    if isinstance(index, E.Ramp):
        for lane in range(index.lanes):
            place = E.Add(index.base, E.Mul(index.stride, E.IntImm(index.stride.dtype, lane)))
            yield lane, address(selector, buffer.data, place, buffer.dtype)
        return
    element = dtypes.element_of(index.dtype)
    places = selector.value(index)
    for lane in range(dtypes.lanes(index.dtype)):
        one = selector.builder.value(
            f"extractelement {value_type(index.dtype)} {places}, i64 {lane}"
        )
        var = E.Var("lane", element)
        selector.values[var] = one
        yield lane, address(selector, buffer.data, var, buffer.dtype)


def _as_value(selector: Selector, stored: str, dtype: str) -> str:
    """What was read, as a value: bytes are conditions where they are not zero."""
    if not dtypes.is_bool(dtypes.element_of(dtype)):
        return stored
    zero = constant(0, dtypes.with_lanes("uint8", dtypes.lanes(dtype)))
    return selector.builder.value(f"icmp ne {memory_type(dtype)} {stored}, {zero}")


def _as_memory(selector: Selector, value: str, dtype: str) -> str:
    if not dtypes.is_bool(dtypes.element_of(dtype)):
        return value
    return selector.builder.value(f"zext {value_type(dtype)} {value} to {memory_type(dtype)}")
