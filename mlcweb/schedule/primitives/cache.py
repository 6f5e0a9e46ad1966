"""Cache stages: reading, writing or updating a buffer through a copy in another storage scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

from mlcweb.analysis.access_regions import covering
from mlcweb.analysis.effects import reads_old_elements
from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import rewrite_nodes
from mlcweb.schedule.accessed_buffer import accessed_buffer
from mlcweb.schedule.analysis.effects import contains, is_local, must_write
from mlcweb.schedule.analysis.iteration_order import check_init_runs_first
from mlcweb.schedule.analysis.regions import (
    access_guard,
    accessed,
    bound_ranges,
    known_sides,
    regions_of,
    relaxed,
)
from mlcweb.schedule.analysis.scopes import Scope, only_writer, scope_around, scope_at
from mlcweb.schedule.analysis.stage_pipeline import check_cover, check_not_overwritten
from mlcweb.schedule.analysis.units import stands_in
from mlcweb.schedule.arguments import ReadBuffer, StorageScope, WriteBuffer
from mlcweb.schedule.errors import BlockKindError, DataflowError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import Redirection
from mlcweb.schedule.rewriting.locations import StageLocation, location_after
from mlcweb.schedule.rewriting.nests import copy_of, copy_stage, with_allocated, with_stages
from mlcweb.schedule.state import BlockPlace, ScheduleState, block_realizes_below
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, full_region
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BlockRealize, ForKind, Stmt, sequence
from mlcweb.tir.substitute import substitute


@primitive("CacheRead")
def cache_read(
    state: ScheduleState,
    block: BlockIdentity,
    read_buffer_index: ReadBuffer,
    storage_scope: StorageScope,
    consumer_blocks: Sequence[BlockIdentity] | None = None,
) -> tuple[ScheduleState, BlockIdentity]:
    """Copy a buffer that a block reads into `storage_scope`, and let its readers read the copy.

    The readers are all blocks of the scope, or `consumer_blocks` where these are given. The copy is
    made by a new block: before everything else where no block of the scope writes the buffer before
    they read it, else before the first reader after its producer.

    Checked: the block reads such a buffer; the storage scope exists; one block at most writes the
    buffer before the readers, and all that they read of it; others that write it stand in later
    loops than all of the readers.

    rewrite:
                                                        for ax0 in range(16): (block "A_local")
        for i in range(16):                        -->  for i in range(16):
            (block "C") C[vi] = A[vi]                       (block "C") C[vi] = A_local[vi]
    """
    place = state.block(block)
    scope = state.scope_of(place)
    buffer = accessed_buffer(place, read_buffer_index, "read")
    blocks = scope_at(state, scope)
    users = _scope_children(state, scope, consumer_blocks or ()) or blocks.readers_of(buffer)
    writers = [w for w in blocks.writers_of(buffer) if not _follows(blocks, w, users)]
    writer = only_writer(writers, buffer)
    readers = [reader for reader in users if writer is None or reader.block is not writer.block]
    check_not_overwritten(scope, blocks, buffer, writers, readers)
    for reader in readers:
        check_cover(scope, blocks, reader, buffer)
    if writer is None:
        location = StageLocation(scope.block, 0)
        # What the scope's block says it reads, or, where it does not say, the whole buffer.
        declared = regions_of(scope.block.reads, buffer)
        region = (declared[0] if declared else full_region(buffer)).region
    else:
        location = location_after(state, scope, writer, readers)
        region = _touched_region(writer, blocks, buffer, location)
        loops = writer.inner_loops(None)
        if not all(_reads_inside(reader, buffer, location, region, loops) for reader in readers):
            region = full_region(buffer).region
    return _with_stage(state, scope, buffer, storage_scope, location, region, readers, None)


@primitive("CacheWrite")
def cache_write(
    state: ScheduleState,
    block: BlockIdentity,
    write_buffer_index: WriteBuffer,
    storage_scope: StorageScope,
    consumer_blocks: Sequence[BlockIdentity] | None = None,
) -> tuple[ScheduleState, BlockIdentity]:
    """Let a block write into a copy in `storage_scope`, which a new block copies to the buffer.

    `consumer_blocks` read from the copy too. The new block stands before the first of the other
    readers, or at the end of the scope where there is none.

    Checked: the block writes such a buffer, is its only writer in the scope and reads of it only
    what the same iteration has written; the storage scope exists; no reader stands before the
    block, but in earlier loops than the block; the readers read only what it writes; where the
    buffer is seen outside of the scope, the region written is known exactly.

    rewrite:
        for i in range(16):                             for i in range(16):
            (block "C") C[vi] = A[vi]              -->      (block "C") C_local[vi] = A[vi]
                                                        for ax0 in range(16): (block "C_local")
    """
    place = state.block(block)
    scope = state.scope_of(place)
    buffer = accessed_buffer(place, write_buffer_index, "write")
    blocks = scope_at(state, scope)
    only_writer(blocks.writers_of(buffer), buffer)
    readers = blocks.readers_of(buffer)
    during = [reader for reader in readers if not _follows(blocks, place, [reader])]
    check_not_overwritten(scope, blocks, buffer, [place], during)
    for reader in during:
        check_cover(scope, blocks, reader, buffer)
    if reads_old_elements(place.block, buffer):
        raise BlockKindError(
            f'The {place.title} reads the elements of "{buffer.name}" that it updates, and the '
            "copy does not hold their first values",
            [place.realize],
            "cache before decompose_reduction or blockize, or write the update as a reduction "
            "with T.init",
        )
    check_init_runs_first(place, "a reduction that begins where its iterators do, or decompose it")
    consumers = _scope_children(state, scope, consumer_blocks or ())
    cached = {consumer.block.identity for consumer in consumers}
    others = [reader for reader in readers if reader.block.identity not in cached]
    location = location_after(state, scope, place, others)
    region = _touched_region(place, blocks, buffer, location)
    outer = location.loop
    if not is_local(scope, buffer) and not must_write(place, buffer, outer, region):
        raise DataflowError(
            f'The elements of "{buffer.name}" that the {place.title} is sure to write are not a '
            "box, so that copying back would overwrite others",
            [place.realize],
            "cache_write where whole rows or boxes are written, or before transform_layout",
        )
    return _with_stage(state, scope, buffer, storage_scope, location, region, consumers, place)


def _scope_children(
    state: ScheduleState, scope: BlockPlace, chosen: Sequence[BlockIdentity]
) -> list[BlockPlace]:
    """The children of the scope that are, or hold, the blocks `chosen`, in program order."""
    holders: set[BlockIdentity] = set()
    children = scope_at(state, scope).children
    for identity in chosen:
        place = state.block(identity)
        around = [*(p for p in place.parents if isinstance(p, Block)), place.block]
        inside = [c for c in children if any(block is c.block for block in around)]
        if not inside:
            raise DataflowError(
                f"The consumer {place.title} is not in the scope of block "
                f'"{scope.block.name_hint}", where the copy is made',
                [place.realize],
                "consumer_blocks next to the block, in the same scope",
            )
        holders.add(inside[0].block.identity)
    return [child for child in children if child.block.identity in holders]


def _follows(blocks: Scope, writer: BlockPlace, readers: Sequence[BlockPlace]) -> bool:
    """Whether a block runs after all iterations of the readers: no loop that runs more than once is
    around both."""
    around = [loop for loop in writer.loops if not is_const_int(loop.extent, 1)]
    return all(
        blocks.position(reader.block) < blocks.position(writer.block)
        and not any(loop in around for loop in reader.loops)
        for reader in readers
    )


def _touched_region(
    writer: BlockPlace, blocks: Scope, buffer: Buffer, location: StageLocation
) -> Sequence[Range]:
    """What a block writes of a buffer in one run of the container's body."""
    region = regions_of(writer.block.writes, buffer)[0]
    outer = location.loop
    analyzer = Analyzer(writer.domains_around)
    guard = substitute(access_guard(writer.block, buffer), writer.realize.bindings)
    realize = replace(writer.realize, predicate=logical_and(writer.realize.predicate, guard))
    box = accessed(realize, region, writer.inner_loops(outer), analyzer)
    box = known_sides(box, writer, outer, blocks)
    return covering(box, buffer, analyzer).region


