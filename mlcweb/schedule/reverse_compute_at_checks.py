"""What must hold of a consumer that moves under a loop of its producers.

`realize` is the consumer in its new place, `loops` are its new loops under the loop `target`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith import Analyzer, IntSet, conjuncts, estimate_region, intersect
from mlcweb.arith.iter_map import BIJECTIVE, detect_iter_map
from mlcweb.schedule.errors import BindingError, DataflowError, LoopError
from mlcweb.schedule.iteration_domain import Box, needed_iterations
from mlcweb.schedule.regions import bound_ranges, regions_of, relaxed
from mlcweb.schedule.scopes import loop_ranges
from mlcweb.schedule.stage_pipeline import contains, reads_only_written
from mlcweb.schedule.state import BlockPlace, LoopPlace
from mlcweb.tir.arithmetic import const, logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import LT, FloorDiv, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import BlockRealize, ForKind, IterType
from mlcweb.tir.substitute import uses_any, variables_in


def check_written_before(
    target: LoopPlace,
    producers: Sequence[BlockPlace],
    realize: BlockRealize,
    loops: Mapping[Var, Range],
    analyzer: Analyzer,
) -> None:
    """The iterations of producers that make what the moved consumer reads in an iteration of the
    loop all run in that iteration."""
    for producer in producers:
        buffer = written_elsewhere(target, producer, realize, loops, analyzer)
        if buffer is not None:
            raise DataflowError(
                f'In an iteration of the loop "{target.loop.loop_var.name}" the block '
                f'"{realize.block.name_hint}" would read elements of "{buffer.name}" '
                "that are written in another iteration",
                [target.loop, realize],
                "choose a loop further outside, whose iterations write all that is read",
            )


def written_elsewhere(
    target: LoopPlace,
    producer: BlockPlace,
    realize: BlockRealize,
    loops: Mapping[Var, Range],
    analyzer: Analyzer,
) -> Buffer | None:
    """A buffer that a consumer reads in an iteration of a loop, some of it written in others; None
    where the producer's iterations that make what it reads all run in that iteration."""
    inner = producer.inner_loops(target.loop)
    for region in producer.block.writes:
        reads = [
            (region, relaxed(bound_ranges(realize, read), loops, analyzer))
            for read in regions_of(realize.block.reads, region.buffer)
        ]
        if reads and not _has_run(producer, reads, inner, analyzer):
            return region.buffer
    return None


def _has_run(
    producer: BlockPlace,
    reads: Sequence[tuple[BufferRegion, Box]],
    inner: Mapping[Var, Range],
    analyzer: Analyzer,
) -> bool:
    """Whether the loops `inner` run all of a producer's iterations that touch what is read."""
    if not producer.block.iter_vars:
        return _writes_in(producer, reads, inner, analyzer)
    domains = producer.block.domains
    needed = needed_iterations(reads, domains, analyzer)
    spatial = [i.var for i in producer.block.iter_vars if i.iter_type == IterType.DATA_PARALLEL]
    values = producer.realize.bindings
    points = [Range(values[var], const(1, var.dtype)) for var in spatial]
    run = estimate_region(points, inner, _cut(producer, inner), analyzer)
    if run is None:
        return False
    limits = [IntSet.from_range(domains[var]) for var in spatial]
    wanted = [
        intersect(needed.get(var, limit), limit, analyzer)
        for var, limit in zip(spatial, limits, strict=True)
    ]
    return contains(run, wanted, analyzer)


def _writes_in(
    producer: BlockPlace,
    reads: Sequence[tuple[BufferRegion, Box]],
    inner: Mapping[Var, Range],
    analyzer: Analyzer,
) -> bool:
    """Whether the loops `inner` write all that is read, for a unit that uses loops directly."""
    for region, wanted in reads:
        written = estimate_region(region.region, inner, producer.realize.predicate, analyzer)
        if written is None or not contains(written, wanted, analyzer):
            return False
    return True


def _cut(producer: BlockPlace, inner: Mapping[Var, Range]) -> PrimExpr:
    """The part of a producer's predicate that cuts off iterations of the loops `inner` whose
    iterators would be in their domains. Others nobody needs."""
    found: PrimExpr = const(True)
    analyzer = Analyzer(producer.domains_around)
    for condition in conjuncts(producer.realize.predicate):
        if uses_any(condition, inner) and not _ends_domain(condition, producer, analyzer):
            found = logical_and(found, condition)
    return found


def _ends_domain(condition: PrimExpr, place: BlockPlace, analyzer: Analyzer) -> bool:
    """Whether an iterator is behind the end of its domain wherever `a < c`, with a constant c, does
    not hold: its value is at least k * a for a constant k."""
    if not isinstance(condition, LT) or not isinstance(condition.b, IntImm):
        return False
    a, c = condition.a, condition.b.value
    for iter_var, value in zip(place.block.iter_vars, place.realize.iter_values, strict=True):
        dom = iter_var.dom
        if dom is None or not isinstance(dom.min, IntImm) or not isinstance(dom.extent, IntImm):
            continue
        end = dom.min.value + dom.extent.value
        if isinstance(value, FloorDiv) and isinstance(value.b, IntImm):
            value, end = value.a, end * value.b.value
        for k in {1, -(-end // max(c, 1))}:
            rest = analyzer.const_int_bound(analyzer.canonical(value - a * k))
            if rest.min_value + k * c >= end:
                return True
    return False


def check_all_executed(
    target: LoopPlace, producers: Sequence[BlockPlace], place: BlockPlace
) -> None:
    """Each iteration of the moved consumer reads something that a producer writes, and so runs
    under the loop."""
    shared = [
        (producer, region.buffer)
        for producer in producers
        for region in producer.block.writes
        if regions_of(place.block.reads, region.buffer)
    ]
    if shared and not any(reads_only_written(place, p, buffer) for p, buffer in shared):
        name = place.block.name_hint
        raise DataflowError(
            f'Some iterations of the block "{name}" read nothing that its producers write, and '
            f'would not run under the loop "{target.loop.loop_var.name}"',
            [place.realize, target.loop],
            "move the producer with compute_at instead",
        )


def check_reduction_order(
    target: LoopPlace, realize: BlockRealize, loops: Mapping[Var, Range]
) -> None:
    """A moved reduction adds each element once, and not in parallel.

    Where all reduction iterators run in the new loops, each time starts with the init. Where they
    are spread over the loops outside, the whole binding must be one to one.
    """
    outer = (*target.loops, target.loop)
    variables = {loop.loop_var for loop in outer}
    spread: set[Var] = set()
    for iter_var, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if iter_var.iter_type == IterType.COMM_REDUCE:
            spread |= variables_in(value) & variables
    if not spread:
        return
    parallel = [
        loop for loop in outer
        if loop.loop_var in spread and loop.kind in (ForKind.PARALLEL, ForKind.VECTORIZED)
    ]  # fmt: skip
    name = realize.block.name_hint
    if parallel:
        raise LoopError(
            f'The reduction of block "{name}" would run over the loop '
            f'"{parallel[0].loop_var.name}", whose iterations run at the same time',
            [parallel[0], realize],
            "move it under a serial loop, or bind and parallelize afterwards",
        )
    result = detect_iter_map(
        realize.iter_values, {**loop_ranges(outer), **loops}, realize.predicate, BIJECTIVE
    )
    if result.indices is None:
        raise BindingError(
            f'Under the loop "{target.loop.loop_var.name}" the block "{name}" would add some '
            "elements to its reduction more than once",
            [target.loop, realize],
            "choose a loop around the whole reduction",
        )
