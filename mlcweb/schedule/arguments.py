"""What primitives take: for each type of a parameter, how it is resolved, recorded and replayed.

`ROLES` has a role for each annotation that a primitive may write. A random variable, for example,
is recorded as it is, and the primitive gets the loop or the block that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from operator import index
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import DiagnosticError
from mlcweb.schedule.accessed_buffer import ACCESSES, AccessedBuffer, find_buffer
from mlcweb.schedule.argument_types import MapArgument
from mlcweb.schedule.errors import ArgumentError, FactorError
from mlcweb.schedule.index_maps import map_of_record
from mlcweb.schedule.instruction import LoopRV, Role
from mlcweb.schedule.resolver import Resolver
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import const, constant_value, convert, subtract
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.dtype import is_float, is_integer
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.substitute import substitute, variables_in
from mlcweb.tir.tensor_intrin import name_of

STORAGE_SCOPES = ("global", "shared", "warp", "local", "wmma", "m16n8k8", "texture", "amx", "mma")

Factors = Sequence[PrimExpr | int | None]
Integers = Sequence[int]
ReadBuffer = int
"""A buffer that a block reads, by the number of the region; the method also takes names."""
WriteBuffer = int
Access = str
"""One of `ACCESSES`, which is recorded as its number."""
Region = Sequence[Range]
StorageScope = str
"""The name of a memory: one of `STORAGE_SCOPES`, also with a name after a dot."""
FunctionName = str | None
IntrinName = str
AnnotationValue = Any
PadValue = IndexMap | None


@dataclass(frozen=True, slots=True, eq=False)
class RangesFunction:
    """A recorded function from a block's iterators to the begin and end of each dimension. The
    record is an index map that lists begins and ends in turn."""

    index_map: IndexMap

    def __call__(self, *iterators: PrimExpr) -> list[tuple[PrimExpr, PrimExpr]]:
        values = dict(zip(self.index_map.initial_indices, iterators, strict=True))
        ends = [substitute(index, values) for index in self.index_map.final_indices]
        return list(zip(ends[::2], ends[1::2], strict=True))

    def __str__(self) -> str:
        names = ", ".join(var.name for var in self.index_map.initial_indices)
        ends = self.index_map.final_indices
        pairs = zip(ends[::2], ends[1::2], strict=True)
        return f"lambda {names}: [" + ", ".join(f"({a!r}, {b!r})" for a, b in pairs) + "]"


def _location(sch: Resolver, rv: Any, taken: Any) -> Any:
    return rv, sch._location(rv)


def _statement(sch: Resolver, value: Any, taken: Any) -> Any:
    """What a loop or a block, which may be given by its name, is known by."""
    if isinstance(value, LoopRV):
        return value, sch._loop(value)
    rv = sch._as_block(value)
    return rv, sch._block(rv)


def _statements(sch: Resolver, values: Any, taken: Any) -> Any:
    """The same of several loops or blocks, or of one loop; there may be none."""
    if isinstance(values, LoopRV):
        return _statement(sch, values, taken)
    pairs = [_statement(sch, value, taken) for value in values or ()]
    return [rv for rv, _ in pairs], [known_by for _, known_by in pairs]


def _place(sch: Resolver, value: Any, taken: Any) -> Any:
    rv, _ = _statement(sch, value, taken)
    return rv, sch._place(rv)


def _factors(sch: Resolver, values: Any, taken: Any) -> Any:
    if any(isinstance(value, bool) for value in values):
        raise FactorError(f"The factors {values} are not all numbers", advice="integers and None")
    factors = [None if value is None else sch._factor(value) for value in values]
    numbers = [None if value is None else constant_value(value) for value in values]
    pairs = zip(values, numbers, strict=True)
    return [value if number is None else int(number) for value, number in pairs], factors


def _recorded_as(convert: Callable[[Any], Any]) -> Callable[[Resolver, Any, Any], Any]:
    """Takes a plain value: what is recorded of it is what the primitive gets."""

    def take(sch: Resolver, value: Any, taken: Any) -> Any:
        plain = convert(value)
        return plain, plain

    return take


def _integers(values: Any) -> list[int]:
    return [index(value) for value in values or ()]


def _as_it_is(sch: Resolver, value: Any, taken: Any) -> Any:
    return value, value


def _storage_scope(sch: Resolver, value: Any, taken: Any) -> Any:
    if value and value.split(".")[0] not in STORAGE_SCOPES:
        raise ArgumentError(
            f'The input storage scope "{value}" is invalid',
            advice='"global", "shared", "local", or one of these with a name, as "global.A_reg"',
        )
    return value, value or "global"


def _function_name(sch: Resolver, name: Any, taken: Any) -> Any:
    func_name = sch._function_name(name)
    return func_name, func_name


def _annotation_value(sch: Resolver, value: Any, taken: Any) -> Any:
    return value, _resolved(sch, value)


def _resolved(sch: Resolver, value: Any) -> Any:
    if isinstance(value, PrimExpr):
        resolved = sch._resolved(value)
        number = constant_value(resolved)
        return resolved if number is None else number
    if isinstance(value, (list, tuple)):
        return [_resolved(sch, item) for item in value]
    return value


def _region_number(access: str) -> Callable[[Resolver, Any, dict[str, Any]], Any]:
    def take(sch: Resolver, buffer: Any, taken: dict[str, Any]) -> Any:
        """Which of a block's regions is the one of a buffer, given also by name."""
        if not isinstance(buffer, int):
            place = sch.state.block(taken["block"])
            buffer = find_buffer(place, buffer, (access,)).index
        return buffer, buffer

    return take


