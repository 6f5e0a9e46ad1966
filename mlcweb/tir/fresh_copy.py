"""Copies of programs with variables, buffers and blocks of their own."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.expr import BufferLoad, Let, Var


class FreshCopy(Mutator):
    """Copies programs; each variable and buffer, defined inside or not, becomes one new object.

    Blocks get new identities, so that a schedule can hold the copy beside the original.
    """

    def __init__(self) -> None:
        self._variables: dict[Var, Var] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    @on(Var)
    def variable(self, var: Var) -> Var:
        """The new variable for a variable."""
        if var not in self._variables:
            self._variables[var] = Var(var.name, var.dtype, var.type_annotation, span=var.span)
        return self._variables[var]

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        """The new buffer for a buffer."""
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(self.rewrite_children(buffer))
        return self._buffers[buffer]

    @on(BufferLoad, S.BufferStore, BufferRegion, MatchBufferRegion, S.AllocBuffer, S.DeclBuffer)
    def access(self, node: Any) -> Any:
        return replace(self.rewrite_children(node), buffer=self.buffer(node.buffer))

    @on(S.For)
    def loop(self, node: S.For) -> S.For:
        return replace(self.rewrite_children(node), loop_var=self.variable(node.loop_var))

    @on(S.IterVar, Let, S.LetStmt)
    def definition(self, node: S.IterVar | Let | S.LetStmt) -> Node:
        return replace(self.rewrite_children(node), var=self.variable(node.var))

    @on(S.Block)
    def block(self, node: S.Block) -> S.Block:
        return replace(
            self.rewrite_children(node),
            alloc_buffers=tuple(self.buffer(buffer) for buffer in node.alloc_buffers),
            identity=S.BlockIdentity(),
        )
