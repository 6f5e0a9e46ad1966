"""What units do to buffers, seen from a loop around them: what they are known to write, and whether
one of them writes what another one reads.

T.writes says what a block may write. What it is known to write it stores whatever its conditions
are. (A copy that takes the place of a buffer for a while may be copied back only where it has been
written, or it would put what happens to be in it over values that the program keeps.)
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

from mlcweb.analysis.access_regions import same_range
from mlcweb.analysis.effects import exact_box, may_be_empty, sure_stores
from mlcweb.analysis.threads import thread_tag
from mlcweb.arith import (
    Analyzer,
    IntSet,
    conjunction,
    conjuncts,
    estimate_region,
    intersect,
    same_expression,
    union,
)
from mlcweb.arith.linear_system import LinearSystem, constant_ends
from mlcweb.ir.visitor import walk
from mlcweb.schedule.analysis.iteration_domain import (
    condition_on_loops,
    executed_domains,
    first_terms,
    needed_iterations,
)
from mlcweb.schedule.analysis.regions import (
    accessed,
    bound_ranges,
    regions_of,
    relaxed,
    threads_sharing,
    touched,
)
from mlcweb.schedule.analysis.scopes import driven_iterators, is_trivially_true, loop_ranges
from mlcweb.schedule.analysis.units import guards
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.state import BlockPlace, shared_prefix
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, full_region
from mlcweb.tir.expr import GE, LT, FloorMod, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, For, IterType
from mlcweb.tir.substitute import substitute, uses_any, variables_in

Box = Sequence[Range]
Reads = Sequence[IntSet]


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
    return any(
        part is not None and contains(part, box, analyzer)
        for part in _written(place, buffer, outer)
    )


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
        and may_be_empty(loop.extent, place.realize)
        and written.isdisjoint({loop.loop_var, *driven_iterators(place.realize, loop.loop_var)})
        for loop in place.loops
    )


def runs_whole_domain(place: BlockPlace) -> bool:
    """Whether the loops around a block run its iterators through their whole domains."""
    executed = executed_domains(place)
    domains = place.block.domains
    return executed is not None and all(executed[v] is domain for v, domain in domains.items())


def _written(place: BlockPlace, buffer: Buffer, outer: For | None) -> Iterator[Box | None]:
    """Boxes that a block writes, seen from inside of a loop; None for what is no box."""
    realize, inner = place.realize, place.inner_loops(outer)
    bound = realize.bindings
    for region in regions_of(place.block.writes, buffer):
        if not _writes_region(place.block, region):
            continue
        if outer is None and runs_whole_domain(place):
            yield exact_box(region, place.block.domains, const(True))
        yield exact_box(substitute(region, bound), inner, realize.predicate)
    for store in sure_stores(place.block, buffer):
        seen = store.substituted(bound)
        predicate = logical_and(realize.predicate, seen.predicate)
        yield exact_box(seen.region, {**inner, **seen.domains}, predicate)


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
    equal = analyzer.can_prove_equal
    pairs = enumerate(zip(one, other, strict=True))
    different = [
        n for n, (a, b) in pairs if not (equal(a.min, b.min) and equal(a.extent, b.extent))
    ]
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


def have_run(
    producer: BlockPlace, buffer: Buffer, boxes: Sequence[Reads], outer: For, analyzer: Analyzer
) -> bool:
    """Whether in each iteration of the loop `outer` all iterations of a unit run that write
    elements in boxes of a buffer."""
    inner, domains = producer.inner_loops(outer), producer.block.domains
    values, predicate = producer.realize.bindings, producer.realize.predicate
    regions = regions_of(producer.block.writes, buffer)
    if not values:  # The unit uses the loops themselves.
        written = [estimate_region(r.region, inner, predicate, analyzer) for r in regions]
        return all(w is not None and contains(w, box, analyzer) for w in written for box in boxes)
    spatial = [i.var for i in producer.block.iter_vars if i.iter_type == IterType.DATA_PARALLEL]
    # Simplified, (16 * block + thread) // 48 is block // 3, the same for all threads of a block.
    simplifier = Analyzer(producer.domains_around)
    points = [Range(simplifier.simplify(values[var]), const(1, var.dtype)) for var in spatial]
    run = estimate_region(points, inner, _cut(producer, inner), analyzer)
    limits = {var: IntSet.from_range(domains[var]) for var in spatial}
    for region in regions:
        needed = needed_iterations([(region, box) for box in boxes], domains, analyzer)
        sides = [intersect(needed.get(v, limit), limit, analyzer) for v, limit in limits.items()]
        if run is None or not contains(run, sides, analyzer):
            return False
    return True


def _cut(producer: BlockPlace, inner: Mapping[Var, Range]) -> PrimExpr:
    """The part of a producer's predicate that cuts off iterations of the loops `inner` that could
    run elsewhere. Nobody needs those whose iterators would be outside of their domains, nor those
    that run nowhere since the condition tells of the iterators themselves."""
    analyzer = Analyzer(producer.domains_around)
    values = map(analyzer.simplify, producer.realize.iter_values)
    iterators = {value for value in values if isinstance(value, Var)}
    return conjunction(
        condition
        for condition in conjuncts(producer.realize.predicate)
        if uses_any(condition, inner)
        and not _ends_domain(condition, producer)
        and not variables_in(analyzer.simplify(condition)) <= iterators
    )


def _ends_domain(condition: PrimExpr, place: BlockPlace) -> bool:
    """Whether some iterator is outside of its domain wherever a condition does not hold."""
    if not isinstance(condition, LT):
        return False
    system = LinearSystem()
    around = place.domains_around.items()
    values = {var: system.variable(*constant_ends(domain)) for var, domain in around}
    for iter_var, value in place.realize.iterators:
        low, end = iter_var.domain.min, iter_var.domain.min + iter_var.domain.extent
        if same_expression(value, condition.a) and same_expression(end, condition.b):
            return True
        index = system.form(value, values)
        system.require(index.plus(system.form(low, values), -1), 0, inf)
        system.require(index.plus(system.form(end, values), -1), -inf, -1)
    system.require_condition(GE(condition.a, condition.b), values)
    return system.solution() is None


def is_uncovered(buffer: Buffer, producers: Sequence[BlockPlace], reader: BlockPlace) -> bool:
    """Whether the reader is known to read what has not been written.

    Both sides are seen from the loops that all blocks share, but for loops over threads: what one
    thread reads, another may have written. Where the written region cannot be found exactly, or the
    answer depends on a loop, nothing is known.
    """
    return _is_uncovered(
        buffer, *(_Nest(each.realize, each.loops) for each in (reader, *producers))
    )


class _Nest(NamedTuple):
    """A block and the loops around it: of a place, what most steps leave alone."""

    realize: BlockRealize
    loops: tuple[For, ...]


@lru_cache(maxsize=1024)
def _is_uncovered(buffer: Buffer, reader: _Nest, *producers: _Nest) -> bool:
    chains = [nest.loops for nest in (reader, *producers)]
    shared = shared_prefix(chains)
    threads = [loop for loop in shared if thread_tag(loop)]
    written: list[list[IntSet]] = []
    for producer, chain in zip(producers, chains[1:], strict=True):
        inner = loop_ranges([*threads, *chain[len(shared) :]])
        for region in regions_of(producer.realize.block.writes, buffer):
            exact = estimate_region(
                bound_ranges(producer.realize, region), inner, producer.realize.predicate
            )
            if exact is None:
                return False
            written.append([IntSet.from_range(dimension) for dimension in exact])
        if any(_is_whole(item, buffer) for item in written):
            return False
    analyzer = Analyzer(loop_ranges(loop for chain in chains for loop in chain))
    inner = loop_ranges([*threads, *chains[0][len(shared) :]])
    around = loop_ranges([loop for loop in shared if not thread_tag(loop)])
    predicate = reader.realize.predicate
    for region in regions_of(reader.realize.block.reads, buffer):
        box_of = touched if is_trivially_true(predicate) else accessed
        read = box_of(reader.realize, region, inner, analyzer)
        for n, needed in enumerate(_inside(buffer, read, analyzer)):
            covered = union([item[n] for item in written], analyzer)
            if _exceeds(needed, covered, analyzer) or (
                around and _exceeds_once(needed, covered, loop_ranges(chains[0]), predicate)
            ):
                return True
    return False


def is_covered(buffer: Buffer, producers: Sequence[BlockPlace], reader: BlockPlace) -> bool:
    """Whether all that the reader reads of a buffer is known to have been written.

    Both sides are seen from the loops that all blocks share, but for loops over threads that share
    the buffer's memory.
    """
    chains = [place.loops for place in (reader, *producers)]
    shared = shared_prefix(chains)
    threads = threads_sharing(reader, shared[-1], buffer.scope()) if shared else {}
    analyzer = Analyzer(loop_ranges(loop for chain in chains for loop in chain))
    inner = [{**threads, **loop_ranges(chain[len(shared) :])} for chain in chains]
    written = [
        estimate_region(bound_ranges(producer.realize, region), domains, producer.realize.predicate)
        for producer, domains in zip(producers, inner[1:], strict=True)
        for region in regions_of(producer.block.writes, buffer)
    ]
    boxes = _merged([box for box in written if box is not None], analyzer)
    for region in regions_of(reader.block.reads, buffer):
        read = accessed(reader.realize, region, inner[0], analyzer)
        needed = _inside(buffer, read, analyzer)
        if not any(contains(box, needed, analyzer) for box in boxes):
            return False
    return True


def _inside(buffer: Buffer, box: Reads, analyzer: Analyzer) -> list[IntSet]:
    """The part of a box that lies in a buffer."""
    whole = map(IntSet.from_range, full_region(buffer).region)
    return [intersect(side, limit, analyzer) for side, limit in zip(box, whole, strict=True)]


def _is_whole(written: Sequence[IntSet], buffer: Buffer) -> bool:
    """Whether a region is plainly all of a buffer."""
    return all(
        is_const_int(low, 0) and isinstance(high, IntImm) and is_const_int(extent, high.value + 1)
        for (low, high), extent in zip(written, buffer.shape, strict=True)
    )


def reads_only_written(reader: BlockPlace, producer: BlockPlace, buffer: Buffer) -> bool:
    """Whether all elements that a block reads of a buffer, in any of its iterations and whatever
    its conditions, are known to be written by `producer`."""
    running = executed_domains(producer) or executed_domains(first_terms(producer))
    predicate: PrimExpr = const(True)
    values: Mapping[Var, PrimExpr] = {}
    if not running:
        # A statement outside of blocks, a block that uses its loops directly, or one whose
        # predicate is about several iterators.
        condition = condition_on_loops(producer)
        if condition is None:
            return False
        running, predicate = producer.inner_loops(None), condition
        values = producer.realize.bindings
    written = [
        estimate_region(substitute(region, values).region, running, predicate)
        for region in regions_of(producer.block.writes, buffer)
    ]
    domains = reader.block.domains
    analyzer = Analyzer(domains)
    for region in regions_of(reader.block.reads, buffer):
        read = relaxed(region.region, domains, analyzer)
        if not any(box is not None and contains(box, read, analyzer) for box in written):
            return False
    return True


def contains(
    box: Sequence[Range], part: Sequence[IntSet] | Sequence[Range], analyzer: Analyzer
) -> bool:
    """Whether a region is known to lie in a box."""
    return all(_holds(outer, side, analyzer) for outer, side in zip(box, part, strict=True))


def _holds(outer: Range, part: IntSet | Range, analyzer: Analyzer) -> bool:
    if isinstance(part, Range):
        if same_range(part, outer):
            return True
        part = IntSet.from_range(part)
    return (
        part.min_value is not None
        and part.max_value is not None
        and _is_known(part.min_value >= outer.min, analyzer)
        and _is_known(part.max_value < outer.min + outer.extent, analyzer)
    )


def _is_known(comparison: PrimExpr, analyzer: Analyzer) -> bool:
    """Whether a comparison holds. That (x + 7) // 2 is x // 2 + (x % 2 + 7) // 2, as boxes that
    compute_at finds ask for, is seen by a linear system."""
    if analyzer.can_prove(comparison):
        return True
    if not isinstance(comparison, (LT, GE)):
        return False
    if not any(isinstance(node, FloorMod) for node in walk(comparison)):
        return False
    system = LinearSystem()
    for var in variables_in(comparison):
        system.name(var, *analyzer.const_int_bound(var))
    opposite = GE if isinstance(comparison, LT) else LT
    system.require_condition(opposite(comparison.a, comparison.b), {})
    return system.solution() is None


def _exceeds(inner: IntSet, outer: IntSet, analyzer: Analyzer) -> bool:
    if None in inner or None in outer:
        return False
    low: PrimExpr = inner.min_value >= outer.min_value  # type: ignore[operator]
    high: PrimExpr = inner.max_value <= outer.max_value  # type: ignore[operator]
    return analyzer.can_disprove(low) or analyzer.can_disprove(high)


def _exceeds_once(
    inner: IntSet, outer: IntSet, domains: Mapping[Var, Range], predicate: PrimExpr
) -> bool:
    """Whether an interval is known to leave another one in some iteration of loops for which a
    predicate holds."""
    if None in inner or None in outer:
        return False
    ends = (inner.min_value, outer.min_value), (outer.max_value, inner.max_value)
    for low, high in ends:  # Inside, the first is not less than the second.
        system = LinearSystem()
        values = {var: system.variable(*constant_ends(domain)) for var, domain in domains.items()}
        difference = system.form(low, values).plus(system.form(high, values), -1)  # type: ignore[arg-type]
        system.require(difference, -inf, -1)
        for condition in conjuncts(predicate):
            system.require_condition(condition, values)
        solution = system.solution()
        if solution is not None and system.is_sure(solution):
            return True
    return False


def reads_of_other_threads(
    producer: BlockPlace, consumer: BlockPlace, buffers: Container[Buffer]
) -> tuple[For, Buffer] | None:
    """A loop over threads around two blocks, and one of some buffers of which a thread in it may
    read what another one has written; None where there is none."""
    shared = shared_prefix([producer.loops, consumer.loops])
    threads = [loop for loop in shared if thread_tag(loop)]
    if not threads:
        return None
    domains, analyzer = consumer.inner_loops(threads[-1]), Analyzer(consumer.domains_around)
    for region in consumer.block.reads:
        if region.buffer in buffers:
            box = touched(consumer.realize, region, domains, analyzer)
            if not must_write(producer, region.buffer, threads[-1], box):
                return threads[-1], region.buffer
    return None


def check_own_threads(moved: BlockPlace, producer: BlockPlace, consumer: BlockPlace) -> None:
    """Raise DataflowError where a block, the producer or the consumer, is to run where the other
    does, and would find the memory that each thread has for itself to be of another thread."""
    between = {region.buffer for region in producer.block.writes}
    accesses = (*moved.block.reads, *moved.block.writes)
    own = {access.buffer for access in accesses if access.buffer.scope() == "local"} - between
    dependence = reads_of_other_threads(producer, consumer, between) if own else None
    if dependence is not None:
        loop, buffer = dependence
        raise DataflowError(
            f'In the loop "{loop.loop_var.name}" over threads the {consumer.title} reads elements '
            f'of "{buffer.name}" that other threads have written, so the {moved.title} would use '
            f'their "{min(b.name for b in own)}"',
            [loop, moved.realize],
            'this step before cache_read, or a copy in "shared" memory',
        )
