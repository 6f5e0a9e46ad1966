"""Cutting a loop into loops that run one after another: loop_partition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from mlcweb.analysis import block_access_regions
from mlcweb.arith import Analyzer, eval_range, eval_set
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import rewrite_nodes, walk
from mlcweb.schedule.analysis.regions import regions_of
from mlcweb.schedule.analysis.scopes import driven_iterators
from mlcweb.schedule.arguments import Factors
from mlcweb.schedule.errors import FactorError, LoopError
from mlcweb.schedule.primitives.loops import check_factors, check_unannotated
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nests import only_block_below
from mlcweb.schedule.state import (
    LoopPlace,
    ScheduleState,
    domains_of,
    substatements,
    with_substatements,
)
from mlcweb.tir.arithmetic import const, constant_value, is_const_int
from mlcweb.tir.buffer import BufferRegion, Range
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.stmt import Block, BlockRealize, For, ForKind, IterType, IterVar, Stmt, sequence
from mlcweb.tir.substitute import substitute, uses


@primitive("LoopPartition", title="loop_partition")
def loop_partition(
    state: ScheduleState, loop: Var, factors: Factors, preserve_unit_iters: bool = True
) -> tuple[ScheduleState, list[Var]]:
    """Cut a loop into loops that run one after another, each with a copy of the body.

    `factors` are the extents of the parts; one may be None (inferred). Without None, a last part
    takes the iterations that remain. Each part stands in a block of its own, and all of them in
    one block, so that the parts can be found and scheduled by name. These blocks declare no
    accesses; the schedule looks into them where it matters. Bindings stay as they are, so that
    `preserve_unit_iters` has nothing to change.

    Checked: the loop has constant bounds and no annotation or thread binding; at most one factor is
    None, the others are positive constants that leave an iteration over; the loop holds a single
    block, which may hold others; it drives no reduction iterator of a block in it with an init,
    which would run again in each part.

    rewrite:
        for i in range(16):                             (block "C_i_common")
            (block "C") C[vi] = A[vi]              -->      (block "C_i0_partition")
                                                                for i0 in range(4): (block "C_i0")
                                                            (block "C_i1_partition")
                                                                for i1 in range(4, 16): …
    """
    place = state.loop(loop)
    cuts = _cuts(place, factors)
    advice = "partition the loops of each block before compute_at brings them together"
    realize = only_block_below(state, place, advice).realize
    _check_inits(place)
    prefix = f"{realize.block.name_hint}_{loop.name}"
    variables: list[Var] = []
    parts: list[Stmt] = []
    for n, (low, high) in enumerate(pairwise(cuts)):
        variable = Var(f"{loop.name}{n}", loop.dtype)
        variables.append(variable)
        domain = Range(const(low, loop.dtype), const(high - low, loop.dtype))
        part = _part(place, variable, domain, f"{prefix}{n}")
        parts.append(_in_block(f"{prefix}{n}_partition", part))
    together = _in_block(f"{prefix}_common", sequence(*parts))
    return state.replaced(place.function, {place.loop: together}), variables


def _cuts(place: LoopPlace, factors: Sequence[PrimExpr | int | None]) -> list[int]:
    """Where the parts start, and the end of the last one."""
    loop = place.loop
    name = loop.loop_var.name
    check_unannotated(loop)
    if not isinstance(loop.min, IntImm) or not isinstance(loop.extent, IntImm):
        raise LoopError(
            f'The bounds of the loop "{name}" are not constant',
            [loop],
            "split it by a constant factor, and partition the inner loop",
        )
    extents = [None if f is None else constant_value(f) for f in factors]
    unknown = [n for n, extent in enumerate(extents) if extent is None or extent == -1]
    sizes = [int(extent) for n, extent in enumerate(extents) if n not in unknown]  # type: ignore[arg-type]
    check_factors(loop, sizes, unknown)
    total = sum(sizes)
    if not sizes or total >= loop.extent.value:
        raise FactorError(
            f'The sum {total} of the factors for loop "{name}" leaves no further part: '
            + ("there is no factor" if not sizes else f"the extent is {loop.extent.value}"),
            [loop],
            f"positive factors with a sum below {loop.extent.value}; what remains is the last part",
        )
    rest = loop.extent.value - total
    if unknown:
        sizes.insert(unknown[0], rest)
    else:
        sizes.append(rest)
    return list(accumulate(sizes, initial=loop.min.value))


def _check_inits(place: LoopPlace) -> None:
    loop = place.loop.loop_var
    for realize in walk(place.loop.body):
        if not isinstance(realize, BlockRealize) or realize.block.init is None:
            continue
        driven = driven_iterators(realize, loop)
        reduced = [v for v, t in driven.items() if t != IterType.DATA_PARALLEL]
        if reduced:
            raise LoopError(
                f'The loop "{loop.name}" drives the reduction iterator "{reduced[0].name}" of '
                f'block "{realize.block.name_hint}", whose init would run again in each part and '
                "drop what the parts before have added",
                [place.loop, realize],
                "decompose_reduction first, or partition a loop of spatial iterators",
            )


def _part(place: LoopPlace, variable: Var, domain: Range, name: str) -> Stmt:
    """The loop over a part of the iterations, with a copy of the body."""
    old = place.loop
    body = fresh_statement(substitute(old.body, {old.loop_var: variable}))
    body = rewrite_nodes(
        body, Block, lambda block: replace(block, name_hint=f"{block.name_hint}_{variable.name}")
    )
    loop = For(variable, domain.min, domain.extent, ForKind.SERIAL, body, span=old.span)
    return _narrowed(loop, variable, name, {**place.domains_around, variable: domain})


def _narrowed(statement: Stmt, loop: Var, name: str | None, domains: dict[Var, Range]) -> Stmt:
    """The statement with its block under another name, and the iterators and regions of this one,
    and of those inside of it that the loop drives, limited to what it drives them through."""
    if isinstance(statement, BlockRealize):
        block = statement.block
        if name is not None or any(uses(value, loop) for value in statement.iter_values):
            block = _narrowed_block(statement, loop, name or block.name_hint, domains)
        body = _narrowed(block.body, loop, None, {**domains, **block.domains})
        return replace(statement, block=replace(block, body=body))
    inside = {**domains, **domains_of(statement)}
    changes = {below: _narrowed(below, loop, name, inside) for below in substatements(statement)}
    return with_substatements(statement, changes)


def _narrowed_block(
    realize: BlockRealize, loop: Var, name: str, domains: dict[Var, Range]
) -> Block:
    block = realize.block
    analyzer = Analyzer(domains)
    values = realize.bindings
    iter_vars = tuple(
        replace(iter_var, dom=_limits(values[iter_var.var], iter_var, domains, analyzer))
        if uses(values[iter_var.var], loop)
        else iter_var
        for iter_var in block.iter_vars
    )
    limits = {iter_var.var: iter_var.domain for iter_var in iter_vars}
    accessed = block_access_regions(block)
    return replace(
        block,
        iter_vars=iter_vars,
        reads=tuple(_whole(_found(region, accessed.reads), limits) for region in block.reads),
        writes=tuple(_whole(_found(region, accessed.writes), limits) for region in block.writes),
        name_hint=name,
    )


def _found(declared: BufferRegion, accessed: Sequence[BufferRegion]) -> BufferRegion:
    """What the body of a block accesses of a buffer; what is declared, where the body does not
    tell. (The declared region of a part covers all of its iterations.)"""
    same = regions_of(accessed, declared.buffer)
    return same[0] if same else declared


def _limits(
    value: PrimExpr, iter_var: IterVar, domains: dict[Var, Range], analyzer: Analyzer
) -> Range:
    """The values that an iterator takes, of its domain."""
    low, high = eval_set(value, domains, analyzer)
    dom = iter_var.domain
    if low is None or high is None:
        return dom
    low, end = analyzer.simplify(low), analyzer.simplify(high + 1)
    if not isinstance(low, IntImm) or not isinstance(end, IntImm):
        return dom
    if isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm):
        low = const(max(low.value, dom.min.value), low.dtype)
        end = const(min(end.value, dom.min.value + dom.extent.value), end.dtype)
    return Range(low, analyzer.simplify(end - low))


def _whole(region: BufferRegion, limits: dict[Var, Range]) -> BufferRegion:
    """A region, where each side starts at an iterator, for all values of the iterators."""
    analyzer = Analyzer()
    if not all(side.min in limits for side in region.region):
        return region

    def covered(side: Range) -> Range:
        assert isinstance(side.min, Var)
        if is_const_int(side.extent, 1):
            return limits[side.min]
        low, high = eval_range(side, limits, analyzer)
        if low is None or high is None or uses(low, side.min) or uses(high, side.min):
            return side
        return Range(analyzer.simplify(low), analyzer.simplify(high + 1 - low))

    return replace(region, region=tuple(covered(side) for side in region.region))


def _in_block(name: str, body: Stmt) -> BlockRealize:
    """A block without iterators or declared accesses."""
    return BlockRealize((), const(True), Block((), (), (), name, body))
