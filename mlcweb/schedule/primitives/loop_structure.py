"""Transformations of the nest of loops itself: add_unit_loop, merge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, product

from mlcweb.arith import Analyzer
from mlcweb.schedule.analysis.dependences import check_stays_before
from mlcweb.schedule.analysis.scopes import Scope, scope_around
from mlcweb.schedule.analysis.units import stands_in
from mlcweb.schedule.errors import ArgumentError, DataflowError, LoopError
from mlcweb.schedule.primitives.loops import check_plain
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import BlockPlace, LoopPlace, Place, ScheduleState, shared_prefix
from mlcweb.tir.arithmetic import const
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import For, ForKind, SeqStmt, Stmt, sequence
from mlcweb.tir.substitute import substitute


@primitive("AddUnitLoop")
def add_unit_loop(state: ScheduleState, block_or_loop: Place) -> tuple[ScheduleState, Var]:
    """Put a loop of one iteration around a block or loop.

    Checked: the block is not a function's root block.

    rewrite:
        for i in range(8): ...             -->    for u, i in T.grid(1, 8): ...
    """
    place = block_or_loop
    statement = place.statement
    if not place.parents:
        raise ArgumentError(
            "The root block of a function stands in no loop, and none can be put around it",
            [statement],
            "a loop around a block inside of it, or around a loop",
        )
    var = Var("u", "int32")
    loop = For(var, const(0), const(1), ForKind.SERIAL, statement)
    return state.replaced(place.function, {statement: loop}), var


@primitive("Merge")
def merge(state: ScheduleState, *loops: Var) -> tuple[ScheduleState, Var]:
    """Run the bodies of loops of the same shape one after another in one loop.

    The loops stand side by side, or inside of loops that do and are merged with them. The merged
    loops stand where the last of them stood; their bodies run in the order given.

    Checked: there are two loops or more, in the same block scope, with the same number of loops
    around each up to the statement that they share, none of which holds anything else; at each
    level all start at 0, have the same extent and no annotation or thread binding; no iteration of
    a body comes before one of an earlier body that it depends on; the loops move past no statement
    that depends on them.

    rewrite:
        for i in range(16): ...  # B              for i_m in range(16):
        for i in range(16): ...  # C       -->        ...  # B
                                                      ...  # C
    """
    places = [state.loop(loop) for loop in loops]
    if len(set(loops)) < max(2, len(loops)):
        raise ArgumentError(
            f"Merging takes at least two different loops, not {len(set(loops))}",
            [place.loop for place in places],
            "two or more loops with the same extent",
        )
    shared, chains = _chains(state, places)
    for level in zip(*chains, strict=True):
        for loop in level:
            check_plain(state.loop(loop.loop_var))
    _check_same_extents(places, chains)
    nests = [chain[0] for chain in chains]
    units = scope_around(state, places[0])
    _check_nothing_crossed(units, shared, nests)

    names = [Var(f"{loop.loop_var.name}_m", loop.loop_var.dtype) for loop in chains[0]]
    bodies = [substitute(chain[-1].body, _renamed(chain, names)) for chain in chains]
    merged: Stmt = sequence(*bodies)
    for var, loop in zip(reversed(names), reversed(chains[0]), strict=True):
        extent = substitute(loop.extent, _renamed(chains[0], names))
        merged = For(var, loop.min, extent, ForKind.SERIAL, merged, span=loop.span)
    statements = [merged if s is nests[-1] else s for s in shared.seq if s not in nests[:-1]]
    function = places[0].function
    new = state.replaced(function, {shared: sequence(*statements)})
    _check_ready(new, units, nests, names)
    return new, names[-1]


def _renamed(chain: Sequence[For], names: Sequence[Var]) -> dict[Var, PrimExpr]:
    return {loop.loop_var: name for loop, name in zip(chain, names, strict=True)}


def _chains(
    state: ScheduleState, places: Sequence[LoopPlace]
) -> tuple[SeqStmt, list[tuple[For, ...]]]:
    """The statements that hold all loops, and the loops from there to each of them."""
    loops = [place.loop for place in places]
    if len({(p.function, state.scope_of(p).block.identity) for p in places}) > 1:
        raise LoopError(
            "The loops to merge are not in the same block scope",
            loops,
            "loops of blocks that stand in the same block",
        )
    around = [(*place.parents, place.loop) for place in places]
    depth = len(shared_prefix(around))
    chains = [statements[depth:] for statements in around]
    if len({len(chain) for chain in chains}) > 1 or not chains[0]:
        depths = ", ".join(
            f'"{loop.loop_var.name}" is {len(chain)}'
            for loop, chain in zip(loops, chains, strict=True)
        )
        raise LoopError(
            f"The loops to merge are not at the same depth: {depths} statement(s) below what holds "
            "them all",
            loops,
            "loops with as many loops around each",
        )
    shared = around[0][depth - 1]
    nests = [tuple(s for s in chain if isinstance(s, For)) for chain in chains]
    is_chain = all(
        len(kept) == len(chain) and all(a.body is b for a, b in pairwise(kept))
        for kept, chain in zip(nests, chains, strict=True)
    )
    if not isinstance(shared, SeqStmt) or not is_chain:
        raise LoopError(
            "The loops to merge are not the only statements in the loops around them",
            loops,
            "merge the loops further outside",
        )
    return shared, nests


def _check_same_extents(places: Sequence[LoopPlace], chains: Sequence[tuple[For, ...]]) -> None:
    analyzer = Analyzer(places[0].domains_around)
    for chain in chains[1:]:
        values = _renamed(chain, [loop.loop_var for loop in chains[0]])
        for first, loop in zip(chains[0], chain, strict=True):
            if not analyzer.can_prove_equal(substitute(loop.extent, values), first.extent):
                raise LoopError(
                    f'The extents of the loops to merge differ: "{first.loop_var.name}" has '
                    f'{first.extent!r}, "{loop.loop_var.name}" has {loop.extent!r}',
                    [first, loop],
                    "loops of equal extents; split the longer one first",
                )


def _check_nothing_crossed(blocks: Scope, shared: SeqStmt, nests: Sequence[For]) -> None:
    """No nest moves past a statement, or past another nest, that depends on it."""
    position = {statement: n for n, statement in enumerate(shared.seq)}
    last = position[nests[-1]]
    for nest in nests:
        low, high = sorted((position[nest], last))
        for other in shared.seq[low + 1 : high]:
            if other not in nests:
                _check_independent(blocks, nest, other)
    for first, second in combinations(nests, 2):
        if position[first] > position[second]:
            _check_independent(blocks, first, second)


def _check_independent(blocks: Scope, nest: For, other: Stmt) -> None:
    for mine in _units(blocks, nest):
        for theirs in _units(blocks, other):
            if blocks.conflicts(mine, theirs):
                raise DataflowError(
                    f'The loop "{nest.loop_var.name}" would move past the {theirs.title}, on which '
                    f"its {mine.title} depends, or the other way round",
                    [nest, theirs.statement],
                    "name the loops in the order of the program, without gaps",
                )


def _check_ready(
    state: ScheduleState, before: Scope, nests: Sequence[For], merged: Sequence[Var]
) -> None:
    """No iteration of a body comes before iterations of an earlier body that it depends on."""
    target = state.loop(merged[-1])
    chain = [loop for loop in (*target.loops, target.loop) if loop.loop_var in merged]
    units = scope_around(state, target)
    # The units of each nest now stand in the order of the nests.
    below = iter(_units(units, target.loop))
    merged_units = [[next(below) for _ in _units(before, nest)] for nest in nests]
    for earlier, later in combinations(merged_units, 2):
        for first, second in product(earlier, later):
            check_stays_before(units, first, second, chain)


def _units(blocks: Scope, statement: Stmt) -> list[BlockPlace]:
    return [unit for unit in blocks.units if stands_in(unit, statement)]
