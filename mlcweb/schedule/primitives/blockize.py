"""Making blocks out of loop nests, and computing them by tensor intrinsics: blockize, tensorize."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.arith import Analyzer, IntSet, union
from mlcweb.ir.node import replace
from mlcweb.schedule.analysis.intrinsic_match import DescriptionMatch, Mismatch
from mlcweb.schedule.analysis.iteration_order import check_init_runs_first
from mlcweb.schedule.arguments import IntrinName
from mlcweb.schedule.errors import ArgumentError, BindingError, BlockKindError, LoopError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.nested_block import (
    Division,
    Nest,
    divided,
    inner_block,
    nest_at,
    outer_iterators,
)
from mlcweb.schedule.rewriting.nests import in_loops, statements_of, with_inserted
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, block_realizes_below
from mlcweb.tir.arithmetic import add, cast, const, is_const_int, subtract
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, full_region
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.stmt import Block, BlockIdentity, BlockRealize, For, IterVar, Stmt, sequence
from mlcweb.tir.tensor_intrin import TensorIntrin
from mlcweb.tir.wide_indices import WIDE, WideCopy


@primitive("Blockize")
def blockize(
    state: ScheduleState, target: Var | Sequence[BlockIdentity], preserve_unit_iters: bool = True
) -> tuple[ScheduleState, BlockIdentity]:
    """Make the nest that starts at a loop a block of its own, which touches regions of buffers.

    The iterators of the block in the nest are divided: `vi` becomes `vi_o * extent + vi_i`, where
    the new block iterates over `vi_o` and the block inside of it over `vi_i`. The init of a
    reduction moves to the new block, with loops of its own. Without `preserve_unit_iters`, an
    iterator over one value is replaced by that value.

    Checked: the nest is loops around one block, which uses the loops by its iterators alone; the
    bounds of these loops do not depend on other loops; each iterator can be divided between the
    loops outside and inside; no loop inside repeats a reduction, and an init runs in the first
    iteration of what it reduces over.

    rewrite:
        for i_0, i_1 in T.grid(4, 16):            for i_0 in range(4):
            with T.block("B"):                        with T.block("B_o"):
                vi = …(64, i_0 * 16 + i_1)    -->         vi_o = T.axis.spatial(4, i_0)
                B[vi] = …                                 for i_1 in range(16):
                                                              with T.block("B"):
                                                                  vi_i = T.axis.spatial(16, i_1)
                                                                  B[vi_o * 16 + vi_i] = …
    """
    if not isinstance(target, Var):
        return _blockize_blocks(state, target, preserve_unit_iters)
    place = state.loop(target)
    realize = blockized(place, preserve_unit_iters)
    return state.replaced(place.function, {place.loop: realize}), realize.block.identity


def blockized(place: LoopPlace, preserve_unit_iters: bool) -> BlockRealize:
    """The block that `blockize` makes of the nest that starts at a loop."""
    nest = nest_at(place.loop)
    check_init_runs_first(
        BlockPlace(place.function, nest.realize, (*place.parents, *nest.loops)),
        "bind reduction iterators to loops that begin where they do",
    )
    parts = divided(nest, place.loops, preserve_unit_iters)
    outer = outer_iterators(nest.block, parts)
    inner = inner_block(nest, parts, [iter_var.var for iter_var in outer], preserve_unit_iters)
    block = Block(
        tuple(outer),
        tuple(inner.widened(inner.block.reads)),
        tuple(inner.widened(inner.block.writes)),
        nest.block.name_hint + "_o",
        in_loops(inner.realize, nest.loops),
        inner.init,
    )
    values = tuple(iterator.outer.value for iterator in parts.iterators)
    return BlockRealize(values, parts.outer_predicate, block, span=place.loop.span)


def _blockize_blocks(
    state: ScheduleState, blocks: Sequence[BlockIdentity], preserve_unit_iters: bool
) -> tuple[ScheduleState, BlockIdentity]:
    """Make one block of several that stand one after another under a loop or in a block.

    The new block iterates over what the loops outside make of the iterators of the first block.

    Checked: for each block as by `blockize`; besides, the nests stand side by side with nothing
    between; no block has an init; what the loops outside make of the iterators is the same for all.

    rewrite:
        for i in range(64):                       for i in range(64):
            for j in range(64): (block "B")           with T.block("outer_B_C_"):
            for j in range(64): (block "C")   -->         vi_o = T.axis.spatial(64, i)
                                                          for j in range(64): (block "B")
                                                          for j in range(64): (block "C")
    """
    chosen = {state.block(block).block.identity for block in blocks}
    places = [place for block, place in state.index.blocks.items() if block in chosen]
    if not places:
        raise ArgumentError("There are no blocks to blockize", advice="pass at least one block")
    container, first, last = _side_by_side(places)
    statements = statements_of(container)
    nests = [nest_at(statement) for statement in statements[first : last + 1]]
    around = _loops_around(places[0], container)
    divisions = [divided(nest, around, preserve_unit_iters) for nest in nests]
    outer = outer_iterators(nests[0].block, divisions[0])
    for nest in nests:
        if nest.block.init is not None:
            raise BlockKindError(
                f'The block "{nest.block.name_hint}" has an init, which cannot be shared with the '
                "other blocks",
                [nest.realize],
                "decompose_reduction first",
            )
    inner = [
        inner_block(
            nest, parts, _shared_iterators(nest, parts, outer, divisions[0]), preserve_unit_iters
        )
        for nest, parts in zip(nests, divisions, strict=True)
    ]
    block = Block(
        tuple(outer),
        _united([region for part in inner for region in part.widened(part.block.reads)]),
        _united([region for part in inner for region in part.widened(part.block.writes)]),
        "outer_" + "".join(nest.block.name_hint + "_" for nest in nests),
        sequence(*(in_loops(p.realize, n.loops) for p, n in zip(inner, nests, strict=True))),
    )
    values = tuple(iterator.outer.value for iterator in divisions[0].iterators)
    realize = BlockRealize(values, divisions[0].outer_predicate, block)
    count = last + 1 - first
    state = with_inserted(state, container, first, [realize], removed=count)
    return state, block.identity


def _shared_iterators(
    nest: Nest, division: Division, outer: Sequence[IterVar], first: Division
) -> list[Var]:
    """The outer iterators that the iterators of a block stand for, which are those of the first
    block."""
    analyzer = Analyzer()
    same_predicate = analyzer.can_prove_equal(division.outer_predicate, first.outer_predicate)
    shared: list[Var] = []
    for place, iterator in enumerate(division.iterators):
        candidates = [*range(place, len(outer)), *range(place)]
        outer_var = next(
            (
                outer[n].var
                for n in candidates
                if n < len(outer) and all(
                    analyzer.can_prove_equal(a, b)
                    for a, b in zip(iterator.outer, first.iterators[n].outer, strict=True)
                )
            ),
            None,
        )  # fmt: skip
        if outer_var is None or not same_predicate:
            raise BindingError(
                f'The block "{nest.block.name_hint}" does not run over the same outer iterations '
                "as the first of the blocks",
                [nest.realize],
                "bring the blocks under the same loops, bound in the same way",
            )
        shared.append(outer_var)
    return shared


def _side_by_side(places: Sequence[BlockPlace]) -> tuple[For | Block, int, int]:
    """The innermost loop or block around all places, and which of its statements, from the first
    to the last, are the nests of the places."""
    shared = [s for s in places[0].parents if all(s in place.parents for place in places)]
    container = next((s for s in reversed(shared) if isinstance(s, (For, Block))), None)
    realizes = [place.realize for place in places]
    if container is None:
        raise LoopError(
            "The blocks are not in one function, below its root block",
            realizes,
            "blocks of one function, other than its root block",
        )
    positions = []
    for number, statement in enumerate(statements_of(container)):
        below = list(block_realizes_below(statement))
        if any(statement in (*place.parents, place.realize) for place in places):
            positions.append(number)
            if not all(realize in realizes for realize in below):
                break
    else:
        if len(positions) == len(places) == positions[-1] - positions[0] + 1:
            return container, positions[0], positions[-1]
    raise LoopError(
        "The blocks do not stand side by side: "
        + ", ".join(f'"{place.block.name_hint}"' for place in places)
        + " must have nests of their own, one after another in one loop or block",
        realizes,
        "neighbouring blocks of one sequence of statements",
    )


def _loops_around(place: BlockPlace, container: For | Block) -> tuple[For, ...]:
    if isinstance(container, Block):
        return ()
    loops = place.loops
    return loops[: loops.index(container) + 1]


def _united(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
    """One region for each buffer, which holds all that are of it; in the order and with the
    unsimplified extents of TVM, which has the buffer that comes last first."""
    analyzer = Analyzer()
    boxes: dict[Buffer, list[list[IntSet]]] = {}
    for region in regions:
        boxes.setdefault(region.buffer, []).append([_interval(side) for side in region.region])
    return tuple(
        BufferRegion(
            buffer, tuple(_range(union(sides, analyzer)) for sides in zip(*box, strict=True))
        )
        for buffer, box in reversed(boxes.items())
    )


def _interval(side: Range) -> IntSet:
    if is_const_int(side.extent, 1):
        return IntSet.point(side.min)
    return IntSet(side.min, subtract(add(side.extent, side.min), const(1, side.min.dtype)))


def _range(values: IntSet) -> Range:
    low, high = values
    assert low is not None and high is not None
    return Range(low, subtract(add(high, const(1, high.dtype)), low))


@primitive("Tensorize")
def tensorize(
    state: ScheduleState,
    block_or_loop: Var | BlockIdentity,
    tensor_intrin: IntrinName,
    preserve_unit_iters: bool = True,
) -> ScheduleState:
    """Compute a block, or the nest at a loop, by a registered tensor intrinsic.

    The block's body becomes that of the implementation, whose buffers view the regions that the
    block reads and writes. Its init stays. The nest at a loop first becomes a block (see
    `blockize`).

    Checked: the block's body is the description's, statement by statement, but for names and for
    where the regions start.

    rewrite:
        with T.block("matmul_o"):                     with T.block("matmul_o"):
            T.reads(A[vi * 16:vi * 16 + 16], …)           T.reads(A[vi * 16:vi * 16 + 16], …)
            for i, j, k in T.grid(16, 16, 16):   -->      A_1 = T.match_buffer(A[…], (16, 16))
                with T.block("matmul"): …                 T.call_extern("int32", "tmm16", …)
    """
    if isinstance(block_or_loop, BlockIdentity):
        place = state.block(block_or_loop)
        new = _tensorized(place.block, tensor_intrin, place.realize)
        return state.replaced(place.function, {place.block: new})
    place = state.loop(block_or_loop)
    realize = blockized(place, preserve_unit_iters)
    new = _tensorized(realize.block, tensor_intrin, place.loop)
    return state.replaced(place.function, {place.loop: replace(realize, block=new)})


def _tensorized(block: Block, name: str, original: Stmt) -> Block:
    intrinsic = TensorIntrin.get(name)
    assert intrinsic is not None
    try:
        match = DescriptionMatch(block, intrinsic.described_block)
    except Mismatch as mismatch:
        raise _refusal(block, name, original, mismatch) from None
    copy = _copier(match, intrinsic)
    implementation = copy.block(intrinsic.implemented_block)
    views = []
    for described, buffer in zip(
        intrinsic.described_buffers, intrinsic.implemented_buffers, strict=True
    ):
        viewed = match.buffers[described]
        region = _viewed_region(viewed, match.starts[viewed], buffer, intrinsic.implemented_block)
        views.append(MatchBufferRegion(copy.buffer(buffer), region))
    return replace(
        block,
        body=implementation.body,
        match_buffers=tuple(views),
        alloc_buffers=implementation.alloc_buffers,
        annotations={**block.annotations, **implementation.annotations},
    )


def _copier(match: DescriptionMatch, intrinsic: TensorIntrin) -> FreshCopy:
    """Copies the implementation, with indices as wide as the program's."""
    starts = (start for region in match.starts.values() for start in region)
    if any(start.dtype == WIDE for start in starts):
        return WideCopy(intrinsic.implemented_block, intrinsic.implemented_buffers)
    return FreshCopy()


