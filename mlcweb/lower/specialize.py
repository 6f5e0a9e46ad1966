"""Giving values to the symbolic sizes of a function."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.arith import Analyzer
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.function import PrimFunc


def specialize(func: PrimFunc, values: Mapping[E.Var, int]) -> PrimFunc:
    """The function with variables (sizes, or scalar parameters) set to constants.

    Parameters stay in the signature, so that callers need not know.
    """
    rewriter = _Specializer({var: const(value, var.dtype) for var, value in values.items()})
    buffer_map = {param: rewriter.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return replace(func, buffer_map=buffer_map, body=rewriter.rewrite(func.body))


def size_symbols(func: PrimFunc) -> dict[E.Var, tuple[int, int]]:
    """Variables that stand for sizes: the argument that tells the value, and its axis."""
    symbols: dict[E.Var, tuple[int, int]] = {}
    for position, param in enumerate(func.params):
        buffer = func.buffer_map.get(param)
        for axis, extent in enumerate(buffer.shape if buffer else ()):
            if isinstance(extent, E.Var):
                symbols.setdefault(extent, (position, axis))
    return symbols


class _Specializer(Mutator):
    def __init__(self, values: Mapping[E.Var, E.PrimExpr]) -> None:
        self.values = values
        self.analyzer = Analyzer()
        self.buffers: dict[Buffer, Buffer] = {}

    def buffer(self, old: Buffer) -> Buffer:
        known = self.buffers.get(old)
        if known is None:
            new = self.rewrite_children(old)
            known = self.buffers[old] = (
                old
                if new is old
                else replace(
                    new,
                    shape=tuple(self.analyzer.simplify(extent) for extent in new.shape),
                    strides=tuple(self.analyzer.simplify(stride) for stride in new.strides),
                )
            )
        return known

    @on(E.Var)
    def variable(self, var: E.Var) -> E.PrimExpr:
        return self.values.get(var, var)

    @on(E.BufferLoad, S.BufferStore, BufferRegion)
    def access(self, node: E.BufferLoad | S.BufferStore | BufferRegion) -> Node:
        new = self.rewrite_children(node)
        buffer = self.buffer(node.buffer)
        return new if buffer is node.buffer else replace(new, buffer=buffer)

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        new = self.rewrite_children(loop)
        return new if new is loop else replace(new, extent=self.analyzer.simplify(new.extent))

    @on(S.AllocBuffer, S.DeclBuffer)
    def allocation(self, node: S.AllocBuffer | S.DeclBuffer) -> Node:
        return replace(self.rewrite_children(node), buffer=self.buffer(node.buffer))

    @on(MatchBufferRegion)
    def match(self, node: MatchBufferRegion) -> Node:
        return replace(self.rewrite_children(node), buffer=self.buffer(node.buffer))

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        allocations = tuple(self.buffer(buffer) for buffer in block.alloc_buffers)
        return replace(self.rewrite_children(block), alloc_buffers=allocations)
