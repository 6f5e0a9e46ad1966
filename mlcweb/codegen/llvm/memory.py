"""Loads and stores: addresses of elements, and vectors of elements next to each other or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

from mlcweb.codegen.llvm.types import INDEX, constant, memory_type, value_type
from mlcweb.codegen.processor.selection import every_other, is_contiguous, is_every_other
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

if TYPE_CHECKING:
    from mlcweb.codegen.llvm.selector import Selector

Access = E.BufferLoad | S.BufferStore

STORED_TOGETHER = 4
"""So many scalars are put together for one store, at most."""


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
    if is_every_other(index):
        return _as_value(selector, _load_every_other(selector, access, index), dtype)
    element = access.buffer.dtype
    kind, one = memory_type(dtype), memory_type(element)
    result = "poison"
    for lane, place in _lanes(selector, access):
        value = _load(selector, place, element)
        result = selector.builder.value(f"insertelement {kind} {result}, {one} {value}, i64 {lane}")
    return _as_value(selector, result, dtype)


def _load_every_other(selector: Selector, access: E.BufferLoad, index: E.Ramp) -> str:
    data, element, kind = access.buffer.data, access.buffer.dtype, memory_type(access.dtype)
    lanes = dtypes.lanes(index.dtype)
    vectors = [
        _load(selector, address(selector, data, start, element), access.dtype)
        for start in (index.base, index.base + (lanes - 1))
    ]
    operands = ", ".join(f"{kind} {vector}" for vector in vectors)
    picked = ", ".join(f"i32 {vector * lanes + lane}" for vector, lane in every_other(lanes))
    return selector.builder.value(f"shufflevector {operands}, <{lanes} x i32> <{picked}>")


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


def store_together(selector: Selector, statements: Sequence[S.Stmt]) -> int:
    """Store what the first of some statements store to neighbouring elements, if these are values
    in registers, by one instruction. How many statements that were; 0 where nothing was done."""
    run: list[S.BufferStore] = []
    for statement in statements[:STORED_TOGETHER]:
        if not _keeps_register(statement):
            break
        run.append(statement)
    while run and not _are_neighbours(selector, run):
        run.pop()
    count = 1 << len(run).bit_length() >> 1
    if count < 2:
        return 0
    dtype = run[0].value.dtype
    kind, element = memory_type(dtypes.with_lanes(dtype, count)), memory_type(dtype)
    vector = "poison"
    for lane, part in enumerate(run[:count]):
        value = selector.value(part.value)
        vector = selector.builder.value(
            f"insertelement {kind} {vector}, {element} {value}, i64 {lane}"
        )
    place = address(selector, run[0].buffer.data, run[0].indices[0], dtype)
    align = dtypes.size_in_bytes(dtype)
    selector.builder.line(f"store {kind} {vector}, ptr {place}, align {align}")
    return count


def _keeps_register(statement: S.Stmt) -> TypeGuard[S.BufferStore]:
    """Whether a statement stores what is in a register already."""
    if not isinstance(statement, S.BufferStore):
        return False
    value = statement.value
    return (
        isinstance(value, E.BufferLoad)
        and value.buffer.scope() == REGISTER_SCOPE
        and statement.buffer.scope() != REGISTER_SCOPE
        and dtypes.lanes(value.dtype) == 1
        and not dtypes.is_bool(value.dtype)
    )


def _are_neighbours(selector: Selector, run: Sequence[S.BufferStore]) -> bool:
    indices = selector.indices
    places = [indices.sum_of(part.indices[0]) for part in run]
    distances = [place.plus(places[0], -1) for place in places]
    return all(
        part.buffer is run[0].buffer
        and indices.is_exact(place)
        and not distance.terms
        and distance.constant == number
        for number, (part, place, distance) in enumerate(zip(run, places, distances, strict=True))
    )


def _lanes(selector: Selector, access: Access) -> Iterator[tuple[int, str]]:
    """Each lane and the address of its element."""
    index, buffer = access.indices[0], access.buffer
    if isinstance(index, E.Ramp):
        for lane in range(dtypes.lanes(index.dtype)):
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
