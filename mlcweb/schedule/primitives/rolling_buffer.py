"""Keeping only the part of a buffer that is still needed, in a ring: rolling_buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlcweb.analysis.access_regions import with_access_regions
from mlcweb.arith import Analyzer, conjuncts
from mlcweb.arith.iter_map import detect_iter_map
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import rewrite_nodes
from mlcweb.schedule.accessed_buffer import accessed_buffer
from mlcweb.schedule.analysis.regions import bound_ranges, regions_of, relaxed, use_of_memory
from mlcweb.schedule.analysis.scopes import check_not_output, only_writer, scope_at
from mlcweb.schedule.analysis.stage_pipeline import check_stage_pipeline
from mlcweb.schedule.analysis.units import check_all_blocks, check_unguarded
from mlcweb.schedule.arguments import WriteBuffer
from mlcweb.schedule.errors import DataflowError, LoopError
from mlcweb.schedule.primitives.storage import allocating_block
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, shared_prefix
from mlcweb.tir.arithmetic import const, floormod, is_const_int, logical_and, logical_or
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import GE, GT, LE, LT, BufferLoad, FloorDiv, IntImm, Mul, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, BufferStore, ForKind, IterType, Stmt
from mlcweb.tir.substitute import uses, uses_any


@primitive("RollingBuffer")
def rolling_buffer(
    state: ScheduleState, block: BlockIdentity, write_buffer_index: WriteBuffer
) -> ScheduleState:
    """Fold a buffer to the part that an iteration of the loops around its users needs, and compute
    in each iteration only the elements that the one before has not left there.

    The outermost loop that moves through a dimension in steps smaller than what an iteration needs
    is the one to roll: the buffer becomes a ring in that dimension. In other dimensions with such
    an overlap, computed elements are kept as well.

    Checked: the block is not an output block; a block allocates the buffer and the block is its
    only writer; all accesses stand in a common loop, and the scope is a stage pipeline; a
    dimension overlaps in that way, and all of them start at a multiple of one loop; the loops that
    overlap run in order from 0, and none of them moves through two dimensions; an iteration of the
    block writes one element there; an iteration of these loops writes all elements of the window
    that it needs, so that the predicate says of the block's iterators alone where they end.

    rewrite:
        B = T.alloc_buffer((18,))                       B = T.alloc_buffer((6,))
        for i in range(4):                              for i in range(4):
            for ax in range(6):                             for ax in range(6):
                (block "B") B[4 * i + ax] = …     -->          (block "B") T.where(i < 1 or 2 <= ax)
                                                                            B[… % 6] = …
            for k in range(4):                              for k in range(4):
                (block "C") … B[4 * i + k + 2]                  (block "C") … B[(4 * i + k + 2) % 6]
    """
    place = state.block(block)
    scope = state.scope_of(place)
    buffer = accessed_buffer(place, write_buffer_index, "write")
    check_not_output(state, place, "roll an intermediate buffer, which T.alloc_buffer makes")
    owner = allocating_block(place, buffer)
    check_stage_pipeline(state, scope)
    users = _users(state, scope, place, buffer)
    check_all_blocks(users, buffer, "would not use the ring")
    outer = _common_loop(state, users, place, buffer)
    check_unguarded(place, None, "an iteration may not find what the one before has left")
    steps = _steps(place, buffer, outer)
    rolled = _rolled(place, buffer, steps, outer)
    _check_in_order(place, buffer, steps, outer)
    _check_whole_windows(place, buffer, steps, outer)
    shape = list(buffer.shape)
    shape[rolled.dimension] = rolled.extent
    small = replace(buffer, shape=tuple(shape))
    changes: dict[Stmt, Stmt | None] = {}
    for user in users:
        predicate = user.realize.predicate
        if user.block is place.block:
            for fresh in _not_yet_computed(place, buffer, steps):
                predicate = logical_and(predicate, fresh)
        changes[user.realize] = _folded(user.realize, predicate, buffer, small, rolled)
    state = state.replaced(place.function, changes)
    changed = state.block(owner.identity)
    buffers = tuple(small if b is buffer else b for b in changed.block.alloc_buffers)
    return state.with_fields(changed, alloc_buffers=buffers)


@dataclass(frozen=True, slots=True)
class _Step:
    """How what an iteration needs of a dimension moves with a loop: it starts at `start`, which is
    0 where the loop starts, and `overlap` elements of it stem from the iteration before."""

    dimension: int
    start: PrimExpr
    extent: PrimExpr
    loop: Var
    overlap: int


def _users(
    state: ScheduleState, scope: BlockPlace, place: BlockPlace, buffer: Buffer
) -> list[BlockPlace]:
    """The blocks that access the buffer; the first one makes it."""
    blocks = scope_at(state, scope)
    only_writer(blocks.writers_of(buffer), buffer)
    readers = [r for r in blocks.readers_of(buffer) if r.block is not place.block]
    for reader in (place, *readers):
        if use_of_memory(reader.block, buffer) is not None:
            raise DataflowError(
                f'The {reader.title} uses the address of "{buffer.name}", whose elements would no '
                "longer lie in order",
                [reader.realize],
                "rolling_buffer before tensorize",
            )
    return [place, *readers]


def _common_loop(
    state: ScheduleState, users: Sequence[BlockPlace], place: BlockPlace, buffer: Buffer
) -> LoopPlace:
    """The innermost loop around all blocks that access the buffer."""
    shared = shared_prefix([user.loops for user in users])
    if len(users) == 1 or not shared:
        raise LoopError(
            f'The accesses of "{buffer.name}", which {place.title} writes, do not stand in a '
            "common loop",
            [user.realize for user in users],
            "bring the block into a loop of its consumer with compute_at",
        )
    return state.loop(shared[-1].loop_var)


def _steps(place: BlockPlace, buffer: Buffer, outer: LoopPlace) -> list[_Step]:
    """The dimensions that move with a loop, in order."""
    analyzer = outer.analyzer_inside()
    inner = place.inner_loops(outer.loop)
    box = relaxed(_written(place, buffer), inner, analyzer)
    loops = {loop.loop_var for loop in (*outer.loops, outer.loop)}
    steps = []
    for n, (low, high) in enumerate(box):
        if low is None or high is None:
            continue
        start = analyzer.simplify(low)
        extent = analyzer.simplify(high + 1 - start)
        parts = _loop_and_stride(start)
        if parts is None or parts[0] not in loops or not isinstance(extent, IntImm):
            continue
        loop, stride = parts
        steps.append(_Step(n, start, extent, loop, max(extent.value - stride, 0)))
    return steps


def _written(place: BlockPlace, buffer: Buffer) -> tuple[Range, ...]:
    """What an iteration of the block writes of the buffer, in terms of the loops around."""
    return bound_ranges(place.realize, regions_of(place.block.writes, buffer)[0])


def _loop_and_stride(start: PrimExpr) -> tuple[Var, int] | None:
    """The loop and the constant by which it is multiplied in `i`, `i * c` or `i * c // d`; with a
    division, the most by which the result grows."""
    divisor = 1
    if isinstance(start, FloorDiv) and isinstance(start.b, IntImm):
        start, divisor = start.a, start.b.value
    stride = 1
    if isinstance(start, Mul) and isinstance(start.b, IntImm):
        start, stride = start.a, start.b.value
    if not isinstance(start, Var) or stride <= 0 or divisor <= 0:
        return None
    return start, -(-stride // divisor)


def _rolled(place: BlockPlace, buffer: Buffer, steps: Sequence[_Step], outer: LoopPlace) -> _Step:
    for loop in (*outer.loops, outer.loop):
        for step in steps:
            if step.loop is loop.loop_var and step.overlap > 0:
                return step
    raise LoopError(
        f'No dimension of "{buffer.name}" moves with a loop in steps that are smaller than what an '
        "iteration needs of it, so that there is nothing to keep",
        [place.realize, outer.loop],
        "compute_at of a block whose consumer reads a neighbourhood, as in a stencil",
    )


def _check_in_order(
    place: BlockPlace, buffer: Buffer, steps: Sequence[_Step], outer: LoopPlace
) -> None:
    """Raise LoopError unless an iteration finds what the one before has left."""
    overlapping = [step for step in steps if step.overlap > 0]
    for loop in (*outer.loops, outer.loop):
        name = loop.loop_var.name
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise LoopError(
                f'The iterations of the loop "{name}" run at once, and would all use the same ring',
                [loop, place.realize],
                "a serial loop",
            )
        moved = [step for step in overlapping if step.loop is loop.loop_var]
        if not moved:
            continue
        if not isinstance(loop.min, IntImm) or loop.min.value != 0:
            raise LoopError(
                f'The loop "{name}" does not start at 0, where everything is computed',
                [loop, place.realize],
                "a loop that starts at 0",
            )
        region = _written(place, buffer)
        if not is_const_int(region[moved[0].dimension].extent, 1):
            raise LoopError(
                f"An iteration of {place.title} writes several elements along dimension "
                f'{moved[0].dimension} of "{buffer.name}", of which some may be new and others '
                "computed already",
                [loop, place.realize],
                "a block that writes one element at a time",
            )
        others = [n for n, side in enumerate(region) if uses(side.min, loop.loop_var)]
        if others != [moved[0].dimension]:
            raise LoopError(
                f'The loop "{name}" moves through several dimensions of the buffer at once, so '
                "that an iteration does not find all of what it needs in the one before",
                [loop, place.realize],
                "a loop that moves through one dimension",
            )


def _check_whole_windows(
    place: BlockPlace, buffer: Buffer, steps: Sequence[_Step], outer: LoopPlace
) -> None:
    """Raise LoopError unless an iteration of the loops that overlap writes its window without gaps,
    but for elements that no iteration writes."""
    name = place.block.name_hint
    inner = place.inner_loops(outer.loop)
    overlapping = [step for step in steps if step.overlap > 0]
    moving = {*inner, *(step.loop for step in overlapping)}
    analyzer = Analyzer()
    for condition in conjuncts(place.realize.predicate):
        if not _is_of_iterators(condition, place, moving, analyzer):
            raise LoopError(
                f'The predicate of block "{name}" asks for {condition!r}, which cuts the window '
                f'that an iteration writes of "{buffer.name}" rather than what all of them write',
                [place.realize],
                "rolling_buffer before a split that does not divide the extent",
            )
    region = _written(place, buffer)
    sums = detect_iter_map([side.min for side in region], inner).indices
    if sums is None or any(
        not is_const_int(scale, 1)
        for step in overlapping
        for scale in sums[step.dimension].terms.values()
    ):
        raise LoopError(
            f'An iteration of the loops around block "{name}" leaves out elements in the window '
            f'that it writes of "{buffer.name}", which the next one would take to be computed',
            [place.realize],
            "a block whose iterators are bound to a loop each, as compute_at makes them",
        )


def _is_of_iterators(
    condition: PrimExpr, place: BlockPlace, moving: set[Var], analyzer: Analyzer
) -> bool:
    """Whether a condition compares a block iterator with what stays the same while the variables
    in `moving` change, or uses none of these."""
    if not uses_any(condition, moving):
        return True
    if not isinstance(condition, (LT, LE, GT, GE)):
        return False
    difference = condition.a - condition.b
    return any(
        not uses_any(analyzer.simplify(rest), moving)
        for value in place.realize.iter_values
        for rest in (difference - value, difference + value)
    )


def _not_yet_computed(place: BlockPlace, buffer: Buffer, steps: Sequence[_Step]) -> list[PrimExpr]:
    """The conditions that an element was not computed in an earlier iteration."""
    element = _written(place, buffer)
    analyzer = Analyzer()
    conditions = []
    for step in steps:
        if step.overlap > 0:
            offset = element[step.dimension].min - step.start
            fresh = analyzer.simplify(offset >= step.overlap)
            conditions.append(analyzer.simplify(logical_or(step.loop < 1, fresh)))
    return conditions


def _folded(
    realize: BlockRealize, predicate: PrimExpr, old: Buffer, new: Buffer, rolled: _Step
) -> BlockRealize:
    """The realize of a block that uses the ring `new`, whose dimension is indexed modulo its
    extent, under a predicate. Iterators that move with the rolled loop become opaque: nothing may
    change their order."""
    at, extent = rolled.dimension, rolled.extent

    def changed(node: Any) -> Any:
        if node.buffer is not old:
            return node
        if isinstance(node, BufferRegion):  # Of a block inside; below it is found anew.
            whole = Range(const(0, extent.dtype), extent)
            region = (*node.region[:at], whole, *node.region[at + 1 :])
            return replace(node, buffer=new, region=region)
        index = floormod(node.indices[at], extent)
        indices = (*node.indices[:at], index, *node.indices[at + 1 :])
        return replace(node, buffer=new, indices=indices)

    block = rewrite_nodes(realize.block, (BufferLoad, BufferStore, BufferRegion), changed)
    iter_vars = tuple(
        replace(iter_var, iter_type=IterType.OPAQUE) if uses(value, rolled.loop) else iter_var
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True)
    )
    block = with_access_regions(replace(block, iter_vars=iter_vars))
    return replace(realize, predicate=predicate, block=block)
