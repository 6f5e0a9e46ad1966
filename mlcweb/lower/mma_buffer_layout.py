"""The pass `tvm.s_tir.transform.TransformMmaBufferLayout`: matrices of the scopes
"m16n8k8.matrixA", …B and …C become the registers in which the lanes of a warp hold them.

A lane has some elements of each tile. Those of C are also reached by their indices, which become
the tile and the register; A and B are only for `ldmatrix` and `mma`, which take their address.
"""

from __future__ import annotations

from mlcweb.arith import Analyzer
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, constant_value, floordiv, floormod
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import BufferMutator

_RESULT = "m16n8k8.matrixC"
_TILES = {
    "m16n8k8.matrixA": ((32, 8), (4, 2)),
    "m16n8k8.matrixB": ((8, 32), (1, 8)),
    _RESULT: ((16, 8), (2, 2)),
}
"""By scope, the shape of a tile and that of the registers of a lane that hold its part of it."""


def transform_mma_buffer_layout(func: PrimFunc) -> PrimFunc:
    """The function with registers for such matrices.

    Raises:
        TVMError: a matrix is no whole number of tiles, or elements of A or B are read or written.
    """
    return func.with_body(_Registers().rewrite(func.body))


class _Registers(BufferMutator):
    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.data: dict[E.Var, E.Var] = {}

    def changed(self, buffer: Buffer) -> Buffer:
        if buffer.scope() not in _TILES:
            return buffer
        new = _registers(buffer)
        self.data[buffer.data] = new.data
        return new

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        for buffer in block.alloc_buffers:
            self.buffer(buffer)
        return super().block(block)

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        return self.data.get(var, var)

    @on(E.BufferLoad, S.BufferStore)
    def element(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new, scope = self.rewrite_children(node), node.buffer.scope()
        if scope not in _TILES:
            return new
        if scope != _RESULT:
            raise TVMError(
                f'"{node.buffer.name}" is of scope "{scope}", whose elements no statement reaches; '
                "it is read and written by ldmatrix and mma alone",
                node.span,
            )
        (*outer, row, column), (rows, columns) = new.indices, _TILES[scope][0]
        parts = (
            floordiv(row, const(rows)),
            floordiv(column, const(columns)),
            floormod(floordiv(row, const(rows // 2)), const(2)),
            floormod(column, const(2)),
        )
        indices = (*outer, *map(self.analyzer.simplify, parts))
        return replace(new, buffer=self.buffer(node.buffer), indices=indices)

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        """Of registers, all."""
        buffer = self.buffer(region.buffer)
        if buffer is region.buffer:
            return self.rewrite_children(region)
        return BufferRegion(buffer, tuple(Range(const(0), extent) for extent in buffer.shape))


def _registers(buffer: Buffer) -> Buffer:
    tile, registers = _TILES[buffer.scope()]
    rows, columns = map(constant_value, buffer.shape[-2:])
    if rows is None or columns is None or rows % tile[0] or columns % tile[1]:
        raise TVMError(
            f'"{buffer.name}" of scope "{buffer.scope()}" has shape '
            f"({', '.join(map(str, buffer.shape))}), which is not made of tiles of "
            f"{tile[0]} x {tile[1]}",
            buffer.span,
        )
    shape = (*buffer.shape[:-2], const(int(rows) // tile[0]), const(int(columns) // tile[1]))
    return decl_buffer((*shape, *map(const, registers)), buffer.dtype, buffer.name, scope="local")
