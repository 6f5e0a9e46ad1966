"""Taking a reduction apart so that its parts can run in parallel: rfactor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.arith import Analyzer
from mlcweb.arith.analyzer import conjunction, conjuncts
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes
from mlcweb.schedule.analysis.iteration_order import check_init_runs_first
from mlcweb.schedule.analysis.reducers import Reduction, Values, reduction_of
from mlcweb.schedule.analysis.scopes import (
    check_binds_loops,
    check_reduction,
    driven_iterators,
    runs_one_to_one,
)
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.errors import BindingError, FactorError, LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nests import (
    copy_of,
    in_fresh_loops,
    in_loops,
    only_block_below,
    with_allocated,
)
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import (
    Block,
    BlockIdentity,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IterType,
    IterVar,
    LetStmt,
    SeqStmt,
    Stmt,
    sequence,
)  # fmt: skip
from mlcweb.tir.substitute import substitute, uses, uses_any, variables_in


@primitive("RFactor")
def rfactor(
    state: ScheduleState, loop: Var, factor_axis: int
) -> tuple[ScheduleState, BlockIdentity]:
    """Give every iteration of a reduction loop a result of its own, which the block then reduces.

    A new block, before the old one, computes the parts into a buffer with one more dimension at
    `factor_axis`; negative ones count from the end. Its identity is the second result. Where other
    blocks stand in the outer loops, the old block stays there, and so does the new one, unless the
    old one is the first in them: then the new one has loops of its own.

    Checked: `factor_axis` is in range; from the outermost reduction loop on there is nothing but
    loops and the block, and the scope is a stage pipeline; the block is a reduction with a
    commutative reducer; the loop is serial, starts at 0 and drives reduction iterators only, and no
    loop drives both kinds; no loop inside of the reduction repeats it; the predicate lets every
    part start with its init.

    rewrite:
        for i, k in T.grid(8, 64):             for i, k in T.grid(8, 64):
            with T.block("B"): ...                 with T.block("B_rf"):
                B[vi] = B[vi] + A[vi, vk]              B_rf[vk, vi] = A[vi, vk]
                                        -->    for i, k in T.grid(8, 64):
                                                   with T.block("B"): ...
                                                       B[vi] = B[vi] + B_rf[vk, vi]
    """
    target = state.loop(loop)
    place = only_block_below(state, target, "move the other blocks out of the loop first")
    loops = place.loops
    scope = state.scope_of(place)
    check_stage_pipeline(state, scope)
    reduction = _reduction(state, place)
    _check_loop(target.loop)
    axis = _axis(place, reduction, factor_axis)
    _check_loops(place, target, loops)
    own = _own_loops(state, place, target, loops)
    check_binds_loops(place, own)
    _check_parts_start(state, place, target, loops)

    partials = {buffer: _partial(buffer, axis, target.loop) for buffer in reduction.buffers}
    parts = _parts(place, target.loop, loops, reduction, partials, axis)
    total = _total(place, target.loop, reduction, partials, axis)
    kept = [loop for loop in own if loop is target.loop or not _is_reduction_loop(place, loop)]
    rest = in_loops(total, kept)
    if _is_first_below(state, place, loops[0]):
        state = state.replaced(place.function, {own[0]: rest})
        outermost = state.loop(loops[0].loop_var).loop
        both = sequence(in_fresh_loops(parts, loops), outermost)
        state = state.replaced(place.function, {outermost: both})
    else:
        both = sequence(in_fresh_loops(parts, own), rest)
        state = state.replaced(place.function, {own[0]: both})
    return with_allocated(state, scope, *partials.values()), parts.block.identity


def _reduction(state: ScheduleState, place: BlockPlace) -> Reduction:
    """What a reduction block computes: first its form is checked, then what else is around it."""
    reduction = None if place.block.init is None else reduction_of(place)
    advice = "rfactor takes a block with T.init, before decompose_reduction"
    check_reduction(state, place, advice)
    assert reduction is not None
    return reduction


def _check_loop(loop: For) -> None:
    if loop.kind != ForKind.SERIAL:
        raise LoopError(
            f'The loop "{loop.loop_var.name}" is {loop.kind.name.lower()}; only a serial loop can '
            "be factored out",
            [loop],
            "rfactor first, then annotate the loops of the new block",
        )
    if not is_const_int(loop.min, 0):
        raise LoopError(
            f'The loop "{loop.loop_var.name}" starts at {loop.min!r}, not at 0, so the parts '
            "would not fill a buffer from its start",
            [loop],
            "a loop that starts at 0",
        )


def _axis(place: BlockPlace, reduction: Reduction, factor_axis: int) -> int:
    buffer = reduction.buffers[0]
    rank = buffer.ndim
    if not -rank - 1 <= factor_axis <= rank:
        raise FactorError(
            f'The write buffer "{buffer.name}" has {rank} dimension(s), so factor_axis must be in '
            f"[{-rank - 1}, {rank}], not {factor_axis}",
            [place.realize],
            "a factor_axis within these limits; -1 puts the new dimension last",
        )
    return factor_axis % (rank + 1)


def _is_reduction_loop(place: BlockPlace, loop: For) -> bool:
    return IterType.COMM_REDUCE in driven_iterators(place.realize, loop.loop_var).values()


def _check_loops(place: BlockPlace, target: LoopPlace, loops: Sequence[For]) -> None:
    """What the loops around the block drive: spatial or reduction iterators, or nothing."""
    name = place.block.name_hint
    variables = {loop.loop_var for loop in loops}
    reducing: For | None = None
    for loop in loops:
        driven = set(driven_iterators(place.realize, loop.loop_var).values())
        what = f'The loop "{loop.loop_var.name}"'
        if len(driven) > 1:
            raise LoopError(
                f'{what} drives both spatial and reduction iterators of block "{name}"',
                [loop, place.realize],
                "fuse spatial and reduction loops separately",
            )
        if loop is target.loop and IterType.DATA_PARALLEL in driven:
            raise LoopError(
                f'{what} drives a spatial iterator of block "{name}"; only a reduction loop can be '
                "factored out",
                [loop, place.realize],
                "one of the loops that drive reduction iterators alone",
            )
        repeats = not driven and not is_const_int(loop.extent, 1)
        if repeats and (loop is target.loop or reducing is not None):
            raise LoopError(
                f'{what} drives no iterator of block "{name}": it would repeat parts of the '
                "reduction",
                [loop, place.realize],
                "one of the loops that drive reduction iterators",
            )
        if IterType.COMM_REDUCE in driven:
            reducing = reducing or loop
            if variables_in(loop.min, loop.extent) & variables:
                raise LoopError(
                    f"{what} has a domain that depends on another loop, so the parts would not "
                    "fill a buffer",
                    [loop],
                    "a loop with a constant extent",
                )


def _own_loops(
    state: ScheduleState, place: BlockPlace, target: LoopPlace, loops: Sequence[For]
) -> Sequence[For]:
    """The loops that hold nothing but each other and the block: all of its reduction loops are."""
    own = place.own_loops
    for loop in loops[: len(loops) - len(own)]:
        if loop is target.loop or _is_reduction_loop(place, loop):
            below = state.child_blocks(state.loop(loop.loop_var))
            raise LoopError(
                f'The reduction loop "{loop.loop_var.name}" holds more than the loops around the '
                f"{place.title}",
                [loop, *(p.realize for p in below if p.block is not place.block)],
                "move the other blocks to loops of their own first",
            )
    return own


def _is_first_below(state: ScheduleState, place: BlockPlace, loop: For) -> bool:
    """Whether a block is the first of several in a loop, runs unconditionally there, and reads
    nothing that the others write: then its parts may all be computed before."""
    outermost = state.loop(loop.loop_var)
    around = place.parents[len(outermost.parents) :]
    first, *others = state.child_blocks(outermost)
    if first.block is not place.block or not others:
        return False
    read = {region.buffer for region in place.block.reads}
    written = {region.buffer for other in others for region in other.block.writes}
    return not read & written and all(isinstance(p, (For, SeqStmt)) for p in around)


def _check_parts_start(
    state: ScheduleState, place: BlockPlace, target: LoopPlace, loops: Sequence[For]
) -> None:
    """The whole reduction starts in the first iteration of its loops, and so does each part: what
    the predicate says of reduction loops holds there, and leaves out no part."""
    if not runs_one_to_one(state, place, loops):
        raise BindingError(
            f"The iterators of {place.title} do not run through their domains one to one with its "
            "loops",
            [place.realize],
            "bind every iterator to a sum of scaled loop variables that covers its domain",
        )
    start = check_init_runs_first(place, "rfactor before spatial and reduction loops are fused")
    predicate = place.realize.predicate
    shared = conjunction(c for c in conjuncts(predicate) if uses_any(c, start))
    start.pop(target.loop.loop_var, None)
    if Analyzer(place.domains_around).can_prove(substitute(shared, start)):
        return
    raise BindingError(
        f"The predicate {predicate!r} of {place.title} leaves some parts of the reduction over "
        f'"{target.loop.loop_var.name}" without their init',
        [place.realize, target.loop],
        "split the reduction loop evenly, or factor out the inner loop of the split",
    )


def _partial(buffer: Buffer, axis: int, loop: For) -> Buffer:
    """The buffer of the parts: as `buffer`, with a dimension for the iterations of the loop."""
    shape = (*buffer.shape[:axis], loop.extent, *buffer.shape[axis:])
    partial = copy_of(buffer, buffer.scope(), shape, buffer.name + "_rf")
    return replace(partial, axis_separators=())


def _new_iterator(loop: For, iter_type: IterType) -> IterVar:
    var = Var(f"v{loop.loop_var.name}", loop.loop_var.dtype)
    return IterVar(loop.domain, var, iter_type)


def _parts(
    place: BlockPlace,
    factored: For,
    loops: Sequence[For],
    reduction: Reduction,
    partials: Mapping[Buffer, Buffer],
    axis: int,
) -> BlockRealize:
    """The block that computes the parts: the factored loop drives a spatial iterator. Reduction
    iterators that it took part in are given up for one iterator per loop."""
    old, realize = place.block, place.realize
    by_loop = {factored.loop_var: _new_iterator(factored, IterType.DATA_PARALLEL)}
    bound: dict[IterVar, PrimExpr] = {by_loop[factored.loop_var]: factored.loop_var}
    values: dict[Var, PrimExpr] = {}
    domains = {loop.loop_var: loop for loop in loops}
    for iter_var, binding in realize.iterators:
        if iter_var.iter_type == IterType.DATA_PARALLEL or not uses(binding, factored.loop_var):
            values[iter_var.var] = var = Var(iter_var.var.name, iter_var.var.dtype)
            bound[replace(iter_var, var=var)] = binding
            continue
        for loop_var in find_nodes(binding, Var):
            if loop_var in domains and loop_var not in by_loop:
                by_loop[loop_var] = _new_iterator(domains[loop_var], IterType.COMM_REDUCE)
                bound[by_loop[loop_var]] = loop_var
        iterators = {loop_var: iterator.var for loop_var, iterator in by_loop.items()}
        values[iter_var.var] = substitute(binding, iterators)

    point = by_loop[factored.loop_var].var
    indices = tuple(substitute(index, values) for index in reduction.indices)
    indices = (*indices[:axis], point, *indices[axis:])
    contributions = [substitute(value, values) for value in reduction.contributions]
    is_reduction = any(i.iter_type == IterType.COMM_REDUCE for i in bound)
    buffers = list(partials.values())
    block = Block(
        tuple(bound),
        tuple(substitute(r, values) for r in old.reads if r.buffer not in partials),
        tuple(_with_dimension(substitute(r, values), partials, axis, point) for r in old.writes),
        f"{old.name_hint}_rf",
        _update(reduction, buffers, indices, contributions)
        if is_reduction
        else _stores(buffers, indices, contributions),
        _stores(buffers, indices, reduction.identity) if is_reduction else None,
        annotations=old.annotations,
        span=old.span,
    )
    return BlockRealize(tuple(bound.values()), realize.predicate, block, span=realize.span)


def _total(
    place: BlockPlace,
    factored: For,
    reduction: Reduction,
    partials: Mapping[Buffer, Buffer],
    axis: int,
) -> BlockRealize:
    """The old block, which now reduces the parts over the factored loop."""
    old, realize = place.block, place.realize
    iterator = _new_iterator(factored, IterType.COMM_REDUCE)
    bound: dict[IterVar, PrimExpr] = {iterator: factored.loop_var}
    for iter_var, binding in realize.iterators:
        if iter_var.iter_type == IterType.DATA_PARALLEL:
            bound[iter_var] = binding
    indices = (*reduction.indices[:axis], iterator.var, *reduction.indices[axis:])
    contributions = [BufferLoad(partials[buffer], indices) for buffer in reduction.buffers]
    writes = sorted(old.writes, key=lambda region: reduction.buffers.index(region.buffer))
    block = replace(
        old,
        iter_vars=tuple(bound),
        reads=tuple(_with_dimension(r, partials, axis, iterator.var) for r in writes),
        writes=tuple(writes),
        body=_update(reduction, reduction.buffers, reduction.indices, contributions),
        init=_stores(reduction.buffers, reduction.indices, reduction.identity),
    )
    reducing = {loop.loop_var for loop in place.loops if _is_reduction_loop(place, loop)}
    predicate = conjunction(c for c in conjuncts(realize.predicate) if not uses_any(c, reducing))
    return replace(realize, iter_values=tuple(bound.values()), predicate=predicate, block=block)


def _with_dimension(
    region: BufferRegion, partials: Mapping[Buffer, Buffer], axis: int, point: Var
) -> BufferRegion:
    """The region of the parts that belongs to a region of the total, of one part."""
    part = Range(point, const(1, point.dtype))
    ranges = (*region.region[:axis], part, *region.region[axis:])
    return BufferRegion(partials[region.buffer], ranges)


def _update(
    reduction: Reduction,
    buffers: Sequence[Buffer],
    indices: tuple[PrimExpr, ...],
    contributions: Values,
) -> Stmt:
    """Combine the contributions into `buffers`; several values are named before they are stored."""
    accumulators = [BufferLoad(buffer, indices) for buffer in buffers]
    combined = reduction.reducer.combine(accumulators, contributions)
    if len(buffers) == 1:
        return _stores(buffers, indices, combined)
    names = [Var(f"v_{buffer.name}", buffer.dtype) for buffer in buffers]
    body = _stores(buffers, indices, names)
    for name, value in zip(reversed(names), reversed(combined), strict=True):
        body = LetStmt(name, value, body)
    return body


def _stores(buffers: Sequence[Buffer], indices: tuple[PrimExpr, ...], values: Values) -> Stmt:
    pairs = zip(buffers, values, strict=True)
    return sequence(*(BufferStore(buffer, value, indices) for buffer, value in pairs))
