"""What primitives take: for each type of a parameter, how it is resolved, recorded and replayed.

`ROLES` has a role for each annotation that a primitive may write. A random variable, for example,
is recorded as it is, and the primitive gets the loop or the block that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.schedule.errors import ArgumentError, NotFoundError
from mlcweb.schedule.index_maps import as_function, from_record, take_index_map, take_pad_value
from mlcweb.schedule.instruction import BlockRV, LoopRV, Role
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import constant_value, convert, subtract
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.substitute import substitute
from mlcweb.tir.tensor_intrin import name_of

if TYPE_CHECKING:
    from mlcweb.schedule.base import ScheduleBase

ACCESSES = ("read", "write")
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


@dataclass(frozen=True, slots=True)
class AccessedBuffer:
    """The `index`-th buffer that a block reads or writes."""

    access: str
    index: int

    def at(self, place: BlockPlace) -> Buffer:
        """The buffer; NotFoundError where the block has none of this index."""
        return accessed_buffer(place, self.index, self.access)

    def __str__(self) -> str:
        return f'("{self.access}", {self.index})'


BufferArgument = tuple[str, int] | AccessedBuffer | str | Buffer
"""A buffer of a block: ("read" or "write", index), its name, or itself."""


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


def accessed_buffer(place: BlockPlace, index: int | Buffer | str, access: str) -> Buffer:
    """The buffer that a block reads or writes (`access`) as its `index`-th region, by name, or
    itself; NotFoundError where there is none."""
    regions = place.block.reads if access == "read" else place.block.writes
    _check_names_buffer(index)
    if isinstance(index, int):
        if 0 <= index < len(regions):
            return regions[index].buffer
        what = f"the `buffer_index` {index} is not in [0, {len(regions)})"
    else:
        for region in regions:
            if region.buffer is index or region.buffer.name == index:
                return region.buffer
        name = index if isinstance(index, str) else index.name
        what = f'it does not {access} "{name}"'
    names = ", ".join(f'"{region.buffer.name}"' for region in regions) or "none"
    raise NotFoundError(
        f"The {place.title} has {len(regions)} {access} region(s), and {what}",
        [place.realize],
        f"the buffers are, in order: {names}",
    )


def _check_names_buffer(value: Any) -> None:
    if not isinstance(value, (int, str, Buffer)):
        raise TypeError(f"A buffer is needed, by its number, by its name or itself; not {value!r}")


def _items(values: Any) -> list[Any]:
    """What a list, or another collection in order, holds; a TypeError where it is none."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping, Set)):
        raise TypeError(f"A list is needed, not {values!r}")
    return list(values)


def _loop(sch: ScheduleBase, rv: Any, taken: Any) -> Any:
    return rv, sch._loop(rv)


def _loops(sch: ScheduleBase, rvs: Any, taken: Any) -> Any:
    return rvs, [sch._loop(rv) for rv in rvs]


def _location(sch: ScheduleBase, rv: Any, taken: Any) -> Any:
    return rv, sch._location(rv)


