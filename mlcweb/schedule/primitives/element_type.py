"""The element type of intermediate buffers: unsafe_set_dtype."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.primitives.cache import accessed_buffer
from mlcweb.schedule.primitives.storage import allocating_block
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.expr import BufferLoad, Cast, PointerType, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, BufferStore


class ElementTypeError(ScheduleError):
    """A buffer cannot have the element type asked for."""


def unsafe_set_dtype(
    state: ScheduleState, block: BlockIdentity, buffer_index: int, dtype: str
) -> ScheduleState:
    """Give the buffer that a block writes as its `buffer_index`-th another element type.

    What is stored is cast to the new type, and what is read is cast back, so that values may lose
    precision. Checked: the block writes such a buffer; a block allocates it; the type has a single
    lane; the buffer is accessed by its elements alone, not by address or through another buffer.

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
    scope = buffer.scope()
    data = replace(buffer.data, type_annotation=PointerType(dtype, scope))
    new = replace(buffer, data=data, dtype=dtype)
    changed = _Retyping(buffer, new, place.realize).rewrite(owner)
    buffers = tuple(new if b is buffer else b for b in owner.alloc_buffers)
    return state.replaced(place.function, {owner: replace(changed, alloc_buffers=buffers)})


def _check_scalar_type(realize: BlockRealize, buffer: Buffer, dtype: str) -> None:
    try:
        is_number = dtypes.kind(dtype) != "handle" and dtypes.lanes(dtype) == 1
    except (ValueError, KeyError, RuntimeError):
        is_number = False
    if not is_number:
        raise ElementTypeError(
            f'"{dtype}" is not a type of single numbers that buffer "{buffer.name}" could hold',
            [realize],
            '"float16", "int8", "bool", …',
        )


class _Retyping(Mutator):
    """Rewrites loads and stores of `old` to `new`, with casts between their element types."""

    def __init__(self, old: Buffer, new: Buffer, realize: BlockRealize) -> None:
        self.old = old
        self.new = new
        self.realize = realize

    @on(BufferLoad)
    def load(self, node: BufferLoad) -> PrimExpr:
        changed = self.rewrite_children(node)
        if node.buffer is not self.old:
            return changed
        return Cast(node.dtype, replace(changed, buffer=self.new))

    @on(BufferStore)
    def store(self, node: BufferStore) -> BufferStore:
        changed = self.rewrite_children(node)
        if node.buffer is not self.old:
            return changed
        dtype = dtypes.with_lanes(self.new.dtype, dtypes.lanes(node.value.dtype))
        return replace(changed, buffer=self.new, value=Cast(dtype, changed.value))

    @on(BufferRegion)
    def region(self, node: BufferRegion) -> BufferRegion:
        changed = self.rewrite_children(node)
        return replace(changed, buffer=self.new) if node.buffer is self.old else changed

    @on(MatchBufferRegion)
    def match(self, node: MatchBufferRegion) -> Any:
        if node.source.buffer is self.old:
            self._refuse(f'the buffer "{node.buffer.name}" views it')
        return self.rewrite_children(node)

    @on(Var)
    def pointer(self, var: Var) -> Var:
        if var is self.old.data:
            self._refuse("its address is used")
        return var

    def _refuse(self, reason: str) -> None:
        raise ElementTypeError(
            f'The buffer "{self.old.name}" must keep its type {self.old.dtype}: {reason}',
            [self.realize],
            "unsafe_set_dtype before tensorize and before buffers are matched",
        )
