"""Where and how intermediate buffers lie in memory: set_scope, storage_align, unsafe_set_dtype."""

from __future__ import annotations

from mlcweb.analysis.threads import is_own, is_shared, thread_tag
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes, on
from mlcweb.schedule.accessed_buffer import accessed_buffer
from mlcweb.schedule.analysis.block_facts import consumers_of
from mlcweb.schedule.analysis.effects import reads_of_other_threads
from mlcweb.schedule.analysis.regions import check_no_declared_view
from mlcweb.schedule.arguments import StorageScope, WriteBuffer
from mlcweb.schedule.errors import ArgumentError, BlockKindError, NotFoundError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import BufferReplacement
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Cast, PointerType, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BlockRealize, BufferStore, For, find_statements

BUFFER_DIM_ALIGN = "buffer_dim_align"
"""The annotation of a block that lists [buffer index, axis, factor, offset] for its writes."""


@primitive("SetScope")
def set_scope(
    state: ScheduleState,
    block: BlockIdentity,
    buffer_index: WriteBuffer,
    storage_scope: StorageScope,
) -> ScheduleState:
    """Move a buffer that a block writes to another storage scope; its name tells the scope.

    Checked: the block writes such a buffer; the storage scope exists; a block allocates the buffer;
    threads that exchange data through it still share it.

    rewrite:
        B = T.alloc_buffer((16,))          -->    B_shared = T.alloc_buffer((16,), scope="shared")
    """
    place = state.block(block)
    buffer = accessed_buffer(place, buffer_index, "write")
    owner = allocating_block(place, buffer)
    if buffer.scope() == storage_scope:
        return state
    if not storage_scope.startswith(("shared", "global")):
        if is_shared(buffer):
            _check_not_exchanged(place, owner, buffer)
        elif not is_own(buffer):
            _check_read_by_writer(state, place, buffer)
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
        raise ArgumentError(
            f'The buffer to set storage alignment of, "{buffer.name}", has {buffer.ndim} '
            f"dimension(s), so the axis {axis} is not in [{-buffer.ndim}, {buffer.ndim})",
            [place.realize],
            "an axis of the buffer; -2 is the rows of a matrix",
        )
    if factor <= 0:
        raise ArgumentError(
            f"The factor {factor} of storage_align is not positive",
            [place.realize],
            "a positive number of elements, such as 32",
        )
    index = next(n for n, region in enumerate(place.block.writes) if region.buffer is buffer)
    aligned = {(entry[0], entry[1]): entry for entry in _alignments(place)}
    axis %= buffer.ndim
    aligned[index, axis] = [index, axis, factor, offset]
    annotations = {**place.block.annotations, BUFFER_DIM_ALIGN: list(aligned.values())}
    return state.with_fields(place, annotations=annotations)


def _alignments(place: BlockPlace) -> list[list[int]]:
    """What earlier calls of storage_align, or a program, ask of the buffers that a block writes."""
    noted = place.block.annotations.get(BUFFER_DIM_ALIGN, [])
    if not isinstance(noted, (list, tuple)) or not all(
        isinstance(entry, (list, tuple)) and len(entry) == 4 for entry in noted
    ):
        raise BlockKindError(
            f'The annotation "{BUFFER_DIM_ALIGN}" of {place.title} is {noted!r}, and no list of '
            "alignments",
            [place.realize],
            "an alignment is four integers: the index of a buffer, an axis, a factor, an offset",
        )
    return [list(entry) for entry in noted]


def allocating_block(place: BlockPlace, buffer: Buffer) -> Block:
    """The block around a place that allocates a buffer without a declared view; NotFoundError or
    ArgumentError where there is none."""
    for parent in reversed(place.parents):
        if isinstance(parent, Block) and buffer in parent.alloc_buffers:
            check_no_declared_view(place, parent.body, buffer)
            return parent
    raise NotFoundError(
        f'The buffer "{buffer.name}" is not allocated by a block: it is a parameter of the '
        "function, or views a part of another buffer",
        [place.realize],
        "write through a buffer of the function's own, with cache_write",
    )


def _check_not_exchanged(place: BlockPlace, owner: Block, buffer: Buffer) -> None:
    """Raise ArgumentError where threads both write and read a shared buffer: each would
    have one of its own, or each warp."""
    for loop in find_statements(owner.body, For):
        if thread_tag(loop):
            accesses = {
                type(node)
                for node in find_nodes(loop.body, BufferLoad, BufferStore)
                if is_shared(node.buffer)
            }
            if len(accesses) == 2:
                raise ArgumentError(
                    f'Threads of loop "{loop.loop_var.name}" exchange data through '
                    f'"{buffer.name}", and have to share it',
                    [loop, place.realize],
                    '"shared" or "global"; or set_scope before the loop is bound to threads',
                )


