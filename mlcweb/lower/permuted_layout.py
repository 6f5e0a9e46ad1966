"""The pass `tvm.s_tir.transform.InjectPermutedLayout`: in blocks with the annotation
"permuted_layout" the columns of shared memory are in another order in each row, so that lanes
which take rows one below the other find them in different banks.

Eight numbers of two bytes, which an instruction takes at once, stay together. Which group of a row
they are is combined by xor with the number of the row: of eight rows with eight groups, else of
every second one with four.
"""

from __future__ import annotations

from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import (
    add,
    bitwise_xor,
    const,
    constant_value,
    floordiv,
    floormod,
    multiply,
)
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name

ANNOTATION = "permuted_layout"
_GROUP = 8
_POINTERS = {
    "ptx_ldmatrix": (5, 6), "ptx_legacy.ldmatrix": (5, 6),
    "mma_store": (2, None), "cuda.mma_store_legacy": (2, None),
}  # fmt: skip
"""Calls with a pointer to shared memory: which argument that is, and which is an offset from it."""


def inject_permuted_layout(func: PrimFunc) -> PrimFunc:
    """The function with the order of columns in place of the annotations.

    Raises:
        TVMError: such memory has less than two dimensions, or rows of another length than a
            multiple of 32 numbers.
    """
    return func.with_body(_Permutation(func).rewrite(func.body))


class _Permutation(Mutator):
    """`inside` says whether a block around has the annotation."""

    def __init__(self, func: PrimFunc) -> None:
        self.analyzer = Analyzer()
        self.buffers = func.buffers_by_data()
        self.inside = False

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        self.analyzer.bind(loop.loop_var, loop.domain)
        return self.rewrite_children(loop)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.AttrStmt:
        if S.is_launch(statement):
            var: Any = statement.node.var
            self.analyzer.bind(var, Range(const(0, var.dtype), statement.value))
        return self.rewrite_children(statement)

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.analyzer.bind(axis.var, axis.dom)
        if not block.annotations.get(ANNOTATION):
            return self.rewrite_children(block)
        around, self.inside = self.inside, True
        new = self.rewrite_children(block)
        self.inside = around
        kept = {key: value for key, value in block.annotations.items() if key != ANNOTATION}
        return replace(new, annotations=kept)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        shared = node.buffer.scope().startswith("shared")
        if not (self.inside and shared) or len(new.indices) < 2:
            return new
        *outer, row, column = new.indices
        column = self.permuted(row, column, _row_length(node.buffer, node))
        return replace(new, indices=(*outer, row, column))

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        new: Any = self.rewrite_children(call)
        position, after = _POINTERS.get(operator_name(call), (None, None))
        if not self.inside or position is None:
            return new
        arguments = list(new.args)
        pointer = arguments[position]
        buffer = self.buffers.get(pointer.args[1]) if _is_access(pointer) else None
        if buffer is None:
            raise TVMError(
                f"{operator_name(call)} takes {pointer}, whose rows are not known; name the memory "
                "of a permuted layout by its access_ptr",
                call.span,
            )
        offset = pointer.args[2]
        if after is not None:
            offset = add(offset, arguments[after])
            arguments[after] = const(0, arguments[after].dtype)
        count = _row_length(buffer, call)
        length = const(count, offset.dtype)
        row, column = floordiv(offset, length), floormod(offset, length)
        column = self.permuted(row, column, count)
        offset = self.analyzer.simplify(add(multiply(row, length), column))
        arguments[position] = replace(pointer, args=(*pointer.args[:2], offset, *pointer.args[3:]))
        return replace(new, args=tuple(arguments))

    def permuted(self, row: E.PrimExpr, column: E.PrimExpr, length: int) -> E.PrimExpr:
        """The column in which a row of some length has what was in another."""
        group, number = const(_GROUP, column.dtype), floormod(row, const(_GROUP, row.dtype))
        if length % (_GROUP * _GROUP):
            number = floordiv(number, const(2, row.dtype))
        moved = bitwise_xor(floordiv(column, group), number)
        return self.analyzer.simplify(add(multiply(moved, group), floormod(column, group)))


def _is_access(pointer: Any) -> bool:
    return operator_name(pointer) == "tvm_access_ptr"


def _row_length(buffer: Buffer, node: Any) -> int:
    """How many elements a row has; a TVMError where they cannot be permuted."""
    sizes = [constant_value(extent) for extent in buffer.shape[-2:]]
    rows, length = (None, *sizes)[-2:]
    if length is None or length % 32 or (length % 64 and (rows is None or rows % 2)):
        raise TVMError(
            f'"{buffer.name}" has shape ({", ".join(map(str, buffer.shape))}), and a permuted '
            "layout takes rows of a multiple of 64 elements, or an even number of rows of a "
            "multiple of 32",
            node.span,
        )
    return int(length)
