"""What rules and post-processors ask about a block: its loops, and how it reads and writes.

The questions are those of TVM's MetaSchedule (Shao et al., "Tensor Program Optimization with
Probabilistic Programs", NeurIPS 2022).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mlcweb.arith import Analyzer
from mlcweb.arith.pattern import linear_in
from mlcweb.ir.visitor import find_nodes
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.products import constant_extent
from mlcweb.schedule.analysis.scopes import scope_around, why_not_reduction
from mlcweb.schedule.errors import StaleReferenceError
from mlcweb.schedule.instruction import BlockRV, LoopRV
from mlcweb.schedule.resolver import Resolver
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer, BufferRegion, compact_strides
from mlcweb.tir.expr import Add, PrimExpr, Sub, Var
from mlcweb.tir.stmt import Block, BlockRealize, For, IterType, SeqStmt
from mlcweb.tir.substitute import substitute, variables_in

TILING_STRUCTURE = "meta_schedule.tiling_structure"
"""The annotation of a block that was tiled."""

SPATIAL, REDUCTION = IterType.DATA_PARALLEL, IterType.COMM_REDUCE


def place_of(sch: Resolver, block: BlockRV) -> BlockPlace:
    """Where a block stands."""
    statement = sch.get(block)
    assert isinstance(statement, Block)
    return sch.state.block(statement.identity)


def loop_of(sch: Resolver, loop: LoopRV) -> For:
    """A loop as it is in the program."""
    statement = sch.get(loop)
    assert isinstance(statement, For)
    return statement


def has_block(sch: Resolver, block: BlockRV) -> bool:
    """Whether a block is still in the program."""
    try:
        sch.get(block)
    except StaleReferenceError:
        return False
    return True


def is_root(place: BlockPlace) -> bool:
    """Whether a block is the root block of its function."""
    return not any(isinstance(parent, Block) for parent in place.parents)


def is_spatial(block: Block) -> bool:
    """Whether all iterators of a block are spatial."""
    return all(iter_var.iter_type == SPATIAL for iter_var in block.iter_vars)


def is_in_spatial_function(sch: Resolver, place: BlockPlace) -> bool:
    """Whether no block of the function reduces."""
    func = sch.mod[place.function]
    return all(is_spatial(node) for node in find_nodes(func.body, Block))


def has_trivial_binding(place: BlockPlace) -> bool:
    """Whether the iterators of a block are its loops, one for one."""
    loops = place.loops
    values = place.realize.iter_values
    return len(loops) == len(values) and all(
        value is loop.loop_var for value, loop in zip(values, loops, strict=True)
    )


def is_single(statement: object) -> bool:
    """Whether a loop body is one statement."""
    return not isinstance(statement, SeqStmt) or len(statement.seq) == 1


def extent_of(loop: For) -> int | None:
    """The iterations of a loop; None where they are not constant."""
    value = constant_value(loop.extent)
    return None if value is None else int(value)


def axis_of(loop: For) -> str:
    """The axis that a loop is bound to; "" where it is to none."""
    return loop.thread_binding.thread_tag if loop.thread_binding is not None else ""


def is_reduction_block(state: ScheduleState, place: BlockPlace) -> bool:
    """Whether a block is a reduction block of its scope."""
    if is_root(place):
        return False
    return why_not_reduction(scope_around(state, place), place.block) is None


def producers_of(state: ScheduleState, place: BlockPlace) -> list[BlockPlace]:
    """The blocks that write what a block reads."""
    return scope_around(state, place).producers(place)


def consumers_of(state: ScheduleState, place: BlockPlace) -> list[BlockPlace]:
    """The blocks that read what a block writes."""
    return scope_around(state, place).consumers(place)


def cumulative_lengths(place: BlockPlace) -> tuple[int, int] | None:
    """The product of the extents of a block's spatial loops, and of its reduction loops; None where
    a loop is of another kind or not constant."""
    lengths = {SPATIAL: 1, REDUCTION: 1}
    for loop in place.loops:
        kind, extent = loop_type(loop), extent_of(loop)
        if kind not in lengths or extent is None:
            return None
        lengths[kind] *= extent
    return lengths[SPATIAL], lengths[REDUCTION]


def inputs_of(block: Block) -> list[tuple[int, BufferRegion]]:
    """The read regions of a block with their numbers, but for those of what it writes: programs of
    2021 and 2022 list the output of a reduction there."""
    written = {region.buffer for region in block.writes}
    return [(n, region) for n, region in enumerate(block.reads) if region.buffer not in written]


def needs_multi_level_tiling(place: BlockPlace) -> bool:
    """Whether tiling a block lets it read the same elements several times from fast memory: it
    reduces, and some spatial iterator does not choose what is read from some buffer."""
    block = place.block
    if (
        TILING_STRUCTURE in block.annotations
        or len(block.writes) != 1
        or not block.reads
        or is_spatial(block)
        or not has_trivial_binding(place)
    ):
        return False
    spatial = {
        iter_var.var
        for iter_var in block.iter_vars
        if iter_var.iter_type == SPATIAL and constant_extent(iter_var) != 1
    }
    unused = 0
    for _, region in inputs_of(block):
        if any(constant_value(dimension.extent) is None for dimension in region.region):
            return False
        used = set().union(*(variables_in(dimension.min) for dimension in region.region))
        unused += len(spatial - used)
    return unused > 0


def needs_rfactor(sch: Resolver, block: BlockRV, max_parallel: int, cores: int) -> bool:
    """Whether a reduction is so much longer than what is around it that parts of it are worth
    making side by side.

    Args:
        max_parallel: the most iterations that are run in parallel.
        cores: iterations that run in parallel at least.
    """
    place = place_of(sch, block)
    node = place.block
    if (
        not node.writes
        or TILING_STRUCTURE in node.annotations
        or not is_reduction_block(sch.state, place)
        or not has_trivial_binding(place)
    ):
        return False
    loops = place.loops
    if len(place.own_loops) < len(loops):
        return False
    lengths = cumulative_lengths(place)
    if lengths is None or not any(loop_type(loop) == REDUCTION for loop in loops):
        return False
    space, reduced = lengths
    if needs_multi_level_tiling(place):
        return space < reduced and space <= max_parallel
    return reduced > 1 and reduced > cores


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """How the indices of a read follow from those of a write, where each is one iterator, a
    constant, or an iterator and a constant: each write index is used at most once (`injective`) and
    in order (`ordered`); `shifted` where constants are added, `constant` where an index is one."""

    injective: bool
    ordered: bool
    constant: bool
    shifted: bool


def access_pattern(read: BufferRegion, write: BufferRegion) -> AccessPattern | None:
    """The pattern of a read; None where it is none."""
    positions: dict[Var, int] = {}
    for position, dimension in enumerate(write.region):
        if not isinstance(dimension.min, Var) or constant_value(dimension.extent) is None:
            return None
        positions[dimension.min] = position
    mapped: list[int] = []
    constant = shifted = False
    for dimension in read.region:
        if constant_value(dimension.extent) is None:
            return None
        if constant_value(dimension.min) is not None:
            constant = True
            continue
        var, shift = _with_shift(dimension.min)
        if not isinstance(var, Var) or var not in positions:
            return None
        mapped.append(positions[var])
        shifted = shifted or shift
    injective = all(count == 1 for count in Counter(mapped).values())
    return AccessPattern(injective, mapped == sorted(mapped), constant, shifted)


def _with_shift(index: PrimExpr) -> tuple[PrimExpr, bool]:
    if isinstance(index, (Add, Sub)) and constant_value(index.b) is not None:
        return index.a, True
    if isinstance(index, Add) and constant_value(index.a) is not None:
        return index.b, True
    return index, False


def is_write_cache(block: Block) -> bool:
    """Whether a block passes on what it reads element for element, each at its own place."""
    if len(block.writes) != 1:
        return False
    patterns = [access_pattern(read, block.writes[0]) for read in block.reads]
    return all(
        p is not None and p.injective and p.ordered and not p.constant and not p.shifted
        for p in patterns
    )


def reads_in_order(consumer: BlockPlace, buffer: Buffer) -> bool:
    """Whether a spatial block reads each element of a buffer once, at its own iterators."""
    reads = [read for read in consumer.block.reads if read.buffer is buffer]
    if not is_spatial(consumer.block) or not has_trivial_binding(consumer) or len(reads) != 1:
        return False
    iterators: Sequence[object] = [iter_var.var for iter_var in consumer.block.iter_vars]
    return [dimension.min for dimension in reads[0].region] == iterators


def coefficient(index: PrimExpr, var: Var) -> int | None:
    """By how much an index grows with a variable; None where it does not grow evenly."""
    linear = linear_in(index, var)
    number = None if linear is None else constant_value(linear[0])
    return None if number is None else int(number)


def bound_regions(realize: BlockRealize) -> list[BufferRegion]:
    """What a block reads and writes, in terms of the loops around it."""
    regions, values = (*realize.block.reads, *realize.block.writes), realize.bindings
    return [substitute(region, values) for region in regions]


def strides(region: BufferRegion, loops: Sequence[For]) -> list[int | None]:
    """By how many elements an access moves with each loop, in a buffer that lies row by row; None
    where it does not move evenly."""
    steps = _strides(region, loops, [dimension.min for dimension in region.region])
    if None in steps:
        # Only what is not even as it stands is worth simplifying.
        analyzer = Analyzer()
        simple = [analyzer.simplify(dimension.min) for dimension in region.region]
        steps = _strides(region, loops, simple)
    return steps


def shares_operands(place: BlockPlace, level: int) -> bool:
    """Whether a block reads something along its inner loops that is the same for all iterations of
    the loop at a level around it, so that several of these can load it once."""
    loops = place.loops[level:]
    moves = [strides(region, loops) for region in bound_regions(place.realize)]
    return any(steps[0] == 0 and any(steps[1:]) for steps in moves)


def _strides(
    region: BufferRegion, loops: Sequence[For], indices: Sequence[PrimExpr]
) -> list[int | None]:
    shape = [int(constant_value(extent) or 0) for extent in region.buffer.shape]
    rows = compact_strides(shape)
    moves: list[int | None] = []
    for loop in loops:
        steps = [coefficient(index, loop.loop_var) for index in indices]
        constant_steps = [step for step in steps if step is not None]
        total = sum(step * row for step, row in zip(constant_steps, rows, strict=False))
        moves.append(total if len(constant_steps) == len(steps) else None)
    return moves
