"""Rules that choose which loop of a block becomes the lanes of vectors."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from math import gcd, prod

from mlcweb.meta_schedule.space.rules import ScheduleRule, one_of
from mlcweb.runtime.vector_unit import vector_unit
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    REDUCTION,
    SPATIAL,
    TILING_STRUCTURE,
    bound_regions,
    coefficient,
    extent_of,
    has_trivial_binding,
    inputs_of,
    is_reduction_block,
    is_root,
    is_spatial,
    place_of,
    strides,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer, BufferRegion
from mlcweb.tir.expr import BufferLoad
from mlcweb.tir.stmt import BufferStore, For

MIN_LANES = 4
"""The extent of a loop that runs in vectors is a multiple of this."""

WORTH_PACKING = 8
"""Uses of each element that pay for packing it."""


MIN_VECTORS = "meta_schedule.min_vectors"
"""The annotation of a block with the fewest vectors of sums that are worth making together."""


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """A loop to run in lanes.

    Attributes:
        loop: its position among the loops of the block.
        lanes: the lanes of its vectors.
        packed: the read regions with elements that lie apart along it.
        transposed: whether what is written lies apart along it.
    """

    loop: int
    lanes: int
    packed: tuple[int, ...]
    transposed: bool


def is_untiled_reduction(sch: Schedule, place: BlockPlace) -> bool:
    """Whether a block reduces into one buffer, each of its iterators in a loop of its own, and no
    rule has tiled it."""
    node = place.block
    return (
        not is_root(place)
        and TILING_STRUCTURE not in node.annotations
        and len(node.writes) == 1
        and has_trivial_binding(place)
        and is_reduction_block(sch.state, place)
    )


def lanes_of(extent: int | None, most: int) -> int:
    """The lanes of the vectors that a loop of some iterations runs in; 0 where it runs in none.

    Args:
        most: the lanes of the vectors that the target has.
    """
    lanes = gcd(extent or 1, most)
    return lanes if lanes >= MIN_LANES else 0


def spatial_lanes(place: BlockPlace, most: int, free: Container[Buffer] = ()) -> list[LaneChoice]:
    """The spatial loops of a reduction block that are worth running in vectors of at most `most`
    lanes: of those with the most lanes the ones along which the result lies side by side; where
    there are none, others. What is read of `free` buffers, whose layout may be chosen, lies as it
    should."""
    loops = place.loops
    iterations = prod(extent_of(loop) or 1 for loop in loops)
    inputs = [n for n, _ in inputs_of(place.block)]
    *reads, write = _steps(place, loops)
    choices = []
    for position, loop in enumerate(loops):
        lanes = lanes_of(extent_of(loop), most)
        if loop_type(loop) != SPATIAL or not lanes or write[position] in (0, None):
            continue
        apart = tuple(
            n
            for n in inputs
            if reads[n][position] not in (0, 1) and place.block.reads[n].buffer not in free
        )
        copied = sum(_elements(place.block.reads[n]) for n in apart)
        transposed = write[position] != 1
        if transposed:
            copied += _elements(place.block.writes[0])
        if copied * WORTH_PACKING <= iterations:
            choices.append(LaneChoice(position, lanes, apart, transposed))
    # Another order of dimensions lays side by side what are neighbours in one of them.
    choices = [choice for choice in choices if _packs(place, choice)] or choices
    widest = max((choice.lanes for choice in choices), default=0)
    choices = [choice for choice in choices if choice.lanes == widest]
    return [choice for choice in choices if not choice.transposed] or choices


def _packs(place: BlockPlace, choice: LaneChoice) -> bool:
    lane = place.block.iter_vars[choice.loop].var
    indices = (each.min for n in choice.packed for each in place.block.reads[n].region)
    return all(coefficient(index, lane) in (0, 1) for index in indices)


def reduction_lane(place: BlockPlace) -> int | None:
    """The position of a reduction loop along which all that is read lies side by side, or is the
    same; None where there is none."""
    loops = place.loops
    *reads, write = _steps(place, loops)
    inputs = [n for n, _ in inputs_of(place.block)]
    for position, loop in enumerate(loops):
        steps = {reads[n][position] for n in inputs}
        fills_vectors = lanes_of(extent_of(loop), MIN_LANES) > 0
        if loop_type(loop) == REDUCTION and fills_vectors and write[position] == 0:
            if steps <= {0, 1} and 1 in steps:
                return position
    return None


def min_vectors(*limited: tuple[int, int], enough: int) -> int:
    """The fewest vectors of sums to make together, of loops whose extents may be cut into tiles up
    to a limit: as many as there can be, but no more than are enough."""
    most = prod(
        max(tile for tile in range(1, limit + 1) if extent % tile == 0) for extent, limit in limited
    )
    return min(most, enough)


def _steps(place: BlockPlace, loops: tuple[For, ...]) -> list[list[int | None]]:
    return [strides(region, loops) for region in bound_regions(place.realize)]


def _elements(region: BufferRegion) -> int:
    return prod(int(constant_value(extent) or 0) for extent in region.buffer.shape)


LANES_ANNOTATION = "meta_schedule.lanes"
"""The annotation with the lanes of a block, or of all that are below a root block and have none of
their own."""


@dataclass(eq=False)
class VectorLanes(ScheduleRule):
    """Chooses by chance how many lanes `VectorizeInnermost` makes, and annotates each spatial block
    that computes something, and the root block for those that copy.

    Args:
        lanes: the numbers to choose from; by default those of 1, 2, 4 and 8 vectors.
    """

    lanes: list[int] | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if is_root(place) or _computes_rows(place):
            lanes = self.lanes or [n * vector_unit(self.target).lanes() for n in (1, 2, 4, 8)]
            sch.annotate(block, LANES_ANNOTATION, one_of(sch, lanes))
        return [sch]


def _computes_rows(place: BlockPlace) -> bool:
    """Whether a spatial block makes more than copies, of more than a few elements."""
    node, loops = place.block, place.loops
    if not is_spatial(node) or TILING_STRUCTURE in node.annotations or not loops:
        return False
    if not isinstance(node.body, BufferStore) or isinstance(node.body.value, BufferLoad):
        return False
    return (extent_of(loops[-1]) or 1) > 1
