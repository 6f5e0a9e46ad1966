"""What a block is known to write: elements that it stores to whatever its conditions.

T.writes says what a block may write. A copy that takes the place of a buffer for a while may be
copied back only where it has been written, or it would put what happens to be in it over values
that the program keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mlcweb.analysis.effects import exact_box, may_be_empty, sure_stores
from mlcweb.analysis.threads import thread_tag
from mlcweb.arith import Analyzer, estimate_region
from mlcweb.arith.int_set import IntSet
from mlcweb.ir.visitor import walk
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.iteration_domain import executed_domains
from mlcweb.schedule.regions import bound_ranges, regions_of, relaxed
from mlcweb.schedule.scopes import driven_iterators, is_trivially_true
from mlcweb.schedule.stage_pipeline import contains
from mlcweb.schedule.state import BlockPlace, shared_prefix
from mlcweb.schedule.units import guards
from mlcweb.tir.arithmetic import const, logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.stmt import Block, BufferStore, For
from mlcweb.tir.substitute import substitute, variables_in

Box = Sequence[Range]


def is_local(scope: BlockPlace, buffer: Buffer) -> bool:
    """Whether a scope allocates a buffer: elements that its only writer leaves out hold nothing."""
    return buffer in scope.block.alloc_buffers


def must_write(
    place: BlockPlace, buffer: Buffer, outer: For | None, box: Box | Sequence[IntSet]
) -> bool:
    """Whether a block is known to write all elements of a box of a buffer in each iteration of the
    loop `outer` (None: in each run of its scope)."""
    if _may_not_run(place, buffer, outer):
        return False
    analyzer = Analyzer(place.domains_around)
    return any(contains(part, box, analyzer) for part in _written(place, buffer, outer))


def must_write_each_time(place: BlockPlace, buffer: Buffer) -> bool:
    """Whether each iteration of a block's loops writes all that it declares to write of a buffer,
    but for those that its predicate leaves out."""
    regions = regions_of(place.block.writes, buffer)
    return not _may_not_run(place, buffer) and all(
        _writes_region(place.block, region) for region in regions
    )


def _may_not_run(place: BlockPlace, buffer: Buffer, outer: For | None = None) -> bool:
    """Whether a block perhaps writes nothing of what its region says: something guards it, or a
    loop that does not tell the elements has no iteration."""
    written = variables_in(*regions_of(place.block.writes, buffer))
    inside = place.inner_loops(outer)
    return bool(guards(place, outer)) or any(
        loop.loop_var in inside
        and may_be_empty(loop, place.realize)
        and written.isdisjoint({loop.loop_var, *driven_iterators(place.realize, loop.loop_var)})
        for loop in place.loops
    )


def check_own_threads(moved: BlockPlace, producer: BlockPlace, consumer: BlockPlace) -> None:
    """Raise DataflowError where a block, the producer or the consumer, is to run where the other
    does, and would find the memory that each thread has for itself to be of another thread."""
    shared = shared_prefix([producer.loops, consumer.loops])
    threads = [loop for loop in shared if thread_tag(loop)]
    if not threads:
        return
    between = {region.buffer for region in producer.block.writes}
    accesses = (*moved.block.reads, *moved.block.writes)
    own = {access.buffer for access in accesses if access.buffer.scope() == "local"} - between
    domains, analyzer = consumer.inner_loops(threads[-1]), Analyzer(consumer.domains_around)
    for region in consumer.block.reads:
        if own and region.buffer in between:
            box = relaxed(bound_ranges(consumer.realize, region), domains, analyzer)
            if not must_write(producer, region.buffer, threads[-1], box):
                raise DataflowError(
                    f'In the loop "{threads[-1].loop_var.name}" over threads the {consumer.title} '
                    f'reads elements of "{region.buffer.name}" that other threads have written, '
                    f'so the {moved.title} would use their "{min(b.name for b in own)}"',
                    [threads[-1], moved.realize],
                    'this step before cache_read, or a copy in "shared" memory',
                )


def runs_whole_domain(place: BlockPlace) -> bool:
    """Whether the loops around a block run its iterators through their whole domains."""
    domains = place.block.domains
    points = [Range(value, const(1, value.dtype)) for value in place.realize.iter_values]
    box = estimate_region(points, place.inner_loops(None), place.realize.predicate)
    if box is None or is_trivially_true(place.realize.predicate):
        return box is not None and not _differences(box, tuple(domains.values()), Analyzer())
    executed = executed_domains(place)
    return executed is not None and all(executed[v] is domain for v, domain in domains.items())


def _differences(one: Box, other: Box, analyzer: Analyzer) -> list[int]:
    """The dimensions in which two boxes are not known to be the same."""
    equal = analyzer.can_prove_equal
    return [
        n
        for n, (a, b) in enumerate(zip(one, other, strict=True))
        if not (equal(a.min, b.min) and equal(a.extent, b.extent))
    ]


def _written(place: BlockPlace, buffer: Buffer, outer: For | None) -> list[Box]:
    """Boxes that a block writes, seen from inside of a loop."""
    realize, inner = place.realize, place.inner_loops(outer)
    bound = realize.bindings
    boxes: list[Box | None] = []
    for region in regions_of(place.block.writes, buffer):
        if not _writes_region(place.block, region):
            continue
        if outer is None and runs_whole_domain(place):
            boxes.append(exact_box(region, place.block.domains, const(True)))
        boxes.append(exact_box(substitute(region, bound), inner, realize.predicate))
    for store in sure_stores(place.block, buffer):
        seen = store.substituted(bound)
        predicate = logical_and(realize.predicate, seen.predicate)
        boxes.append(exact_box(seen.region, {**inner, **seen.domains}, predicate))
    return [box for box in boxes if box is not None]


@lru_cache(maxsize=1024)
def _writes_region(block: Block, region: BufferRegion) -> bool:
    """Whether each iteration of a block writes all of a region that it declares to write. What a
    block writes through an address or a view, or by a call, it is trusted to declare exactly."""
    buffer = region.buffer
    if not any(isinstance(node, BufferStore) and node.buffer is buffer for node in walk(block)):
        return True
    analyzer = Analyzer(block.domains)
    parts = [
        box
        for s in sure_stores(block, buffer)
        if (box := exact_box(s.region, s.domains, s.predicate)) is not None
    ]
    return any(contains(part, region.region, analyzer) for part in _merged(parts, analyzer))


def _merged(parts: list[Box], analyzer: Analyzer) -> list[Box]:
    """The parts, and those that neighbouring parts are together."""
    merged: list[Box] = []
    for part in parts:
        for n, box in enumerate(merged):
            both = _together(box, part, analyzer)
            if both is not None:
                merged[n] = both
                break
        else:
            merged.append(part)
    return merged if len(merged) in (1, len(parts)) else _merged(merged, analyzer)


def _together(one: Box, other: Box, analyzer: Analyzer) -> Box | None:
    """Two boxes as one, where they differ in one dimension, in which they touch."""
    different = _differences(one, other, analyzer)
    if not different:
        return one
    if len(different) > 1:
        return None
    n = different[0]
    for a, b in ((one[n], other[n]), (other[n], one[n])):
        end = b.min + b.extent
        if analyzer.can_prove(a.min <= b.min) and analyzer.can_prove(b.min <= a.min + a.extent):
            if analyzer.can_prove(end >= a.min + a.extent):
                side = Range(a.min, analyzer.simplify(end - a.min))
                return [*one[:n], side, *one[n + 1 :]]
            return [*one[:n], a, *one[n + 1 :]]
    return None