def _reads_inside(
    reader: BlockPlace,
    buffer: Buffer,
    location: StageLocation,
    box: Sequence[Range],
    around: Mapping[Var, Range],
) -> bool:
    """Whether a unit is known to read elements of a box alone: that of one run of the container,
    or, from outside of it, those of all its runs."""
    outer = location.loop
    analyzer = Analyzer(reader.domains_around)
    whole = full_region(buffer).region
    if outer is not None and not stands_in(reader, outer):
        sides = relaxed(box, around, analyzer)
        box = covering(sides, buffer, analyzer).region
        outer = None
    if contains(box, whole, analyzer):
        return True
    inner = reader.inner_loops(outer)
    return all(
        contains(box, accessed(reader.realize, region, inner, analyzer), analyzer)
        for region in regions_of(reader.block.reads, buffer)
    )


def _with_stage(
    state: ScheduleState,
    scope: BlockPlace,
    buffer: Buffer,
    storage_scope: str,
    location: StageLocation,
    region: Sequence[Range],
    readers: Sequence[BlockPlace],
    writer: BlockPlace | None,
) -> tuple[ScheduleState, BlockIdentity]:
    """The program with a copy of `region` of the buffer, that `readers` (and `writer`) use.

    In a loop the copy has the buffer's whole shape, so that blocks outside of the loop can read it;
    else it has the shape of the region.
    """
    loop = location.loop
    keeps_shape = loop is not None
    origin: list[PrimExpr] = [const(0, d.min.dtype) if keeps_shape else d.min for d in region]
    shape = buffer.shape if keeps_shape else tuple(dimension.extent for dimension in region)
    cache = copy_of(buffer, storage_scope, shape)
    analyzer = (scope if loop is None else state.loop(loop.loop_var)).analyzer_inside()
    stage = copy_stage(buffer, cache, region, origin, analyzer, reads=writer is None)
    redirection = Redirection(buffer, cache, None if keeps_shape else origin)
    users = readers if writer is None else [writer, *readers]
    changes: dict[Stmt, Stmt | None] = {
        user.realize: redirection.of(user.realize) for user in users
    }
    state = state.replaced(scope.function, changes)
    container, position = location.container, location.position
    state, (block,) = with_stages(state, scope, container, position, [stage], cache)
    return state, block


