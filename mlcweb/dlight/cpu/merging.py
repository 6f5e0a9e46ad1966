"""Two axes that are used together everywhere as one: rows and columns of images in a convolution
with filters of one pixel, where vectors then go on across the ends of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes, rewrite_nodes, walk
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.analysis.block_facts import SPATIAL, extent_of, has_trivial_binding, place_of
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import const, constant_value, floordiv, floormod, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import BufferStore
from mlcweb.tir.substitute import substitute

Access = BufferLoad | BufferStore


class NotTogether(Exception):
    """The axes are not used together everywhere."""


class MergedAxes:
    """The last two axes of what a block writes, which become one in all blocks of a function.

    Raises:
        NotTogether: some block uses them in another way than side by side, or one does not move.
    """

    def __init__(self, sch: Schedule, blocks: Sequence[BlockRV], writer: BlockRV) -> None:
        self.places = {block: place_of(sch, block) for block in blocks}
        self.buffers: dict[Buffer, int] = {}
        """The first of the two axes of each buffer."""
        self.blocks: dict[BlockRV, int] = {}
        """The position of the first of the two iterators of each block."""
        written = self.places[writer].block.writes[0].buffer
        extents = [constant_value(extent) for extent in written.shape[-2:]]
        self.extents = tuple([int(extent) for extent in extents if extent is not None])
        if len(self.extents) < 2 or 1 in self.extents:
            raise NotTogether
        self._add_buffer(written, written.ndim - 2)
        before = 0
        while before < len(self.buffers) + len(self.blocks):
            before = len(self.buffers) + len(self.blocks)
            for block in self.places:
                self._follow(block)

    def apply(self, sch: Schedule) -> Schedule:
        """A schedule of the same blocks in which the axes are one. Parameters have other shapes."""
        new = sch.copy()
        for block, position in self.blocks.items():
            count = len(self.places[block].loops)
            new.transform_block_layout(block, self._map(count, position))
        for buffer, axis in self.buffers.items():
            block = next(
                block
                for block, place in self.places.items()
                if any(access.buffer is buffer for access, _ in _accesses(place))
            )
            new.transform_layout(block, buffer, self._map(buffer.ndim, axis))
        return new

    def with_parameters_of(self, func: PrimFunc, merged: PrimFunc) -> PrimFunc:
        """A scheduled function whose parameters have the shapes of those of `func` again."""
        own = {
            buffer: func.buffer_map[param]
            for param, buffer in merged.buffer_map.items()
            if func.buffer_map[param] in self.buffers
        }
        width = self.extents[1]

        def apart(node: Access | BufferRegion) -> Access | BufferRegion:
            buffer = own.get(node.buffer)
            if buffer is None:
                return node
            axis = self.buffers[buffer]
            if isinstance(node, BufferRegion):
                region = list(node.region)
                region[axis : axis + 1] = _range_apart(region[axis], buffer.shape[axis:], width)
                return BufferRegion(buffer, tuple(region))
            indices = list(node.indices)
            index = indices[axis]
            step = const(width, index.dtype)
            indices[axis : axis + 1] = floordiv(index, step), floormod(index, step)
            return replace(node, buffer=buffer, indices=tuple(indices))

        kinds = (BufferLoad, BufferStore, BufferRegion)
        body = rewrite_nodes(merged.body, kinds, apart)
        buffer_map = {param: own.get(buffer, buffer) for param, buffer in merged.buffer_map.items()}
        return replace(merged, body=body, buffer_map=buffer_map)

    def _map(self, count: int, position: int) -> IndexMap:
        """The map of indices of which two at a position become one."""

        def merged(*indices: Var) -> list[PrimExpr]:
            first, second = indices[position : position + 2]
            one = first * self.extents[1] + second
            return [*indices[:position], one, *indices[position + 2 :]]

        return IndexMap.from_func(merged, ndim=count)

    def _follow(self, block: BlockRV) -> None:
        """Merge the iterators of a block that index buffers which are merged, and the axes of
        buffers that iterators index which are merged."""
        accesses = [*_accesses(self.places[block])]
        for access, indices in accesses:
            axis = self.buffers.get(access.buffer)
            if axis is not None:
                self._add_block(block, indices[axis : axis + 2])
        if block not in self.blocks:
            return
        position = self.blocks[block]
        node = self.places[block].block
        pair = [axis.var for axis in node.iter_vars[position : position + 2]]
        parts = [part for part in (node.init, node.body) if part is not None]
        uses_left = sum(part in pair for statement in parts for part in walk(statement))
        for access, indices in accesses:
            for axis in range(len(indices) - 1):
                if [*indices[axis : axis + 2]] == pair:
                    self._add_buffer(access.buffer, axis)
                    uses_left -= 2
        if uses_left:
            raise NotTogether

    def _add_block(self, block: BlockRV, pair: Sequence[PrimExpr]) -> None:
        """Merge the iterators of a block that are two indices."""
        place = self.places[block]
        iterators = place.block.iter_vars
        position = next((n for n, axis in enumerate(iterators) if axis.var is pair[0]), -1)
        chosen = iterators[position : position + 2]
        if (
            [axis.var for axis in chosen] != [*pair]
            or any(axis.iter_type != SPATIAL for axis in chosen)
            or not has_trivial_binding(place)
            or tuple(map(extent_of, place.loops[position : position + 2])) != self.extents
            or self.blocks.setdefault(block, position) != position
        ):
            raise NotTogether

    def _add_buffer(self, buffer: Buffer, axis: int) -> None:
        extents = tuple(map(constant_value, buffer.shape[axis : axis + 2]))
        if extents != self.extents or self.buffers.setdefault(buffer, axis) != axis:
            raise NotTogether


def _accesses(place: BlockPlace) -> Iterator[tuple[Access, Sequence[PrimExpr]]]:
    """The accesses of a block with their indices, in which iterators that do not move are left
    out."""
    block = place.block
    domains = block.domains
    still = {v: domain.min for v, domain in domains.items() if is_const_int(domain.extent, 1)}
    simplify = Analyzer().simplify
    for statement in (block.init, block.body):
        if statement is not None:
            for access in find_nodes(statement, BufferLoad, BufferStore):
                yield access, [simplify(substitute(index, still)) for index in access.indices]


def _range_apart(one: Range, shape: Sequence[PrimExpr], width: int) -> list[Range]:
    """The rows and columns of a range of an axis that was made of both."""
    if not is_const_int(one.extent, 1):
        return [Range(const(0, extent.dtype), extent) for extent in shape[:2]]
    step = const(width, one.min.dtype)
    parts = floordiv(one.min, step), floormod(one.min, step)
    return [Range(part, one.extent) for part in parts]
