"""Rows of shared memory farther apart than they are long, as `storage_align` asks.

Threads that read a column of a tile then find its elements in different banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.schedule.primitives.storage import BUFFER_DIM_ALIGN
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, constant_shape
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import BufferMutator

_MARK = "storage_align"
"""The attribute that says it in lowered programs. Those of TVM have "buffer_dim_align" still where
rows are apart already."""

Alignment = tuple[int, int, int]
"""An axis, whose stride is to be `offset` modulo `factor`: axis, factor, offset."""


def mark_aligned_storage(func: PrimFunc) -> PrimFunc:
    """What blocks say of the buffers that they write, as attributes of their bodies: these stay
    when the blocks are dissolved."""
    return func.with_body(_Marks().rewrite(func.body))


class _Marks(Mutator):
    @on(S.Block)
    def block(self, block: S.Block) -> S.Stmt:
        new: S.Block = self.rewrite_children(block)
        body = new.body
        for entry in block.annotations.get(BUFFER_DIM_ALIGN, ()):
            index, axis, factor, offset = _checked(entry, block)
            data = block.writes[index].buffer.data
            text = E.StringImm(f"{axis} {factor} {offset}")
            body = S.AttrStmt(data, _MARK, text, body)
        return new if body is new.body else replace(new, body=body)


def _checked(entry: Sequence[Any], block: S.Block) -> list[int]:
    numbers = [int(number) for number in entry]
    if len(numbers) != 4 or not 0 <= numbers[0] < len(block.writes) or numbers[2] < 1:
        raise TVMError(
            f'"{BUFFER_DIM_ALIGN}" of block "{block.name_hint}" has {list(entry)}, which is not '
            "[a buffer that the block writes, axis, factor, offset]",
            block.span,
        )
    return numbers


def align_shared_storage(func: PrimFunc) -> PrimFunc:
    """Give marked buffers in shared memory their strides, and take the marks away. A buffer that is
    used by its address, or through a view, stays as it is."""
    alignments: dict[E.Var, list[Alignment]] = {}
    for part in S.find_attributes(func.body, _MARK):
        assert isinstance(part.value, E.StringImm)
        axis, factor, offset = map(int, part.value.value.split())
        alignments.setdefault(part.node, []).append((axis, factor, offset))
    if not alignments:
        return func
    return func.with_body(_Alignment(func, alignments).rewrite(func.body))


class _Alignment(BufferMutator):
    def __init__(self, func: PrimFunc, alignments: dict[E.Var, list[Alignment]]) -> None:
        nodes = list(walk(func.body))
        allocated = [node.buffer for node in nodes if isinstance(node, S.AllocBuffer)]
        by_address = {node for node in nodes if isinstance(node, E.Var)}
        accessed = {n.buffer for n in nodes if isinstance(n, (E.BufferLoad, S.BufferStore))}
        views = {buffer.data for buffer in accessed - set(allocated)}
        self.aligned: dict[Buffer, Buffer] = {}
        for buffer in allocated:
            shape = constant_shape(buffer)
            entries = alignments.get(buffer.data, [])
            if not entries or shape is None or buffer.data in views | by_address:
                continue
            if buffer.scope().startswith("shared") and not buffer.strides:
                strides = aligned_strides(shape, entries)
                dtype = buffer.shape[0].dtype
                self.aligned[buffer] = replace(
                    buffer, strides=tuple(const(stride, dtype) for stride in strides)
                )

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key == _MARK:
            return self.rewrite(statement.body)
        return self.rewrite_children(statement)

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.aligned.get(buffer, buffer)


def aligned_strides(shape: Sequence[int], alignments: Sequence[Alignment]) -> list[int]:
    """The least strides of rows one after the other that are aligned: of each axis named, `offset`
    modulo `factor`."""
    by_axis = {axis: (factor, offset) for axis, factor, offset in alignments}
    strides: list[int] = []
    step = 1
    for axis in reversed(range(len(shape))):
        factor, offset = by_axis.get(axis, (1, 0))
        step += (offset - step) % factor
        strides.append(step)
        step *= shape[axis]
    return strides[::-1]
