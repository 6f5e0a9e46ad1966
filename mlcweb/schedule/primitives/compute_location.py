"""Moving a block to where its result is used, or to where its input is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlcweb.analysis.effects import may_fail
from mlcweb.arith import Analyzer, IntSet, conjuncts, union
from mlcweb.arith.region import estimate_region
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.analysis.effects import check_own_threads
from mlcweb.schedule.analysis.iteration_domain import (
    IteratorDomain,
    domains_and_condition,
    executed_domains,
    limited,
    needed_iterations,
)
from mlcweb.schedule.analysis.regions import (
    and_unproved,
    known_sides,
    regions_of,
    threads_sharing,
    touched,
)
from mlcweb.schedule.analysis.reverse_compute_at_checks import (
    check_all_executed,
    check_reduction_order,
    check_written_before,
)
from mlcweb.schedule.analysis.scopes import (
    Scope,
    check_binds_loops,
    check_complete_or_reduction,
    check_not_output,
    loop_ranges,
    scope_at,
    short_title,
)
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.analysis.units import check_same_guards, check_within_guards, stands_in
from mlcweb.schedule.errors import ArgumentError, BindingError, DataflowError, LoopError
from mlcweb.schedule.instruction import Location, SpecialLocation
from mlcweb.schedule.primitives.inline import compute_inline, reverse_compute_inline
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nests import loop_nest, statements_of
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.dtype import bits
from mlcweb.tir.expr import FloorDiv, FloorMod, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, Stmt, sequence
from mlcweb.tir.substitute import substitute

LAST, FIRST = -1, -2
"""Values of `index`: as late, or as early, in the loop as dependences allow."""


@primitive("ComputeAt")
def compute_at(
    state: ScheduleState,
    block: BlockIdentity,
    loop: Location,
    preserve_unit_loops: bool = False,
    index: int = LAST,
) -> ScheduleState:
    """Move a producer under a loop of its consumers, where it makes just what they need there.

    Its loops are replaced by new ones over the region that the consumers read in one iteration of
    `loop`; with `preserve_unit_loops` also where that is a single element. `index` says where in
    the loop's body the block goes: -1 as late as possible, -2 as early as possible, or a position.
    A location of `sample_compute_location` may also be none: the block stays, or is inlined.

    Checked: block and loop are in one scope, which is a stage pipeline; the loop is not around the
    block; the block is complete or a reduction, and not an output; all consumers are under the
    loop, and the producers before it or above the consumers in it; where its predicate cannot be
    kept, the block fails in no iteration that this leaves out.

    rewrite:
        for i, j in T.grid(16, 16): (block "B")         for i in range(16):
        for i, j in T.grid(16, 16): (block "C")  -->        for ax0 in range(16): (block "B")
                                                            for j in range(16): (block "C")
    """
    if isinstance(loop, SpecialLocation):
        return state if loop is SpecialLocation.ROOT else compute_inline(state, block)
    move = _planned(state, block, loop, is_producer=True)
    return _moved(state, move, index, preserve_unit_loops)


@primitive("ReverseComputeAt")
def reverse_compute_at(
    state: ScheduleState,
    block: BlockIdentity,
    loop: Location,
    preserve_unit_loops: bool = False,
    index: int = LAST,
) -> ScheduleState:
    """Move a consumer under a loop of its producers, where it uses just what they have made there.

    Its loops are replaced by new ones over the region that the producers write in one iteration of
    `loop`. `preserve_unit_loops` and `index` are as in `compute_at`.

    Checked: block and loop are in one scope, which is a stage pipeline; the loop is not around the
    block; the block is complete or a reduction; all producers are under the loop; in one iteration
    they have written all that the block then reads; all iterations together run through the
    block's whole domain; a reduction is neither repeated in parts nor run in parallel.

    rewrite:
        for i, j in T.grid(16, 16): (block "B")         for i in range(16):
        for i, j in T.grid(16, 16): (block "C")  -->        for j in range(16): (block "B")
                                                            for ax0 in range(16): (block "C")
    """
    if isinstance(loop, SpecialLocation):
        return state if loop is SpecialLocation.ROOT else reverse_compute_inline(state, block)
    move = _planned(state, block, loop, is_producer=False)
    return _moved(state, move, index, preserve_unit_loops)


@dataclass(frozen=True, slots=True)
class _Move:
    """A block, the loop it goes to, its siblings, and those of them that make what it reads and
    that read what it makes."""

    place: BlockPlace
    target: LoopPlace
    is_producer: bool
    blocks: Scope
    producers: list[BlockPlace]
    consumers: list[BlockPlace]

    @property
    def partners(self) -> list[BlockPlace]:
        """Those whose accesses under the loop decide how much of the block runs there."""
        return self.consumers if self.is_producer else self.producers

    def is_outside(self, unit: BlockPlace) -> bool:
        return not stands_in(unit, self.target.loop)

    def check_all_under(self) -> None:
        outside = list(filter(self.is_outside, self.partners))
        if outside:
            role = "consumer" if self.is_producer else "producer"
            names = ", ".join(map(short_title, outside))
            raise DataflowError(
                f"The primitive requires all the {role}(s) of the {self.place.title} to be under "
                f'the loop "{self.target.loop.loop_var.name}"; not there: {names}',
                [self.target.loop, *(partner.statement for partner in outside)],
                f"choose a loop around all {role}s, or move them there first",
            )

    def check_order(self) -> None:
        """Producers outside of the loop must come before it, consumers after it."""
        position = self.blocks.position
        under = [n for n, unit in enumerate(self.blocks.units) if not self.is_outside(unit)]
        if not under:
            return
        producers = filter(self.is_outside, self.producers)
        late = [unit for unit in producers if position(unit.block) > under[0]]
        consumers = filter(self.is_outside, self.consumers)
        early = [unit for unit in consumers if position(unit.block) < under[-1]]
        for other in (*late, *early):
            when = "before its producer" if late else "after its consumer"
            raise DataflowError(
                f'Under the loop "{self.target.loop.loop_var.name}" the {self.place.title} would '
                f"run {when} {short_title(other)}",
                [self.target.loop, other.statement],
                "another loop, or index=-2 (before the other statements) or -1 (after them)",
            )

    def position(self, index: int) -> int:
        """Where in the loop's body the block is inserted."""
        loop = self.target.loop
        statements = statements_of(loop)
        last_producer, first_consumer = -1, len(statements)
        for position, statement in enumerate(statements):
            if any(stands_in(producer, statement) for producer in self.producers):
                last_producer = position
            if any(stands_in(consumer, statement) for consumer in self.consumers):
                first_consumer = min(first_consumer, position)
        if last_producer >= first_consumer:
            raise DataflowError(
                f'There is no place for the {self.place.title} in the loop "{loop.loop_var.name}": '
                "one statement holds a producer and a consumer of it",
                [statements[first_consumer]],
                "choose a loop further inside, or further outside",
            )
        if index not in (LAST, FIRST) and not last_producer < index <= first_consumer:
            raise ArgumentError(
                f'The index {index} is not a valid position in the loop "{loop.loop_var.name}": '
                "the block must come after its producers and before its consumers",
                [loop],
                f"{last_producer + 1} to {first_consumer}, -1 (the last) or -2 (the first)",
            )
        return {LAST: first_consumer, FIRST: last_producer + 1}.get(index, index)


