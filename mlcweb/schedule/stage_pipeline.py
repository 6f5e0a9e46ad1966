"""Stage pipelines: scopes in which each block's input is ready before the block starts.

Moving, inlining and caching blocks rests on it: no block overwrites what an earlier one reads, and
a block reads only what has been written by then (the *region cover* property of TVM).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import inf

from mlcweb.analysis.threads import thread_tag
from mlcweb.arith import (
    Analyzer,
    IntSet,
    estimate_region,
    estimate_region_upper_bound,
    intersect,
    union,
)
from mlcweb.arith.linear_system import LinearSystem, constant_ends
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.regions import bound_ranges, regions_of, relaxed
from mlcweb.schedule.scopes import Scope, is_trivially_true, loop_ranges, scope_at
from mlcweb.schedule.state import BlockPlace, ScheduleState, shared_prefix
from mlcweb.schedule.units import RawPlace
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import IntImm, PrimExpr, Var


def check_stage_pipeline(state: ScheduleState, scope: BlockPlace) -> None:
    """Raise DataflowError unless the blocks of `scope` form a stage pipeline.

    Checked: no block writes a buffer that an earlier one reads; no block is known to read elements
    that its producers, in the same loops, have not written.
    """
    # Whoever looks for a place for a block asks this of the same state for each place.
    state.cached(("stages", scope.block.identity), lambda: _check_stages(state, scope))


def _check_stages(state: ScheduleState, scope: BlockPlace) -> None:
    blocks = scope_at(state, scope)
    for buffer, writers in blocks.writers.items():
        check_not_overwritten(scope, blocks, buffer, writers, blocks.readers.get(buffer, ()))
    for reader in blocks.units:
        check_cover(scope, blocks, reader)


def check_not_overwritten(
    scope: BlockPlace,
    blocks: Scope,
    buffer: Buffer,
    writers: Iterable[BlockPlace],
    readers: Iterable[BlockPlace],
) -> None:
    """Raise DataflowError where one of `writers` comes after one of `readers` of a buffer."""
    for reader, writer in product(readers, writers):
        if isinstance(reader, RawPlace) and isinstance(writer, RawPlace):
            continue  # Nobody moves them.
        if blocks.position(writer.block) > blocks.position(reader.block):
            raise DataflowError(
                f"{_of(scope)} is not a stage pipeline: the {writer.title} overwrites "
                f'"{buffer.name}", which the {reader.title} before it reads',
                [writer.statement, reader.statement],
                "write to a buffer of its own",
            )


def check_cover(
    scope: BlockPlace, blocks: Scope, reader: BlockPlace, of: Buffer | None = None
) -> None:
    """Raise DataflowError where a block reads elements (of one buffer) that its producers do not
    write."""
    read = dict.fromkeys(region.buffer for region in reader.block.reads)
    for buffer in read if of is None else [of]:
        here = blocks.position(reader.block)
        producers = [
            writer
            for writer in blocks.writers.get(buffer, ())
            if writer.block is not reader.block
            and blocks.position(writer.block) < here
            and not _stays_before(writer, reader)
        ]
        if producers and is_uncovered(buffer, producers, reader):
            names = ", ".join(f'"{p.block.name_hint}"' for p in producers)
            raise DataflowError(
                f"{_of(scope)} is not a stage pipeline: the {reader.title} reads "
                f'elements of "{buffer.name}" that its producer {names} has not written by then '
                "(the region cover property does not hold)",
                [reader.statement, *(producer.statement for producer in producers)],
                "let the producer write all that is read",
            )


def _stays_before(writer: BlockPlace, reader: BlockPlace) -> bool:
    """Whether a statement outside of blocks has run as a whole before another unit starts: what it
    has not written then are the values from before, wherever the unit is computed later on."""
    is_raw = isinstance(writer, RawPlace) or isinstance(reader, RawPlace)
    return is_raw and not shared_prefix([writer.loops, reader.loops])


def is_uncovered(buffer: Buffer, producers: Sequence[BlockPlace], reader: BlockPlace) -> bool:
    """Whether the reader is known to read what has not been written.

    Both sides are seen from the loops that all blocks share, but for loops over threads: what one
    thread reads, another may have written. Where the written region cannot be found exactly, or the
    answer depends on a loop, nothing is known.
    """
    chains = [place.loops for place in (reader, *producers)]
    shared = shared_prefix(chains)
    threads = [loop for loop in shared if thread_tag(loop)]
    written: list[list[IntSet]] = []
    for producer, chain in zip(producers, chains[1:], strict=True):
        inner = loop_ranges([*threads, *chain[len(shared) :]])
        for region in regions_of(producer.block.writes, buffer):
            exact = estimate_region(
                bound_ranges(producer.realize, region), inner, producer.realize.predicate
            )
            if exact is None:
                return False
            written.append([IntSet.from_range(dimension) for dimension in exact])
        if any(_is_whole(item, buffer) for item in written):
            return False
    analyzer = Analyzer(loop_ranges(loop for chain in chains for loop in chain))
    limits = [IntSet.from_min_extent(extent - extent, extent) for extent in buffer.shape]
    inner = loop_ranges([*threads, *chains[0][len(shared) :]])
    around = loop_ranges([loop for loop in shared if not thread_tag(loop)])
    predicate = reader.realize.predicate
    for region in regions_of(reader.block.reads, buffer):
        sides = bound_ranges(reader.realize, region)
        read = (
            relaxed(sides, inner, analyzer)
            if is_trivially_true(predicate)
            else estimate_region_upper_bound(sides, inner, predicate, analyzer)
        )
        for n, side in enumerate(read):
            needed = intersect(side, limits[n], analyzer)
            covered = union([item[n] for item in written], analyzer)
            if _exceeds(needed, covered, analyzer) or _exceeds_once(needed, covered, around):
                return True
    return False


def _is_whole(written: Sequence[IntSet], buffer: Buffer) -> bool:
    """Whether a region is plainly all of a buffer."""
    return all(
        is_const_int(low, 0) and isinstance(high, IntImm) and is_const_int(extent, high.value + 1)
        for (low, high), extent in zip(written, buffer.shape, strict=True)
    )


def reads_only_written(reader: BlockPlace, producer: BlockPlace, buffer: Buffer) -> bool:
    """Whether all elements that a block reads of a buffer, in any of its iterations and whatever
    its conditions, are known to be written by `producer`."""
    running, predicate = producer.block.domains, const(True)
    if not running:  # A statement outside of blocks, or a block that uses its loops directly.
        running, predicate = producer.inner_loops(None), producer.realize.predicate
    written = [
        estimate_region(region.region, running, predicate)
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
    sides = [IntSet.from_range(side) if isinstance(side, Range) else side for side in part]
    return all(
        inner.min_value is not None
        and inner.max_value is not None
        and analyzer.can_prove(inner.min_value >= outer.min)
        and analyzer.can_prove(inner.max_value < outer.min + outer.extent)
        for inner, outer in zip(sides, box, strict=True)
    )


def _exceeds(inner: IntSet, outer: IntSet, analyzer: Analyzer) -> bool:
    if None in inner or None in outer:
        return False
    low: PrimExpr = inner.min_value >= outer.min_value  # type: ignore[operator]
    high: PrimExpr = inner.max_value <= outer.max_value  # type: ignore[operator]
    return analyzer.can_disprove(low) or analyzer.can_disprove(high)


def _exceeds_once(inner: IntSet, outer: IntSet, domains: Mapping[Var, Range]) -> bool:
    """Whether an interval is known to leave another one in some iteration of loops."""
    if not domains or None in inner or None in outer:
        return False
    ends = (inner.min_value, outer.min_value), (outer.max_value, inner.max_value)
    for low, high in ends:  # Inside, the first is not less than the second.
        system = LinearSystem()
        values = {var: system.variable(*constant_ends(domain)) for var, domain in domains.items()}
        difference = system.form(low, values).plus(system.form(high, values), -1)  # type: ignore[arg-type]
        system.require(difference, -inf, -1)
        found = system.solution()
        if found is not None and system.is_sure(found):
            return True
    return False


def _of(scope: BlockPlace) -> str:
    return f'The scope of block "{scope.block.name_hint}"'
