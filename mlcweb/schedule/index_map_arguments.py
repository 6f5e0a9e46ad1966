"""Index maps, and values of padding, as users pass them to primitives: functions, maps, records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import DiagnosticError
from mlcweb.schedule.errors import ArgumentError
from mlcweb.schedule.index_map_record import from_record
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import const, convert
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.substitute import variables_in

if TYPE_CHECKING:
    from mlcweb.schedule.base import ScheduleBase

MapArgument = IndexMap | Callable[..., Any] | str
"""An index map, a function that describes one, or its text in a record."""


def take_index_map(sch: ScheduleBase, value: Any, taken: dict[str, Any]) -> Any:
    """A map of the indices of `buffer`, or else of the iterators of `block`."""
    place = sch.state.block(taken["block"])
    count, each = len(place.block.iter_vars), "iterator of the block"
    taking = f'block "{place.block.name_hint}" has {count} iterators'
    if "buffer" in taken:
        buffer = taken["buffer"].at(place)
        count, each = buffer.ndim, "dimension of the buffer"
        taking = f'buffer "{buffer.name}" has {count} dimension(s)'
    mapped = _mapped(value, place, count)
    if len(mapped.initial_indices) != count:
        raise ArgumentError(
            f"The index map {mapped!r} takes {len(mapped.initial_indices)} indices, but the "
            f"{taking}",
            [place.realize],
            f"a map with one index for each {each}",
        )
    known = _with_values(sch, mapped, place)
    # TVM records the map of transform_block_layout as an attribute, which has no random variables.
    return (known if list(taken) == ["block"] else mapped), known


def _with_values(sch: ScheduleBase, mapped: IndexMap, place: BlockPlace) -> IndexMap:
    """A map with the values of random variables in it; ValueError where it has variables that
    neither the schedule nor the function knows."""
    used = set[Var]().union(*(variables_in(index) for index in mapped.final_indices))
    values = {var: sch._resolved(var) for var in used.difference(mapped.initial_indices)}
    unknown = {var for var, value in values.items() if value is var}
    if unknown:
        function = sch.state.function(place.function)
        unknown.difference_update(function.params)
        for buffer in function.buffer_map.values():
            for value in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                unknown.difference_update(variables_in(value))
    if unknown:
        names = ", ".join(sorted(f'"{var.name}"' for var in unknown))
        raise ValueError(
            f"The map uses {names}, which is neither an index, nor an integer that this schedule "
            "has sampled, nor a parameter of the function or its shapes"
        )
    return mapped.with_values(values)


def _mapped(value: MapArgument, place: BlockPlace, ndim: int) -> IndexMap:
    if isinstance(value, IndexMap):
        return value
    if isinstance(value, str):
        try:
            return from_record(value)
        except ValueError:
            raise TypeError(
                f"{value!r} is no index map; a function such as `lambda i, j: (j, i)` describes one"
            ) from None
    iter_vars = place.block.iter_vars
    dtype = iter_vars[0].var.dtype if iter_vars else "int64"
    return IndexMap.from_func(as_function(value), ndim=ndim, index_dtype=dtype)


def as_function(value: Any) -> Callable[..., Any]:
    """A function that a user passes; TypeError for another value."""
    if not callable(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is not a function such as `lambda i, j: …`")
    return value


def take_pad_value(sch: ScheduleBase, value: Any, taken: dict[str, Any]) -> Any:
    """A map of the new indices to the value of a new element, also of a function or a number."""
    if value is None:
        return None, None
    place = sch.state.block(taken["block"])
    buffer = taken["buffer"].at(place)
    if callable(value) and not isinstance(value, IndexMap):
        function = as_function(value)
        value = lambda *indices: _in_buffer(function(*indices), buffer)  # noqa: E731
    elif not isinstance(value, (IndexMap, str)):
        constant = _pad_constant(value, buffer)
        value = lambda *indices: constant  # noqa: E731
    mapped = _mapped(value, place, len(taken["index_map"].final_indices))
    return mapped, _with_values(sch, mapped, place)


def _pad_constant(value: Any, buffer: Buffer) -> PrimExpr:
    try:
        return convert(_in_buffer(value, buffer))
    except (DiagnosticError, ValueError):
        raise TypeError(
            f"{value!r} is neither a number nor a function of the new indices"
        ) from None


def _in_buffer(value: Any, buffer: Buffer) -> Any:
    """A Python number, also as the only one of a list, in the buffer's type, if of that kind."""
    if isinstance(value, (list, tuple)):
        return [_in_buffer(item, buffer) for item in value]
    kind = float if dtypes.is_float(buffer.dtype) else int
    return const(value, buffer.dtype) if type(value) is kind else value