def _buffer(sch: Resolver, buffer: Any, taken: dict[str, Any]) -> Any:
    if not isinstance(buffer, AccessedBuffer):
        buffer = find_buffer(sch.state.block(taken["block"]), buffer)
    return (buffer.index, ACCESSES.index(buffer.access)), buffer


def _access(sch: Resolver, access: Any, taken: Any) -> Any:
    if access not in ACCESSES:
        raise ValueError(f"Invalid buf_type: {access}. Expected 'read' or 'write'.")
    return ACCESSES.index(access), access


def _region(sch: Resolver, ranges_of: Any, taken: dict[str, Any]) -> Any:
    block = sch.state.block(taken["block"]).block
    iterators = [iter_var.var for iter_var in block.iter_vars]
    sides = _as_function(ranges_of)(*iterators)
    if not isinstance(sides, (list, tuple)):
        raise TypeError(f"A list is needed of the function, not {sides!r}")
    if len(iterators) != len(sides):
        raise ValueError(
            f"Number of iter_vars ({len(iterators)}) must match number of new_ranges_spec "
            f"({len(sides)})"
        )
    pairs = [_begin_and_end(side) for side in sides]
    region = [Range(begin, Analyzer().simplify(subtract(end, begin))) for begin, end in pairs]
    return IndexMap(tuple(iterators), tuple(end for pair in pairs for end in pair)), region


def _begin_and_end(side: Any) -> tuple[PrimExpr, PrimExpr]:
    if not isinstance(side, (list, tuple)):
        begin = _index(side)
        return begin, begin + 1
    if len(side) != 2:
        raise ValueError("Tuple must have exactly 2 elements to represent (begin, end).")
    return _index(side[0]), _index(side[1])


def _index(value: Any) -> PrimExpr:
    converted = convert(value)
    if not is_integer(converted.dtype):
        raise TypeError(f"{value!r} is no index")
    return converted


def _index_map(sch: Resolver, value: Any, taken: dict[str, Any]) -> Any:
    """A map of the indices of `buffer`, or else of the iterators of `block`."""
    place = sch.state.block(taken["block"])
    count, each = len(place.block.iter_vars), "iterator of the block"
    taking = f"{place.title} has {count} iterators"
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
    resolved = _with_values(sch, mapped, place)
    # TVM records the map of transform_block_layout as an attribute, which has no random variables.
    return (resolved if list(taken) == ["block"] else mapped), resolved


