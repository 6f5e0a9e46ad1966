"""Copies of what blocks read at every second element or the like, in which it lies side by side:
the image of a convolution with strides and filters of one pixel."""

from __future__ import annotations

from math import prod

from mlcweb.arith import Analyzer
from mlcweb.arith.index_map import IndexMap
from mlcweb.dlight.cpu.parallel import in_parallel
from mlcweb.schedule import BlockRV, Schedule
from mlcweb.schedule.analysis.block_facts import coefficient, extent_of, place_of
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.substitute import substitute, uses

MIN_USES = 16
"""Copies pay where each element is read so many times."""


def copy_spread_reads(sch: Schedule, block: BlockRV) -> None:
    """Have a block read copies of what it reads spread and many times."""
    for number in range(len(place_of(sch, block).block.reads)):
        if _is_spread(place_of(sch, block), number):
            copy = sch.reindex(block, ("read", number))
            order = _order(place_of(sch, copy))
            sch.transform_layout(block, ("read", number), order)
            sch.transform_block_layout(copy, order)
            in_parallel(sch, sch.get_loops(copy)[:-1])


def _order(copy: BlockPlace) -> IndexMap:
    """The iterators of a block in the order in which they index what it reads."""
    iterators, (region,) = [*copy.block.domains], copy.block.reads
    indices = [dimension.min for dimension in region.region]
    order = [n for index in indices for n, var in enumerate(iterators) if uses(index, var)]
    return IndexMap.from_func(lambda *axes: [axes[n] for n in order], ndim=len(iterators))


def _is_spread(place: BlockPlace, number: int) -> bool:
    """Whether a block reads something many times by iterators that index a dimension each, one of
    them not element by element."""
    domains = place.block.domains
    still = {v: domain.min for v, domain in domains.items() if is_const_int(domain.extent, 1)}
    simplify = Analyzer().simplify
    region = place.block.reads[number].region
    indices = [simplify(substitute(dimension.min, still)) for dimension in region]
    moving = [var for var in domains if var not in still]
    by_dimension = [[var for var in moving if uses(index, var)] for index in indices]
    used = [var for each in by_dimension for var in each]
    if len(set(used)) < len(used) or any(len(each) > 1 for each in by_dimension):
        return False
    pairs = zip(place.loops, domains, strict=True)
    times = prod(extent_of(loop) or 0 for loop, var in pairs if var not in used)
    steps = [
        coefficient(index, var)
        for index, each in zip(indices, by_dimension, strict=True)
        for var in each
    ]
    return times >= MIN_USES and None not in steps and any(step != 1 for step in steps)
