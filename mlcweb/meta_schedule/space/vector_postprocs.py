"""Post-processors about vectors: innermost loops of blocks that do one thing to each element are
vectorized; tiles that do not fit the registers, and loops that stay scalar, are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from mlcweb.meta_schedule.space.postprocs import Condition, Postproc
from mlcweb.meta_schedule.space.register_tiling import RegisterTile, register_tiles
from mlcweb.meta_schedule.space.vector_lanes import (
    LANES_ANNOTATION,
    MIN_LANES,
    MIN_VECTORS,
    lanes_of,
)
from mlcweb.runtime.vector_unit import vector_unit
from mlcweb.schedule import Instruction, Schedule, Trace
from mlcweb.schedule.analysis.block_facts import (
    SPATIAL,
    TILING_STRUCTURE,
    bound_regions,
    extent_of,
    is_root,
    is_single,
    is_spatial,
    strides,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.stmt import BlockIdentity, For, ForKind

DEFAULT_VECTORS = 4
"""Vectors at a time where no annotation says otherwise."""


class VectorizeInnermost(Postproc):
    """Vectorizes each spatial block whose inner loops move through neighbouring elements: they are
    fused as far as vectors need, and split into vectors of as many lanes as `VectorLanes` chose, or
    of fewer that divide them."""

    def apply(self, sch: Schedule) -> bool:
        chosen = _taken_lanes(sch)
        default = chosen.get(None, DEFAULT_VECTORS * vector_unit(self.target).lanes())
        for place in list(sch.state.index.blocks.values()):
            current = sch.state.block(place.block.identity)
            lanes = chosen.get(current.block.identity, default)
            count, width = vector_loops(current, lanes)
            if count:
                _vectorize(sch, current, count, width)
        return True


def _taken_lanes(sch: Schedule) -> dict[BlockIdentity | None, int]:
    """The lanes that `VectorLanes` chose for blocks, which lose their annotations; those of the
    root block are for None."""
    lanes: dict[BlockIdentity | None, int] = {}
    for place in list(sch.state.index.blocks.values()):
        if LANES_ANNOTATION in place.block.annotations:
            key = None if is_root(place) else place.block.identity
            lanes[key] = int(place.block.annotations[LANES_ANNOTATION])
            sch.unannotate(sch.get_block(place.block.name_hint, place.function), LANES_ANNOTATION)
    return lanes


def _vectorize(sch: Schedule, place: BlockPlace, count: int, width: int) -> None:
    block = sch.get_block(place.block.name_hint, place.function)
    inner = sch.get_loops(block)[-count:]
    extent = prod(extent_of(loop) or 1 for loop in place.loops[-count:])
    loop = sch.fuse(*inner) if count > 1 else inner[0]
    if extent != width:
        _, loop = sch.split(loop, [None, width])
    sch.vectorize(loop)


def vector_loops(place: BlockPlace, lanes: int) -> tuple[int, int]:
    """How many innermost loops of a spatial block to fuse for vectors, and the lanes of these;
    (0, 0) where there are no vectors to make."""
    loops = place.loops
    if not loops or not is_spatial(place.block) or not place.block.writes:
        return 0, 0
    if any(loop.kind == ForKind.VECTORIZED for loop in loops):
        return 0, 0
    steps = [strides(region, loops) for region in bound_regions(place.realize)]
    for count in range(1, len(loops) + 1):
        inner = loops[-count:]
        if not _is_even(inner, [of_access[-count:] for of_access in steps]):
            return 0, 0
        extent = prod(extent_of(loop) or 1 for loop in inner)
        for width in (lanes, 32, 16, 8, 4):
            if width <= lanes and extent % width == 0:
                return count, width
    return 0, 0


def _is_even(inner: Sequence[For], steps: Sequence[Sequence[int | None]]) -> bool:
    """Whether loops, fused, move through each buffer one by one, or not at all."""
    if any(loop.kind != ForKind.SERIAL or loop_type(loop) != SPATIAL for loop in inner):
        return False
    if any(extent_of(loop) is None or not is_single(loop.body) for loop in inner):
        return False
    extents = [extent_of(loop) or 1 for loop in inner]
    moving = [n for n, loop in enumerate(inner) if extent_of(loop) != 1]
    row_major = [prod(extents[n + 1 :]) for n in moving]
    for of_access in steps:
        moves = [of_access[n] for n in moving]
        if moves != row_major and any(step != 0 for step in moves):
            return False
    return any(any(step for step in of_access) for of_access in steps[-1:])


OPERANDS = 4
"""Registers that are left to operands, when all others have vectors of sums."""


class VerifyRegisters(Postproc):
    """Refuses schedules in which a tiled block holds more sums at a time than fit the registers, or
    fewer than the rule that tiled it holds to be worth while.

    Args:
        max_vectors: the most vectors of sums; by default all that fit the target's registers.
    """

    def __init__(self, max_vectors: int | None = None) -> None:
        self.max_vectors = max_vectors

    def apply(self, sch: Schedule) -> bool:
        most = vector_unit(self.target).lanes()
        return all(
            self._fits(
                int(place.block.annotations.get(MIN_VECTORS, 0)), _sums(place), _lanes(place, most)
            )
            for place in sch.state.index.blocks.values()
            if TILING_STRUCTURE in place.block.annotations
        )

    def conditions(self, trace: Trace) -> list[Condition]:
        return [
            Condition(tile.tilings, partial(self._may_fit, tile)) for tile in register_tiles(trace)
        ]

    def _may_fit(self, tile: RegisterTile, decisions: Mapping[Instruction, Any]) -> bool:
        sums = tile.sums(decisions)
        return sums is None or self._fits(tile.least, sums, tile.lanes)

    def _fits(self, least: int, sums: int, lanes: int) -> bool:
        most = self.max_vectors or vector_unit(self.target).registers - OPERANDS
        return least * lanes <= sums <= most * lanes


def _lanes(place: BlockPlace, most: int) -> int:
    """The lanes of a block's vectors, of which one loop goes over several."""
    vectorized = (loop for loop in place.loops if loop.kind == ForKind.VECTORIZED)
    return min((lanes_of(extent_of(loop), most) or most for loop in vectorized), default=most)


def _sums(place: BlockPlace) -> int:
    return prod(
        extent_of(loop) or 1
        for loop in place.loops
        if loop.kind in (ForKind.UNROLLED, ForKind.VECTORIZED) and loop_type(loop) == SPATIAL
    )


class VerifyVectorized(Postproc):
    """Refuses schedules with a spatial block whose inner loops move through neighbouring elements
    one at a time."""

    def apply(self, sch: Schedule) -> bool:
        places = sch.state.index.blocks.values()
        return not any(vector_loops(place, MIN_LANES)[0] for place in places)