def _viewed_region(
    viewed: Buffer, start: list[PrimExpr], buffer: Buffer, implementation: Block
) -> BufferRegion:
    """The region of the program's buffer that a buffer of the implementation views: as much of it
    as the implementation declares to touch."""
    declared = (*implementation.reads, *implementation.writes)
    touched = next((r for r in declared if r.buffer is buffer), full_region(buffer))
    leading = viewed.ndim - buffer.ndim
    extents = [const(1)] * leading + [side.extent for side in touched.region]
    return BufferRegion(
        viewed,
        tuple(
            Range(low, cast(low.dtype, extent)) for low, extent in zip(start, extents, strict=True)
        ),
    )


def _refusal(block: Block, name: str, original: Stmt, mismatch: Mismatch) -> BlockKindError:
    assert mismatch.statements is not None
    ours, described = mismatch.statements
    return BlockKindError(
        f'The block "{block.name_hint}" does not compute what the tensor intrinsic "{name}" '
        f"describes: {mismatch.reason}\n"
        f"  in the program:      {_first_line(ours)}\n"
        f"  in the description:  {_first_line(described)}",
        [original] if isinstance(original, For) else [ours, original],
        "bring loops, iterators, operands, types and storage scopes into the description's form; "
        "a reduction that the description adds to its output is decomposed first",
    )


def _first_line(statement: Stmt) -> str:
    if isinstance(statement, Block):
        return f'with T.block("{statement.name_hint}"):'
    return repr(statement).strip().splitlines()[0]