def _block(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    rv = sch._as_block(value)
    return rv, sch._block(rv)


def _blocks(sch: ScheduleBase, values: Any, taken: Any) -> Any:
    rvs = [sch._as_block(value) for value in _items(() if values is None else values)]
    return rvs, [sch._block(rv) for rv in rvs]


def _place(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    rv = value if isinstance(value, LoopRV) else sch._as_block(value)
    return rv, sch._place(rv)


def _loop_or_block(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    return (_loop if isinstance(value, LoopRV) else _block)(sch, value, taken)


def _loop_or_blocks(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    if isinstance(value, (BlockRV, str)):
        raise TypeError(f"A loop, or a list of blocks, is needed; not {value!r} alone")
    return (_loop if isinstance(value, LoopRV) else _blocks)(sch, value, taken)


def _factors(sch: ScheduleBase, values: Any, taken: Any) -> Any:
    values = _items(values)
    factors = [None if value is None else sch._factor(value) for value in values]
    numbers = [None if value is None else constant_value(value) for value in values]
    pairs = zip(values, numbers, strict=True)
    return [value if number is None else int(number) for value, number in pairs], factors


def _integer(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    is_plain = type(value) is int and value.bit_length() < 64
    number = value if is_plain else sch._integer(value)
    return number, number


def _integers(sch: ScheduleBase, values: Any, taken: Any) -> Any:
    numbers = [sch._integer(value) for value in _items(() if values is None else values)]
    return numbers, numbers


def _or_none(take: Callable[..., Any]) -> Callable[..., Any]:
    """A decision: None where it is left to chance."""
    return lambda sch, value, taken: (None, None) if value is None else take(sch, value, taken)


def _probabilities(sch: ScheduleBase, values: Any, taken: Any) -> Any:
    numbers = [_number(value) for value in _items(values)]
    return numbers, numbers


def _number(value: Any) -> float:
    constant = constant_value(value)
    if constant is None and not hasattr(value, "__float__"):
        raise TypeError(f"{value!r} is not a number")
    return float(value if constant is None else constant)


def _boolean(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    """True or False; records have 1 and 0."""
    if isinstance(value, Hashable) and value in (True, False):
        return bool(value), bool(value)
    raise TypeError(f"{value!r} is neither True nor False")


def _string(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value, value


def _storage_scope(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    _string(sch, value, taken)
    if value.split(".")[0] not in STORAGE_SCOPES:
        raise ArgumentError(
            f'The input storage scope "{value}" is invalid',
            advice='"global", "shared", "local", or one of these with a name, as "global.A_reg"',
        )
    return value, value


def _function_name(sch: ScheduleBase, name: Any, taken: Any) -> Any:
    found = sch._function_name(None if name is None else _string(sch, name, taken)[1])
    return found, found


def _intrinsic(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    name = name_of(value)
    return name, name


def _annotation_value(sch: ScheduleBase, value: Any, taken: Any) -> Any:
    _check_recordable(value)
    return value, _resolved(sch, value)


def _check_recordable(value: Any) -> None:
    """Raise TypeError for an annotation that no record could have."""
    if isinstance(value, Mapping):
        _check_recordable([*value, *value.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_recordable(item)
    elif not isinstance(value, (bool, int, float, str, PrimExpr, IndexMap)):
        raise TypeError(f"{value!r} is neither a number, a string, nor a list or dict of them")


def _resolved(sch: ScheduleBase, value: Any) -> Any:
    if isinstance(value, PrimExpr):
        resolved = sch._resolved(value)
        number = constant_value(resolved)
        return resolved if number is None else number
    if isinstance(value, (list, tuple)):
        return [_resolved(sch, item) for item in value]
    return value


def _region_number(access: str) -> Callable[[ScheduleBase, Any, dict[str, Any]], Any]:
    def take(sch: ScheduleBase, buffer: Any, taken: dict[str, Any]) -> Any:
        """Which of a block's regions is the one of a buffer, given also by name."""
        if isinstance(buffer, int):
            return buffer, buffer
        place = sch.state.block(taken["block"])
        found = accessed_buffer(place, buffer, access)
        regions = place.block.reads if access == "read" else place.block.writes
        number = next(n for n, region in enumerate(regions) if region.buffer is found)
        return number, number

    return take


def _buffer(sch: ScheduleBase, buffer: Any, taken: dict[str, Any]) -> Any:
    accessed = _accessed(sch.state.block(taken["block"]), buffer)
    return (accessed.index, ACCESSES.index(accessed.access)), accessed


def _accessed(place: BlockPlace, buffer: BufferArgument) -> AccessedBuffer:
    if isinstance(buffer, AccessedBuffer):
        return buffer
    if isinstance(buffer, tuple):
        access, index = buffer if len(buffer) == 2 else (None, None)
        if isinstance(access, int):
            access, index = index, access
        if access not in ACCESSES or not isinstance(index, int):
            raise ValueError(f'A buffer is ("read", index) or ("write", index), not {buffer!r}')
        found = AccessedBuffer(access, index)
        found.at(place)
        return found
    if isinstance(buffer, int):
        raise TypeError(f'A buffer is ("read", index) or ("write", index), not {buffer!r}')
    _check_names_buffer(buffer)
    sides = (("read", place.block.reads), ("write", place.block.writes))
    for access, regions in sides:
        for index, region in enumerate(regions):
            if region.buffer is buffer or region.buffer.name == buffer:
                return AccessedBuffer(access, index)
    names = ", ".join(f'"{r.buffer.name}"' for _, regions in sides for r in regions)
    wanted = buffer if isinstance(buffer, str) else buffer.name
    raise NotFoundError(
        f'The {place.title} neither reads nor writes a buffer "{wanted}"',
        [place.realize],
        f"the buffers of the block are {names}",
    )


def _access(sch: ScheduleBase, access: Any, taken: Any) -> Any:
    if not isinstance(access, str) or access not in ACCESSES:
        raise ValueError(f"Invalid buf_type: {access}. Expected 'read' or 'write'.")
    return ACCESSES.index(access), access


def _region(sch: ScheduleBase, ranges_of: Any, taken: dict[str, Any]) -> Any:
    block = sch.state.block(taken["block"]).block
    iterators = [iter_var.var for iter_var in block.iter_vars]
    sides = _items(as_function(ranges_of)(*iterators))
    if len(iterators) != len(sides):
        raise ValueError(
            f"Number of iter_vars ({len(iterators)}) must match number of new_ranges_spec "
            f"({len(sides)})"
        )
    pairs = [_begin_and_end(side) for side in sides]
    region = [Range(begin, Analyzer().simplify(subtract(end, begin))) for begin, end in pairs]
    return IndexMap(tuple(iterators), tuple(end for pair in pairs for end in pair)), region


def _begin_and_end(side: Any) -> tuple[PrimExpr, PrimExpr]:
    if isinstance(side, (list, tuple)):
        if len(side) != 2:
            raise ValueError("Tuple must have exactly 2 elements to represent (begin, end).")
        return convert(side[0]), convert(side[1])
    begin = convert(side)
    return begin, begin + 1


_BLOCK, _BLOCKS = "BlockRV | str", "Sequence[BlockRV | str]"
_BUFFER = "int | str | Buffer"

ROLES = {
    "Var": Role("LoopRV", _loop, is_input=True),
    "*Var": Role("LoopRV", _loops, is_input=True, width=0),
    "Location": Role("LoopRV", _location, is_input=True),
    "BlockIdentity": Role(_BLOCK, _block, is_input=True),
    "Sequence[BlockIdentity] | None": Role(
        f"{_BLOCKS} | None", _blocks, is_input=True, omits_empty=True
    ),
    "Place": Role("BlockRV | LoopRV | str", _place, is_input=True),
    "Var | BlockIdentity": Role("BlockRV | LoopRV | str", _loop_or_block, is_input=True),
    "Var | Sequence[BlockIdentity]": Role(f"LoopRV | {_BLOCKS}", _loop_or_blocks, is_input=True),
    "Factors": Role("Sequence[ExprRV | int | None]", _factors, is_input=True, width=0),
    "int": Role("int", _integer),
    "Integers": Role("Sequence[int]", _integers),
    "Integers | None": Role("Sequence[int] | None", _integers),
    "int | None": Role("int | None", _or_none(_integer)),
    "Sequence[int] | None": Role("Sequence[int] | None", _or_none(_integers)),
    "Sequence[float]": Role("Sequence[float]", _probabilities),
    "bool": Role("bool", _boolean),
    "str": Role("str", _string),
    "StorageScope": Role("str", _storage_scope),
    "FunctionName": Role("str | None", _function_name),
    "IntrinName": Role("str | TensorIntrin", _intrinsic),
    "AnnotationValue": Role("Any", _annotation_value),
    "ReadBuffer": Role(_BUFFER, _region_number("read")),
    "WriteBuffer": Role(_BUFFER, _region_number("write")),
    "AccessedBuffer": Role(
        "BufferArgument",
        _buffer,
        width=2,
        replayed=lambda index, access: AccessedBuffer(ACCESSES[access], index),
    ),
    "IndexMap": Role("MapArgument", take_index_map),
    "PadValue": Role("int | float | PrimExpr | MapArgument | None", take_pad_value),
    "Access": Role("str", _access, replayed=lambda number: ACCESSES[number]),
    "Region": Role(
        "Callable[..., Any]",
        _region,
        replayed=lambda recorded: RangesFunction(
            from_record(recorded) if isinstance(recorded, str) else recorded
        ),
    ),
}
"""The roles by the annotations of parameters."""
