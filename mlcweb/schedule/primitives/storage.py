"""Where and how intermediate buffers lie in memory: set_scope, storage_align."""

from __future__ import annotations

from mlcweb.analysis.threads import is_shared, thread_tag
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.arguments import WriteBuffer, accessed_buffer
from mlcweb.schedule.errors import NotFoundError, ScheduleError
from mlcweb.schedule.redirect import BufferReplacement
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.schedule.storage_scopes import StorageScopeError, check_storage_scope
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PointerType, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BufferStore, For, statements_in

BUFFER_DIM_ALIGN = "buffer_dim_align"
"""The annotation of a block that lists [buffer index, axis, factor, offset] for its writes."""


class AlignmentError(ScheduleError):
    """The axis or the factor of an alignment is out of range."""


@primitive("SetScope")
def set_scope(
    state: ScheduleState,
    block: BlockIdentity,
    buffer_index: WriteBuffer,
    storage_scope: str,
) -> ScheduleState:
    """Move a buffer that a block writes to another storage scope; its name tells the scope.

    Checked: the block writes such a buffer; the storage scope exists; a block allocates the buffer;
    threads that exchange data through it still share it.

    rewrite:
        B = T.alloc_buffer((16,))          -->    B_shared = T.alloc_buffer((16,), scope="shared")
    """
    check_storage_scope(storage_scope)
    place = state.block(block)
    buffer = accessed_buffer(place, buffer_index, "write")
    owner = allocating_block(place, buffer)
    if buffer.scope() == storage_scope:
        return state
    if is_shared(buffer) and not storage_scope.startswith(("shared", "global")):
        _check_not_exchanged(place, owner, buffer)
    moving = BufferReplacement(buffer, lambda old: _in_scope(old, storage_scope))
    return state.replaced(place.function, {owner: moving.rewrite(owner)})


@primitive("StorageAlign")
def storage_align(
    state: ScheduleState,
    block: BlockIdentity,
    buffer_index: WriteBuffer,
    axis: int,
    factor: int,
    offset: int,
) -> ScheduleState:
    """Ask for rows of a buffer that start at multiples of `factor` elements, plus `offset`: the
    stride of `axis` becomes `factor * k + offset`, so that rows lie in different memory banks.

    A second request for the same axis replaces the first.

    Checked: the block writes such a buffer; a block allocates it; it has such an axis (negative
    ones count from the end); `factor` is positive.

    rewrite:
        with T.block("B"): ...             -->    with T.block("B"):
                                                      T.block_attr({"buffer_dim_align":
                                                                    [[0, 0, 32, 8]]})
    """
    place = state.block(block)
    buffer = accessed_buffer(place, buffer_index, "write")
    allocating_block(place, buffer)
    if not -buffer.ndim <= axis < buffer.ndim:
        raise AlignmentError(
            f'The buffer to set storage alignment of, "{buffer.name}", has {buffer.ndim} '
            f"dimension(s), so the axis {axis} is not in [{-buffer.ndim}, {buffer.ndim})",
            [place.realize],
            "an axis of the buffer; -2 is the rows of a matrix",
        )
    if factor <= 0:
        raise AlignmentError(
            f"The factor {factor} of storage_align is not positive",
            [place.realize],
            "a positive number of elements, such as 32",
        )
    index = next(n for n, region in enumerate(place.block.writes) if region.buffer is buffer)
    entries = [list(entry) for entry in place.block.annotations.get(BUFFER_DIM_ALIGN, ())]
    aligned = {(entry[0], entry[1]): entry for entry in entries}
    axis %= buffer.ndim
    aligned[index, axis] = [index, axis, factor, offset]
    annotations = {**place.block.annotations, BUFFER_DIM_ALIGN: list(aligned.values())}
    new = replace(place.block, annotations=annotations)
    return state.replaced(place.function, {place.block: new})


def allocating_block(place: BlockPlace, buffer: Buffer) -> Block:
    """The block around a place that allocates a buffer; NotFoundError where there is none."""
    for parent in reversed(place.parents):
        if isinstance(parent, Block) and buffer in parent.alloc_buffers:
            return parent
    raise NotFoundError(
        f'The buffer "{buffer.name}" is not allocated by a block: it is a parameter of the '
        "function, or views a part of another buffer",
        [place.realize],
        "write through a buffer of the function's own, with cache_write",
    )


def _check_not_exchanged(place: BlockPlace, owner: Block, buffer: Buffer) -> None:
    """Raise StorageScopeError where threads both write and read a shared buffer: each would
    have one of its own, or each warp."""
    for loop in statements_in(owner.body):
        if isinstance(loop, For) and thread_tag(loop):
            accesses = {
                type(node)
                for node in walk(loop.body)
                if isinstance(node, (BufferLoad, BufferStore)) and is_shared(node.buffer)
            }
            if len(accesses) == 2:
                raise StorageScopeError(
                    f'Threads of loop "{loop.loop_var.name}" exchange data through '
                    f'"{buffer.name}", and have to share it',
                    [loop, place.realize],
                    '"shared" or "global"; or set_scope before the loop is bound to threads',
                )


def _in_scope(buffer: Buffer, storage_scope: str) -> Buffer:
    name = f"{buffer.name}_{storage_scope}"
    data = Var(name, "handle", PointerType(buffer.dtype, storage_scope))
    return replace(buffer, data=data, name=name)