@primitive("CacheInplace")
def cache_inplace(
    state: ScheduleState,
    block: BlockIdentity,
    read_buffer_index: ReadBuffer,
    storage_scope: StorageScope,
) -> tuple[ScheduleState, list[BlockIdentity]]:
    """Let a block update a copy in `storage_scope` of the box of a buffer that it reads and writes.

    One new block copies the box right before the block, another one copies it back right after,
    both with its predicate. The copy keeps the buffer's shape.

    Checked: the block reads such a buffer and writes it too, within the box that it reads, or is
    sure to write all that it declares, which alone is then copied back; the storage scope exists;
    the box lies in the buffer; the block runs in order (the loops around it are not parallel,
    vectorized or bound) and its predicate is always true.

    rewrite:
        for i in range(4):                              for i in range(4):
            (block "A") D[i, :] = f(D[i, :])       -->      (block "D_local") D_local[…] = D[…]
                                                            (block "A") D_local[…] = f(D_local[…])
                                                            (block "D_local") D[…] = D_local[…]
    """
    place = state.block(block)
    buffer = accessed_buffer(place, read_buffer_index, "read")
    _check_in_order(place)
    boxes = _boxes(place, buffer, scope_around(state, place))
    copy = copy_of(buffer, storage_scope, buffer.shape)
    scope = state.scope_of(place)
    predicate = place.realize.predicate
    stages = [
        rewrite_nodes(
            copy_stage(
                buffer,
                copy,
                box,
                [const(0, side.min.dtype) for side in box],
                Analyzer(place.domains_around),
                reads=reads,
            ),
            BlockRealize,
            lambda realize: replace(realize, predicate=logical_and(predicate, realize.predicate)),
        )
        for reads, box in zip((True, False), boxes, strict=True)
    ]
    changed = Redirection(buffer, copy, None).of(place.realize)
    state = state.replaced(place.function, {place.realize: sequence(stages[0], changed, stages[1])})
    state = with_allocated(state, scope, copy)
    realizes = [realize for stage in stages for realize in block_realizes_below(stage)]
    return state, [realize.block.identity for realize in realizes]


def _check_in_order(place: BlockPlace) -> None:
    name = place.block.name_hint
    for loop in place.loops:
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise DataflowError(
                f'The iterations of the loop "{loop.loop_var.name}" around block "{name}" run at '
                "once, and all of them would use the same copy",
                [loop, place.realize],
                "cache_inplace first, then parallel, vectorize or bind",
            )


def _boxes(place: BlockPlace, buffer: Buffer, blocks: Scope) -> list[list[Range]]:
    """What is copied before and after the block, in terms of the loops around: what it reads, and
    where it writes other elements, these alone."""
    name = place.block.name_hint
    reads, writes = regions_of(place.block.reads, buffer), regions_of(place.block.writes, buffer)
    if not writes:
        raise BlockKindError(
            f'The block "{name}" reads "{buffer.name}" but does not write it, so that nothing is '
            "updated in place",
            [place.realize],
            "cache_read",
        )
    analyzer = Analyzer(place.domains_around)
    innermost = place.loops[-1] if place.loops else None

    def box_of(region: BufferRegion) -> Sequence[Range]:
        """Its ends are computed anew in each iteration of the copies, so that nothing that is
        written decides them."""
        exact = bound_ranges(place.realize, region)
        sides = relaxed(exact, {}, analyzer)
        bounds = known_sides(sides, place, innermost, blocks)
        return exact if all(map(is_, bounds, sides)) else covering(bounds, buffer, analyzer).region

    box = after = box_of(reads[0])
    for write in writes:
        written = box_of(write)
        if contains(box, written, analyzer):
            continue
        after = written
        if len(writes) > 1 or not must_write(place, buffer, innermost, written):
            raise DataflowError(
                f'The block "{name}" writes other elements of "{buffer.name}" than it reads, and '
                "is not sure to write all of them; the copy would not hold the others",
                [place.realize],
                "T.reads of all that the block writes, or cache_write",
            )
    if not contains(full_region(buffer).region, box, analyzer):
        raise DataflowError(
            f'What the block "{name}" reads of "{buffer.name}" is not known to lie in the buffer, '
            "and the copy reads all of it",
            [place.realize],
            "cache before a split that does not divide the extent",
        )
    return [
        [Range(analyzer.simplify(side.min), analyzer.simplify(side.extent)) for side in one]
        for one in (box, after)
    ]
