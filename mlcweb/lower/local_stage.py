"""Copies to shared memory in two steps, through registers: the annotation
`manifest_shared_memory_local_stage` of blocks.

In a software pipeline the loads from global memory can then run long before the stores, with what
is computed between them.
"""

from __future__ import annotations

from mlcweb.analysis.access_regions import element_region
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.schedule.rewriting.nests import in_loops
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, subtract
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc

LOCAL_STAGE = "manifest_shared_memory_local_stage"
"""The annotation, behind the name of a dialect."""


def manifest_local_stage(func: PrimFunc) -> PrimFunc:
    """The function with two nests of loops for each block that is annotated: one with a block that
    loads to registers, one with what is left of the block.

    Raises:
        TVMError: such a block does not store one element in loops of constant extents.
    """
    stages = _Stages()
    body = stages.rewrite(func.body)
    for buffer in stages.registers:  # of blocks without another one around
        body = S.AllocBuffer(buffer, body)
    return func.with_body(body)


class _Stages(Mutator):
    """`registers` are those of the blocks in the block around."""

    def __init__(self) -> None:
        self.registers: list[Buffer] = []

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        around, self.registers = self.registers, []
        new = self.rewrite_children(block)
        if self.registers:
            new = replace(new, alloc_buffers=(*new.alloc_buffers, *self.registers))
        self.registers = around
        return new

    @on(S.For, S.BlockRealize)
    def nest(self, statement: S.For | S.BlockRealize) -> S.Stmt:
        loops, inside = S.nest_at(statement)
        if not isinstance(inside, S.BlockRealize) or not _annotation(inside.block):
            return self.rewrite_children(statement)
        return self.two_steps(loops, inside)

    def two_steps(self, loops: list[S.For], realize: S.BlockRealize) -> S.Stmt:
        block, store, marks = realize.block, realize.block.body, []
        while isinstance(store, S.AttrStmt):
            marks.append(store)
            store = store.body
        extents = [loop.extent for loop in loops]
        are_constant = all(isinstance(extent, E.IntImm) for extent in extents)
        if not isinstance(store, S.BufferStore) or not are_constant:
            raise TVMError(
                f'"{_annotation(block)}" is of a block that stores one element in loops of '
                "constant extents, by way of registers; leave it out here",
                block.span,
            )
        name = f"{store.buffer.name}_local"
        registers = decl_buffer(extents or [1], store.buffer.dtype, name, scope="local")
        self.registers.append(registers)
        element = [subtract(loop.loop_var, loop.min) for loop in loops] or [const(0)]
        load = replace(
            block,
            name_hint="",
            writes=(element_region(registers, element),),
            body=S.BufferStore(registers, store.value, element, span=store.span),
            annotations={},
            identity=S.BlockIdentity(),
        )
        kept = {key: v for key, v in block.annotations.items() if key != _annotation(block)}
        body: S.Stmt = replace(store, value=E.BufferLoad(registers, element))
        for mark in reversed(marks):
            body = replace(mark, body=body)
        steps = (load, replace(block, body=body, annotations=kept))
        first, second = (in_loops(replace(realize, block=step), loops) for step in steps)
        return S.sequence(fresh_statement(first), second)


def _annotation(block: S.Block) -> str:
    """What the annotation is called in a block, if it has it."""
    return next((key for key in block.annotations if key.endswith(f".{LOCAL_STAGE}")), "")
