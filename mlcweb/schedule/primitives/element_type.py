"""The element type of intermediate buffers: unsafe_set_dtype."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import on
from mlcweb.schedule.arguments import accessed_buffer
from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.primitives.storage import allocating_block
from mlcweb.schedule.redirect import BufferReplacement
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.state import ScheduleState
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Cast, PointerType, PrimExpr, Var
from mlcweb.tir.stmt import BlockIdentity, BlockRealize, BufferStore


class ElementTypeError(ScheduleError):
    """A buffer cannot have the element type asked for."""


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
        raise ElementTypeError(
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
                raise ElementTypeError(
                    f'The buffer "{buffer.name}" must keep its type {buffer.dtype}: its address is '
                    "used",
                    [self.realize],
                    "unsafe_set_dtype before tensorize",
                )
        return var


def _of_type(buffer: Buffer, dtype: str) -> Buffer:
    data = replace(buffer.data, type_annotation=PointerType(dtype, buffer.scope()))
    return replace(buffer, data=data, dtype=dtype)
