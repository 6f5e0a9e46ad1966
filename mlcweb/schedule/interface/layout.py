"""Layouts of buffers and of iteration spaces: how indices are mapped, and how they are padded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.schedule.errors import NotFoundError
from mlcweb.schedule.index_map_record import from_record
from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import block_layout, layout, reindex
from mlcweb.schedule.primitives import decompose_padding as decomposition
from mlcweb.schedule.primitives.cache import accessed_buffer
from mlcweb.schedule.primitives.padding import pad_einsum
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import const, convert
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr


@dataclass(frozen=True, slots=True)
class AccessedBuffer:
    """The `index`-th buffer that a block reads or writes."""

    access: str
    index: int

    def __str__(self) -> str:
        return f'("{self.access}", {self.index})'


BufferArgument = tuple[str, int] | AccessedBuffer | str | Buffer
"""A buffer of a block: ("read" or "write", index), its name, or itself."""

MapArgument = IndexMap | Callable[..., Any] | str
"""An index map, a function that describes one, or its text in a record."""

_ACCESSES = ("read", "write")


def _with_buffer(recorded: dict[str, Any]) -> dict[str, Any]:
    """Method arguments, where a record has the number of a buffer and of the kind of access."""
    access = _ACCESSES[recorded["buffer_index_type"]]
    numbers = ("buffer_index", "buffer_index_type")
    others = {name: value for name, value in recorded.items() if name not in numbers}
    return {**others, "buffer": AccessedBuffer(access, recorded["buffer_index"])}


for _kind in (
    InstructionKind(
        "TransformLayout",
        "transform_layout",
        ("block", "index_map"),
        ("buffer_index", "buffer_index_type", "pad_value", "assume_injective_transform"),
        printed_order=("block", "buffer", "index_map", "pad_value", "assume_injective_transform"),
        as_arguments=_with_buffer,
    ),
    InstructionKind("TransformBlockLayout", "transform_block_layout", ("block",), ("index_map",)),
    InstructionKind(
        "SetAxisSeparator",
        "set_axis_separator",
        ("block",),
        ("buffer_index", "buffer_index_type", "axis_separators"),
        printed_order=("block", "buffer", "axis_separators"),
        as_arguments=_with_buffer,
    ),
    InstructionKind(
        "ReIndex",
        "reindex",
        ("block",),
        ("buffer_index", "buffer_index_type"),
        as_arguments=_with_buffer,
    ),
    InstructionKind(
        "ReindexCacheRead",
        "reindex_cache_read",
        ("block", "index_map"),
        ("read_buffer_index", "storage_scope"),
        printed_order=("block", "read_buffer_index", "storage_scope", "index_map"),
    ),
    InstructionKind(
        "ReindexCacheWrite",
        "reindex_cache_write",
        ("block", "index_map"),
        ("write_buffer_index", "storage_scope"),
        printed_order=("block", "write_buffer_index", "storage_scope", "index_map"),
    ),
    InstructionKind("PadEinsum", "pad_einsum", ("block",), ("padding",)),
    InstructionKind("DecomposePadding", "decompose_padding", ("block", "loop")),
):
    register_kind(_kind)


class LayoutMethods(QueryMethods):
    """Layouts of buffers and of iteration spaces: how indices are mapped, and how padded."""

    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: BufferArgument,
        index_map: MapArgument,
        pad_value: int | float | PrimExpr | MapArgument | None = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Change where the elements of a buffer lie. See `primitives.layout`.

        `pad_value` is a number, or a function of the new indices. A Python number gets the
        buffer's type where it is of the same kind.
        """
        block = self._as_block(block)
        place = self._block_place(block)
        where = self._guard("transform_layout", lambda: _accessed(place, buffer))
        target = accessed_buffer(place, where.index, where.access)
        mapped = _index_map(index_map, place, target.ndim)
        pad = _pad_value(pad_value, target, mapped, place)
        injective = bool(assume_injective_transform)
        self._change("transform_layout", lambda state: layout.transform_layout(
            state, self._block(block), where.access, where.index, mapped, pad, injective
        ))  # fmt: skip
        numbers = (where.index, _ACCESSES.index(where.access))
        self._record("TransformLayout", (block, mapped), (*numbers, pad, injective))

    def transform_block_layout(self, block: BlockRV | str, index_map: MapArgument) -> None:
        """Change the iterators of a block and its loops. See `primitives.block_layout`."""
        block = self._as_block(block)
        place = self._block_place(block)
        mapped = _index_map(index_map, place, len(place.block.iter_vars))
        self._change("transform_block_layout", lambda state: block_layout.transform_block_layout(
            state, self._block(block), mapped
        ))  # fmt: skip
        self._record("TransformBlockLayout", (block,), (mapped,))

    def set_axis_separator(
        self, block: BlockRV | str, buffer: BufferArgument, axis_separators: Sequence[int] | None
    ) -> None:
        """Say where a buffer is cut into physical dimensions. See `primitives.layout`."""
        block = self._as_block(block)
        place = self._block_place(block)
        where = self._guard("set-axis-separator", lambda: _accessed(place, buffer))
        separators = [int(axis) for axis in axis_separators or ()]
        self._change("set-axis-separator", lambda state: layout.set_axis_separator(
            state, self._block(block), where.access, where.index, separators
        ))  # fmt: skip
        numbers = (where.index, _ACCESSES.index(where.access))
        self._record("SetAxisSeparator", (block,), (*numbers, separators))

    def reindex(self, block: BlockRV | str, buffer: BufferArgument) -> BlockRV:
        """Access a buffer through a copy indexed by the block's iterators. See
        `primitives.reindex`."""
        block = self._as_block(block)
        place = self._block_place(block)
        where = self._guard("reindex", lambda: _accessed(place, buffer))
        made = self._apply("reindex", lambda state: reindex.reindex(
            state, self._block(block), where.access, where.index
        ))  # fmt: skip
        rv = self._new_block(made)
        numbers = (where.index, _ACCESSES.index(where.access))
        self._record("ReIndex", (block,), numbers, (rv,))
        return rv

    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int,
        storage_scope: str,
        index_map: MapArgument,
    ) -> BlockRV:
        """Read a buffer through a copy indexed by a map of the block's iterators. See
        `primitives.reindex`."""
        return self._reindex_cache(
            "ReindexCacheRead", block, "read", read_buffer_index, storage_scope, index_map
        )

    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int,
        storage_scope: str,
        index_map: MapArgument,
    ) -> BlockRV:
        """Write a buffer through a copy indexed by a map of the block's iterators. See
        `primitives.reindex`."""
        return self._reindex_cache(
            "ReindexCacheWrite", block, "write", write_buffer_index, storage_scope, index_map
        )

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Round the domains of a block's iterators up. See `primitives.padding`."""
        block = self._as_block(block)
        factors = [int(factor) for factor in padding]
        self._change("pad-einsum", lambda state: pad_einsum(
            state, self._block(block), factors
        ))  # fmt: skip
        self._record("PadEinsum", (block,), (factors,))

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Split a block that copies with padding into one that fills and one that copies. See
        `primitives.decompose_padding`."""
        block = self._as_block(block)
        made = self._apply("decompose-padding", lambda state: decomposition.decompose_padding(
            state, self._block(block), self._loop(loop)
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record("DecomposePadding", (block, loop), (), (rv,))
        return rv

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether `decompose_padding` would accept this."""
        identity = self._block(self._as_block(block))
        return decomposition.can_decompose_padding(self._state, identity, self._loop(loop))

    def _reindex_cache(
        self,
        kind: str,
        block: BlockRV | str,
        access: str,
        index: int,
        storage_scope: str,
        index_map: MapArgument,
    ) -> BlockRV:
        block = self._as_block(block)
        place = self._block_place(block)
        mapped = _index_map(index_map, place, len(place.block.iter_vars))
        name = "reindex-cache-read" if access == "read" else "reindex-cache-write"
        made = self._apply(name, lambda state: reindex.reindex_cache(
            state, self._block(block), access, index, storage_scope, mapped
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record(kind, (block, mapped), (index, storage_scope), (rv,))
        return rv


def _accessed(place: BlockPlace, buffer: BufferArgument) -> AccessedBuffer:
    if isinstance(buffer, AccessedBuffer):
        return buffer
    if isinstance(buffer, tuple):
        access, index = buffer
        if isinstance(access, int):
            access, index = index, access
        if access not in _ACCESSES:
            raise ValueError(f'A buffer is ("read", index) or ("write", index), not {buffer!r}')
        accessed_buffer(place, index, access)
        return AccessedBuffer(access, index)
    sides = (("read", place.block.reads), ("write", place.block.writes))
    for access, regions in sides:
        for index, region in enumerate(regions):
            if region.buffer is buffer or region.buffer.name == buffer:
                return AccessedBuffer(access, index)
    names = ", ".join(f'"{r.buffer.name}"' for _, regions in sides for r in regions)
    wanted = buffer if isinstance(buffer, str) else buffer.name
    raise NotFoundError(
        f'The block "{place.block.name_hint}" neither reads nor writes a buffer "{wanted}"',
        [place.realize],
        f"the buffers of the block are {names}",
    )


def _index_map(value: MapArgument, place: BlockPlace, ndim: int) -> IndexMap:
    if isinstance(value, IndexMap):
        return value
    if isinstance(value, str):
        return from_record(value)
    return IndexMap.from_func(value, ndim=ndim, index_dtype=_index_dtype(place))


def _pad_value(
    value: int | float | PrimExpr | MapArgument | None,
    buffer: Buffer,
    index_map: IndexMap,
    place: BlockPlace,
) -> IndexMap | None:
    ndim = len(index_map.final_indices)
    if value is None or isinstance(value, IndexMap):
        return value
    if isinstance(value, str):
        return from_record(value)
    if callable(value):
        return _index_map(lambda *indices: _in_buffer(value(*indices), buffer), place, ndim)
    constant = convert(_in_buffer(value, buffer))
    return _index_map(lambda *indices: constant, place, ndim)


def _in_buffer(value: Any, buffer: Buffer) -> Any:
    """A Python number, also as the only one of a list, in the buffer's type, if of that kind."""
    if isinstance(value, (list, tuple)):
        return [_in_buffer(item, buffer) for item in value]
    kind = float if dtypes.is_float(buffer.dtype) else int
    return const(value, buffer.dtype) if type(value) is kind else value


def _index_dtype(place: BlockPlace) -> str:
    iter_vars = place.block.iter_vars
    return iter_vars[0].var.dtype if iter_vars else "int64"