def _check_read_by_writer(state: ScheduleState, place: BlockPlace, buffer: Buffer) -> None:
    """Raise ArgumentError where a thread may read of a buffer in global memory what another thread
    writes: each would have a buffer of its own."""
    if not any(map(thread_tag, place.loops)):
        return
    for consumer in consumers_of(state, place):
        dependence = reads_of_other_threads(place, consumer, {buffer})
        if dependence is not None:
            raise ArgumentError(
                f'In the loop "{dependence[0].loop_var.name}" over threads the {consumer.title} '
                f'reads elements of "{buffer.name}" that other threads may have written, and has '
                "to share it",
                [dependence[0], consumer.realize],
                '"shared" or "global"; or set_scope before the loop is bound to threads',
            )


def _in_scope(buffer: Buffer, storage_scope: str) -> Buffer:
    name = f"{buffer.name}_{storage_scope}"
    data = Var(name, "handle", PointerType(buffer.dtype, storage_scope))
    return replace(buffer, data=data, name=name)


@primitive("UnsafeSetDType", title="set-dtype")
def unsafe_set_dtype(
    state: ScheduleState, block: BlockIdentity, buffer_index: int, dtype: str
) -> ScheduleState:
    """Give the buffer that a block writes as its `buffer_index`-th another element type.

    What is stored is cast to the new type, and what is read is cast back, so that values may lose
    precision. Checked: the block writes such a buffer; a block allocates it; the type has a single
    lane; the buffer is accessed by its elements alone (also through a view), not by address.

    rewrite:
        B = T.alloc_buffer((16,))                       B = T.alloc_buffer((16,), "float16")
        B[vi] = A[vi] * T.float32(2)             -->    B[vi] = T.Cast("float16", A[vi] * …)
        C[vi] = B[vi] + T.float32(1)                    C[vi] = T.Cast("float32", B[vi]) + …
    """
    place = state.block(block)
    buffer = accessed_buffer(place, buffer_index, "write")
    _check_scalar_type(place.realize, buffer, dtype)
    owner = allocating_block(place, buffer)
    if buffer.dtype == dtype:
        return state
    return state.replaced(
        place.function, {owner: _Retyping(buffer, dtype, place.realize).rewrite(owner)}
    )


def _check_scalar_type(realize: BlockRealize, buffer: Buffer, dtype: str) -> None:
    try:
        kind, bits, lanes = dtypes.parse(dtype)
        is_number = (kind == "bool" or bits in (8, 16, 32, 64)) and lanes == 1
        is_number = is_number and kind not in ("handle", "void")
    except DiagnosticError:
        is_number = False
    if not is_number:
        raise ArgumentError(
            f'"{dtype}" is not a type of single numbers that buffer "{buffer.name}" could hold',
            [realize],
            '"float16", "int8", "bool", …',
        )


class _Retyping(BufferReplacement):
    """Rewrites loads and stores of a buffer and its views, with casts between the element types."""

    def __init__(self, buffer: Buffer, dtype: str, realize: BlockRealize) -> None:
        super().__init__(buffer, lambda old: _of_type(old, dtype))
        self.dtype = dtype
        self.realize = realize

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> PrimExpr:
        changed = self.access(node)
        return changed if changed.buffer is node.buffer else Cast(node.dtype, changed)

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        changed = self.access(node)
        if changed.buffer is node.buffer:
            return changed
        dtype = dtypes.with_lanes(self.dtype, dtypes.lanes(node.value.dtype))
        return replace(changed, value=Cast(dtype, changed.value))

    @on(Var)
    def pointer(self, var: Var) -> Var:
        for buffer in self.buffers:
            if buffer.data is var:
                raise ArgumentError(
                    f'The buffer "{buffer.name}" must keep its type {buffer.dtype}: its address is '
                    "used",
                    [self.realize],
                    "unsafe_set_dtype before tensorize",
                )
        return var


def _of_type(buffer: Buffer, dtype: str) -> Buffer:
    data = replace(buffer.data, type_annotation=PointerType(dtype, buffer.scope()))
    return replace(buffer, data=data, dtype=dtype)