def _planned(state: ScheduleState, block: BlockIdentity, loop: Var, is_producer: bool) -> _Move:
    place, target = state.block(block), state.loop(loop)
    scope = state.scope_of(place)
    check_stage_pipeline(state, scope)
    check_complete_or_reduction(state, place)
    _check_same_scope(state, place, target)
    check_binds_loops(place, [p for p in place.loops if p not in target.parents])
    if is_producer:
        check_within_guards(place, target, f'would run without it under the loop "{loop.name}"')
        check_not_output(state, place, "move its producers, or cache_write first")
    else:
        check_same_guards(place, target, f'would not run as often under the loop "{loop.name}"')
    blocks = scope_at(state, scope)
    blocks.check_links(place)
    sides = blocks.producers(place), blocks.consumers(place)
    move = _Move(place, target, is_producer, blocks, *sides)
    for partner in move.partners:
        check_own_threads(place, *((place, partner) if is_producer else (partner, place)))
    move.check_all_under()
    move.check_order()
    return move


def _check_same_scope(state: ScheduleState, place: BlockPlace, target: LoopPlace) -> None:
    name, loop = place.block.name_hint, target.loop.loop_var.name
    scopes = [state.scope_of(here).block.identity for here in (place, target)]
    if place.function != target.function or scopes[0] is not scopes[1]:
        raise LoopError(
            f'The block "{name}" and the loop "{loop}" are not in the same block scope',
            [place.realize, target.loop],
            "choose a loop directly inside of the block that is around both",
        )
    if any(parent is target.loop for parent in place.parents):
        raise LoopError(
            f'The loop "{loop}" is already an ancestor of block "{name}"',
            [place.realize, target.loop],
            "a loop of another block, or reorder within the nest",
        )


def _moved(
    state: ScheduleState, move: _Move, index: int, preserve_unit_loops: bool
) -> ScheduleState:
    place, target, position = move.place, move.target, move.position(index)
    analyzer = target.analyzer_inside()
    required = _required_regions(move, analyzer)
    own = place.block.writes if move.is_producer else place.block.reads
    accesses = [(region, required[region.buffer]) for region in own if region.buffer in required]
    executed, condition = _executed(move)
    solution = needed_iterations(accesses, executed, analyzer)
    iterators = limited(solution, executed, analyzer)
    nest, realize, loops = _nest(place, target, iterators, condition, preserve_unit_loops, analyzer)
    if not move.is_producer:
        check_written_before(target, move.partners, realize, loops, analyzer)
        check_all_executed(target, move.partners, place)
        check_reduction_order(target, realize, loops)
    statements = list(statements_of(target.loop))
    statements.insert(position, nest)
    new_loop = replace(target.loop, body=sequence(*statements))
    return state.replaced(place.function, {place.realize: None, target.loop: new_loop})