def _with_values(sch: Resolver, mapped: IndexMap, place: BlockPlace) -> IndexMap:
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
    iter_vars = place.block.iter_vars
    dtype = iter_vars[0].var.dtype if iter_vars else "int64"
    return IndexMap.from_func(_as_function(value), ndim=ndim, index_dtype=dtype)


def _as_function(value: Any) -> Callable[..., Any]:
    """A function that a user passes; TypeError for another value."""
    if not callable(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is not a function such as `lambda i, j: …`")
    return value


def _pad_value(sch: Resolver, value: Any, taken: dict[str, Any]) -> Any:
    """A map of the new indices to the value of a new element, also of a function or a number."""
    if value is None:
        return None, None
    place = sch.state.block(taken["block"])
    buffer = taken["buffer"].at(place)
    if callable(value) and not isinstance(value, IndexMap):
        function = _as_function(value)
        value = wraps(function)(lambda *indices: _in_buffer(function(*indices), buffer))
    elif not isinstance(value, IndexMap):
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
    kind = float if is_float(buffer.dtype) else int
    return const(value, buffer.dtype) if type(value) is kind else value


def _recorded_boolean(value: Any) -> Any:
    """True and False are 1 and 0 in most records."""
    return bool(value) if value in (0, 1) else value


_BLOCK, _BLOCKS = "BlockRV | str", "Sequence[BlockRV | str]"
_BUFFER = "int | str | Buffer"

ROLES = {
    "Var": Role("LoopRV", _statement, is_input=True),
    "*Var": Role("LoopRV", _statements, is_input=True, width=0),
    "Location": Role("LoopRV", _location, is_input=True),
    "BlockIdentity": Role(_BLOCK, _statement, is_input=True),
    "Sequence[BlockIdentity] | None": Role(
        f"{_BLOCKS} | None", _statements, is_input=True, omits_empty=True
    ),
    "Place": Role("BlockRV | LoopRV | str", _place, is_input=True),
    "Var | BlockIdentity": Role("BlockRV | LoopRV | str", _statement, is_input=True),
    "Var | Sequence[BlockIdentity]": Role(f"LoopRV | {_BLOCKS}", _statements, is_input=True),
    "Factors": Role("Sequence[ExprRV | int | None]", _factors, is_input=True, width=0),
    "int": Role("int", _recorded_as(int)),
    "Integers": Role("Sequence[int]", _recorded_as(_integers)),
    "Integers | None": Role("Sequence[int] | None", _recorded_as(_integers)),
    "Sequence[float]": Role(
        "Sequence[float]", _recorded_as(lambda values: list(map(float, values)))
    ),
    "bool": Role("bool", _as_it_is, replayed=_recorded_boolean),
    "str": Role("str", _as_it_is),
    "StorageScope": Role("str", _storage_scope),
    "FunctionName": Role("str | None", _function_name),
    "IntrinName": Role("str | TensorIntrin", _recorded_as(name_of)),
    "AnnotationValue": Role("AnnotationArgument", _annotation_value),
    "ReadBuffer": Role(_BUFFER, _region_number("read")),
    "WriteBuffer": Role(_BUFFER, _region_number("write")),
    "AccessedBuffer": Role(
        "BufferArgument",
        _buffer,
        width=2,
        replayed=lambda index, access: AccessedBuffer(ACCESSES[access], index),
    ),
    "IndexMap": Role("MapArgument", _index_map, replayed=map_of_record),
    "PadValue": Role(
        "int | float | PrimExpr | MapArgument | None", _pad_value, replayed=map_of_record
    ),
    "Access": Role("str", _access, replayed=lambda number: ACCESSES[number]),
    "Region": Role(
        "Callable[..., Any]",
        _region,
        replayed=lambda recorded: RangesFunction(map_of_record(recorded)),
    ),
}
"""The roles by the annotations of parameters."""
