"""Computing blocks by tensor intrinsics: tensorize."""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.schedule.arguments import IntrinName
from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.intrinsic_match import DescriptionMatch, Mismatch
from mlcweb.schedule.primitives.blockize import blockized
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range, full_region
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.stmt import Block, BlockIdentity, For, Stmt
from mlcweb.tir.tensor_intrin import TensorIntrin
from mlcweb.tir.wide_indices import WIDE, WideCopy


class IntrinsicError(ScheduleError):
    """The program does not compute what the tensor intrinsic describes."""


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
    realize = blockized(state, place, preserve_unit_iters)
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


def _refusal(block: Block, name: str, original: Stmt, mismatch: Mismatch) -> IntrinsicError:
    assert mismatch.statements is not None
    ours, described = mismatch.statements
    return IntrinsicError(
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