def _executed(move: _Move) -> tuple[dict[Var, Range], PrimExpr]:
    """The iterations that the block may run: domains of its iterators, and a condition on them.

    A producer may run any of its domain in which it cannot fail, as nobody reads what it did not
    make before; a consumer, and a reduction, must keep its predicate.
    """
    executed = executed_domains(move.place)
    if executed is not None:
        return executed, const(True)
    block, reason = move.place.block, ""
    if move.is_producer:
        if block.init is None and not may_fail(block):
            return block.domains, const(True)
        if (part := domains_and_condition(move.place)) is not None:
            return part
        if block.init is None:
            reason = ", and others may divide by zero or read what is not there"
    raise BindingError(
        f"The loops and the predicate of {move.place.title} do not run through all combinations of "
        f"some values of its iterators{reason}, and nothing says which ones would run when it is "
        "moved",
        [move.place.realize],
        "move the block before its loops are split or fused",
    )


def _required_regions(move: _Move, analyzer: Analyzer) -> dict[Buffer, list[IntSet]]:
    """What the partners access of the block's buffers in one iteration of the loop."""
    own = move.place.block.writes if move.is_producer else move.place.block.reads
    by_buffer: dict[Buffer, list[list[IntSet]]] = {}
    for buffer in dict.fromkeys(region.buffer for region in own):
        for partner in move.partners:
            inner = partner.inner_loops(move.target.loop)
            if move.is_producer:
                shared = threads_sharing(partner, move.target.loop, buffer.scope())
                inner = {**shared, **inner}
            block = partner.block
            for region in regions_of(block.reads if move.is_producer else block.writes, buffer):
                box = touched(partner.realize, region, inner, analyzer)
                box = known_sides(box, partner, move.target.loop, move.blocks)
                by_buffer.setdefault(buffer, []).append(box)
    return {
        buffer: [union(sides, analyzer) for sides in zip(*boxes, strict=True)]
        for buffer, boxes in by_buffer.items()
    }


def _nest(
    place: BlockPlace,
    target: LoopPlace,
    iterators: dict[Var, IteratorDomain],
    condition: PrimExpr,
    preserve_unit_loops: bool,
    analyzer: Analyzer,
) -> tuple[Stmt, BlockRealize, dict[Var, Range]]:
    """The new loops with the block in them, which runs where `condition` holds of its iterators;
    also the block's realize and the loops' domains.

    The new loops become known to the analyzer.
    """
    loops: dict[Var, Range] = {}
    around = loop_ranges((*target.loops, target.loop))
    values: list[PrimExpr] = []
    predicate: PrimExpr = const(True)
    for iter_var in place.block.iter_vars:
        iterator = iterators[iter_var.var]
        domain = iterator.values.cover_range(iter_var.domain, analyzer)
        value = domain.min
        if preserve_unit_loops or not is_const_int(domain.extent, 1):
            width = max(bits(domain.min.dtype), bits(domain.extent.dtype))
            loop_var = Var(f"ax{len(loops)}", f"int{width}")
            extent = analyzer.simplify(domain.extent)
            loops[loop_var] = Range(const(0, loop_var.dtype), extent)
            analyzer.bind(loop_var, loops[loop_var])
            value = domain.min + loop_var
        values.append(value)
        if iterator.limits is not None and not _is_digit_in(
            value, iterator.limits, {**around, **loops}, analyzer
        ):
            predicate = and_unproved(predicate, _within(value, iterator.limits), analyzer)
    bound = dict(zip((axis.var for axis in place.block.iter_vars), values, strict=True))
    predicate = and_unproved(predicate, conjuncts(substitute(condition, bound)), analyzer)
    realize = replace(
        place.realize, iter_values=tuple(values), predicate=analyzer.simplify(predicate)
    )
    nest = loop_nest(list(loops), [domain.extent for domain in loops.values()], realize)
    return nest, realize, loops


def _is_digit_in(
    value: PrimExpr, limits: IntSet, around: Mapping[Var, Range], analyzer: Analyzer
) -> bool:
    """Whether `value` is a digit of a loop around, as x // n and x % n are of the loop over x in
    [0, m * n), and the digit is in `limits`. That n is positive where the loop runs is known of its
    digits alone."""
    if not any(isinstance(node, (FloorDiv, FloorMod)) for node in walk(value)):
        return False
    digit = estimate_region([Range(value, const(1, value.dtype))], around)
    return digit is not None and all(
        analyzer.can_prove(bound) for bound in _within_all(digit[0], limits)
    )


def _within_all(values: Range, limits: IntSet) -> Iterator[PrimExpr]:
    """That all of `values` are in `limits`; there may be none, by a symbolic extent."""
    if limits.min_value is not None:
        yield values.min >= limits.min_value
    if limits.max_value is not None:
        yield values.min + values.extent <= limits.max_value + 1


def _within(value: PrimExpr, limits: IntSet) -> Iterator[PrimExpr]:
    """That `value` is in `limits`."""
    if limits.min_value is not None:
        yield value >= limits.min_value
    if limits.max_value is not None:
        yield value < limits.max_value + 1
