"""What blocks declare to read and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.schedule.index_map_record import from_record
from mlcweb.schedule.instruction import BlockRV, InstructionKind, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import buffer_access_annotation as annotation
from mlcweb.schedule.primitives.buffer_access_annotation import ACCESSES
from mlcweb.tir.arithmetic import convert, subtract
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.substitute import substitute


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


def _with_function(recorded: dict[str, Any]) -> dict[str, Any]:
    """Method arguments of recorded ones."""
    index_map = recorded["index_map"]
    return {
        "block": recorded["block"],
        "buffer_index": recorded["buffer_index"],
        "buf_type": ACCESSES[recorded["buffer_index_type"]],
        "gen_new_ranges": RangesFunction(
            from_record(index_map) if isinstance(index_map, str) else index_map
        ),
    }


for _kind in (
    InstructionKind(
        "AnnotateBufferAccess",
        "annotate_buffer_access",
        ("block", "buffer_index", "buffer_index_type", "index_map"),
        as_arguments=_with_function,
    ),
    InstructionKind(
        "UnsafeHideBufferAccess",
        "unsafe_hide_buffer_access",
        ("block", "buf_type", "buf_index_array"),
    ),
):
    register_kind(_kind)


class RegionMethods(QueryMethods):
    """What blocks declare to read and write."""

    def annotate_buffer_access(
        self,
        block: BlockRV | str,
        buffer_index: int,
        buf_type: str,
        gen_new_ranges: Callable[..., Any],
    ) -> None:
        """Declare which region of a buffer a block reads or writes. See
        `primitives.buffer_access_annotation`.

        `gen_new_ranges` gets the block's iterators and returns for each dimension (begin, end), or
        one index. A ValueError where it returns another number of them than there are iterators
        (which is what TVM counts), or `buf_type` is neither "read" nor "write".
        """
        block = self._as_block(block)
        iterators = [iter_var.var for iter_var in self._block_place(block).block.iter_vars]
        sides = gen_new_ranges(*iterators)
        if len(iterators) != len(sides):
            raise ValueError(
                f"Number of iter_vars ({len(iterators)}) must match number of new_ranges_spec "
                f"({len(sides)})"
            )
        if buf_type not in ACCESSES:
            raise ValueError(f"Invalid buf_type: {buf_type}. Expected 'read' or 'write'.")
        pairs = [_begin_and_end(side) for side in sides]
        region = [Range(begin, _extent(begin, end)) for begin, end in pairs]
        self._change("annotate-buffer-access", lambda state: annotation.annotate_buffer_access(
            state, self._block(block), buffer_index, buf_type, region
        ))  # fmt: skip
        index_map = IndexMap(tuple(iterators), tuple(end for pair in pairs for end in pair))
        kind = ACCESSES.index(buf_type)
        self._record("AnnotateBufferAccess", (block, buffer_index, kind, index_map))

    def unsafe_hide_buffer_access(
        self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]
    ) -> None:
        """Take buffers out of what a block declares to read or write. See
        `primitives.buffer_access_annotation`."""
        block = self._as_block(block)
        indices = [self._integer(index) for index in buf_index_array]
        self._change("hide-buffer-access", lambda state: annotation.unsafe_hide_buffer_access(
            state, self._block(block), buf_type, indices
        ))  # fmt: skip
        self._record("UnsafeHideBufferAccess", (block, buf_type, indices))


def _begin_and_end(side: Any) -> tuple[PrimExpr, PrimExpr]:
    if isinstance(side, (list, tuple)):
        if len(side) != 2:
            raise ValueError("Tuple must have exactly 2 elements to represent (begin, end).")
        return convert(side[0]), convert(side[1])
    begin = convert(side)
    return begin, begin + 1


def _extent(begin: PrimExpr, end: PrimExpr) -> PrimExpr:
    return Analyzer().simplify(subtract(end, begin))
