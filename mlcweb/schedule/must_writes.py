"""What a block is known to write: elements that it stores to whatever its conditions.

T.writes says what a block may write. A copy that takes the place of a buffer for a while may be
copied back only where it has been written, or it would put what happens to be in it over values
that the program keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mlcweb.analysis.access_regions import element_region
from mlcweb.arith import Analyzer, IntSet, conjuncts, estimate_region, same_expression
from mlcweb.arith.iter_predicate import uses_any
from mlcweb.ir.visitor import walk
from mlcweb.schedule.iteration_domain import executed_domains
from mlcweb.schedule.regions import (
    bindings,
    domains_around,
    domains_of,
    iterator_domains,
    loops_between,
    regions_of,
)
from mlcweb.schedule.scopes import is_trivially_true
from mlcweb.schedule.stage_pipeline import contains
from mlcweb.schedule.state import BlockPlace, executed_substatements
from mlcweb.schedule.units import guards
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt, Stmt, While
from mlcweb.tir.substitute import substitute

Box = Sequence[Range]


@dataclass(frozen=True, slots=True)
class _Context:
    """What is around a statement in a block: loops, conditions of blocks, values of variables."""

    domains: Mapping[Var, Range]
    predicate: PrimExpr
    values: Mapping[Var, PrimExpr]


def is_local(scope: BlockPlace, buffer: Buffer) -> bool:
    """Whether a scope allocates a buffer: elements that its only writer leaves out hold nothing."""
    return buffer in scope.block.alloc_buffers


def must_write(place: BlockPlace, buffer: Buffer, outer: For | None, box: Sequence[IntSet]) -> bool:
    """Whether a block is known to write all elements of a box of a buffer in each iteration of the
    loop `outer` (None: in each run of its scope)."""
    if guards(place, outer):
        return False
    analyzer = Analyzer(domains_around(place))
    return any(contains(part, box, analyzer) for part in _written(place, buffer, outer))


def must_write_each_time(place: BlockPlace, buffer: Buffer) -> bool:
    """Whether each iteration of a block's loops writes all that it declares to write of a buffer,
    but for those that its predicate leaves out."""
    regions = regions_of(place.block.writes, buffer)
    return not guards(place) and all(_writes_region(place.block, region) for region in regions)


def runs_whole_domain(place: BlockPlace) -> bool:
    """Whether the loops around a block run its iterators through their whole domains."""
    domains = iterator_domains(place.block)
    points = [Range(value, const(1, value.dtype)) for value in place.realize.iter_values]
    box = estimate_region(points, loops_between(place, None), place.realize.predicate)
    if box is None or is_trivially_true(place.realize.predicate):
        return box is not None and _is_same(box, tuple(domains.values()))
    executed = executed_domains(place)
    return executed is not None and all(executed[v] is domain for v, domain in domains.items())


def _is_same(one: Box, other: Box) -> bool:
    equal = Analyzer().can_prove_equal
    return all(
        equal(a.min, b.min) and equal(a.extent, b.extent) for a, b in zip(one, other, strict=True)
    )


def _written(place: BlockPlace, buffer: Buffer, outer: For | None) -> Iterator[Box]:
    """Boxes that a block writes, seen from inside of a loop."""
    realize, inner = place.realize, loops_between(place, outer)
    bound = bindings(realize)
    for region in regions_of(place.block.writes, buffer):
        if not _writes_region(place.block, region):
            continue
        if outer is None and runs_whole_domain(place):
            yield from _boxes(region, iterator_domains(place.block), const(True))
        yield from _boxes(substitute(region, bound), inner, realize.predicate)
    found = list(_stores(place.block, buffer))
    for region, context in found:
        predicate = logical_and(realize.predicate, substitute(context.predicate, bound))
        domains = {**inner, **substituted_domains(context.domains, bound)}
        yield from _boxes(substitute(region, bound), domains, predicate)


def substituted_domains(
    domains: Mapping[Var, Range], values: Mapping[Var, PrimExpr]
) -> dict[Var, Range]:
    return {var: substitute(domain, values) for var, domain in domains.items()}


def _boxes(
    region: BufferRegion, domains: Mapping[Var, Range], predicate: PrimExpr
) -> Iterator[Box]:
    # What a predicate says of other variables than those that move is not looked at below.
    moving = {var for var, domain in domains.items() if not is_const_int(domain.extent, 1)}
    proves = Analyzer(dict(domains)).can_prove
    if all(uses_any(c, moving) or is_trivially_true(c) or proves(c) for c in conjuncts(predicate)):
        exact = estimate_region(region.region, domains, predicate)
        if exact is not None:
            yield exact


@lru_cache(maxsize=1024)
def _writes_region(block: Block, region: BufferRegion) -> bool:
    """Whether each iteration of a block writes all of a region that it declares to write. What a
    block writes through an address or a view, or by a call, it is trusted to declare exactly."""
    buffer = region.buffer
    if not any(isinstance(node, BufferStore) and node.buffer is buffer for node in walk(block)):
        return True
    declared = [IntSet.from_range(side) for side in region.region]
    analyzer = Analyzer(iterator_domains(block))
    parts = [
        box
        for stored, context in _stores(block, buffer)
        for box in _boxes(stored, context.domains, context.predicate)
    ]
    return any(contains(part, declared, analyzer) for part in _merged(parts, analyzer))


def _merged(parts: list[Box], analyzer: Analyzer) -> list[Box]:
    """The parts, and those that neighbouring parts are together."""
    merged: list[Box] = []
    for part in parts:
        for n, known in enumerate(merged):
            both = _together(known, part, analyzer)
            if both is not None:
                merged[n] = both
                break
        else:
            merged.append(part)
    return merged if len(merged) in (1, len(parts)) else _merged(merged, analyzer)


def _together(one: Box, other: Box, analyzer: Analyzer) -> Box | None:
    """Two boxes as one, where they differ in one dimension, in which they touch."""
    equal = analyzer.can_prove_equal
    different = [
        n
        for n, (a, b) in enumerate(zip(one, other, strict=True))
        if not (equal(a.min, b.min) and equal(a.extent, b.extent))
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


def _stores(block: Block, buffer: Buffer) -> Iterator[tuple[BufferRegion, _Context]]:
    """The stores to a buffer that run in each iteration of a block, or before the first one."""
    for part in (block.init, block.body):
        if part is not None:
            yield from _stores_in(part, buffer, _Context({}, const(True), {}))


def _stores_in(
    statement: Stmt, buffer: Buffer, context: _Context
) -> Iterator[tuple[BufferRegion, _Context]]:
    if isinstance(statement, BufferStore):
        if statement.buffer is buffer:
            region = element_region(buffer, statement.indices)
            yield substitute(region, context.values), context
        return
    if isinstance(statement, While):
        return
    if isinstance(statement, IfThenElse):
        yield from _stores_in_both(statement, buffer, context)
        return
    if isinstance(statement, BlockRealize):
        yield from _stores_in_block(statement, buffer, context)
        return
    if isinstance(statement, For):
        own = substituted_domains(domains_of(statement), context.values)
        context = replace(context, domains={**context.domains, **own})
    elif isinstance(statement, LetStmt):
        value = substitute(statement.value, context.values)
        context = replace(context, values={**context.values, statement.var: value})
    for below in executed_substatements(statement):
        yield from _stores_in(below, buffer, context)


def _stores_in_both(
    branch: IfThenElse, buffer: Buffer, context: _Context
) -> Iterator[tuple[BufferRegion, _Context]]:
    """The stores in one branch that the other branch does as well."""
    if branch.else_case is None:
        return
    others = list(_stores_in(branch.else_case, buffer, context))
    for region, inside in _stores_in(branch.then_case, buffer, context):
        if any(
            all(same_expression(a.min, b.min) for a, b in zip(region.region, o.region, strict=True))
            and there.domains == inside.domains
            for o, there in others
        ):
            yield region, inside


def _stores_in_block(
    realize: BlockRealize, buffer: Buffer, context: _Context
) -> Iterator[tuple[BufferRegion, _Context]]:
    block = realize.block
    bound = {var: substitute(v, context.values) for var, v in bindings(realize).items()}
    predicate = substitute(realize.predicate, context.values)
    inside = _Context(
        context.domains,
        logical_and(context.predicate, predicate),
        {**context.values, **bound},
    )
    if any(isinstance(node, BufferStore) and node.buffer is buffer for node in walk(block)):
        for part in (block.init, block.body):
            if part is not None:
                yield from _stores_in(part, buffer, inside)
        return
    for region in regions_of(block.writes, buffer):
        yield substitute(region, inside.values), inside
