"""Saying in loops what the instructions of matrix units (CUDA's wmma) do.

A fragment is a tile of a matrix in the registers of a warp. Each call that fills, loads, multiplies
or stores fragments becomes loops over elements under a mark. So all that follows, the placement of
memory and barriers, shrinking, a simulated GPU, sees ordinary loops; a language that has the
instruction writes it for the mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from mlcweb.analysis.threads import MATRIX_UNIT
from mlcweb.arith import same_expression, same_expressions
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.lower.warp_registers import Lanes
from mlcweb.schedule.rewriting.nests import loop_nest
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import (
    add,
    cast,
    const,
    equal,
    floordiv,
    floormod,
    is_const_int,
    multiply,
)
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name

_CALLS = {
    "tvm_fill_fragment": "fill",
    "tvm_load_matrix_sync": "load",
    "tvm_store_matrix_sync": "store",
    "tvm_mma_sync": "mma",
}
_PREFIX = "wmma."


class Tile(NamedTuple):
    """The shape of a product that a fragment is part of, and how memory has its elements."""

    shape: tuple[int, int, int]
    layout: str

    def sides(self, scope: str) -> tuple[int, int]:
        """Rows and columns of a fragment, as memory has them."""
        m, n, k = self.shape
        rows, columns = {"matrix_a": (m, k), "matrix_b": (k, n)}.get(scope[len(_PREFIX) :], (m, n))
        return (columns, rows) if self.layout == "col_major" else (rows, columns)


def lower_matrix_units(func: PrimFunc) -> PrimFunc:
    """Loops over elements for the calls that work on fragments. Calls whose tiles cannot be told
    stay as they are.

    Raises a TVMError where one buffer has fragments of two shapes or layouts.
    """
    matrix_calls = (S.called_by(part, _CALLS) for part in S.statements_in(func.body))
    calls = [call for call in matrix_calls if call is not None]
    if not calls:
        return func
    roots: dict[E.Var, E.Var] = {}
    for part in S.statements_in(func.body):
        for match in part.match_buffers if isinstance(part, S.Block) else ():
            source = match.source.buffer.data
            roots[match.buffer.data] = roots.get(source, source)
    buffers = func.buffers_by_data()
    return func.with_body(_Calls(buffers, roots, _tiles(calls, roots)).rewrite(func.body))


def _tiles(calls: Sequence[Any], roots: Mapping[E.Var, E.Var]) -> dict[E.Var, Tile]:
    """The tile of each fragment, by the data of the buffer that it is part of."""
    tiles: dict[E.Var, Tile] = {}
    for call in calls:
        kind, data = _kind(call), call.args[0]
        if kind == "mma" or not isinstance(data, E.Var):
            continue
        numbers = [part.value for part in call.args[1:4] if isinstance(part, E.IntImm)]
        layout = _layout(call) if kind == "load" else "row_major"
        if len(numbers) < 3:
            continue
        tile = Tile((numbers[0], numbers[1], numbers[2]), layout)
        first = tiles.setdefault(roots.get(data, data), tile)
        if first != tile:
            raise TVMError(
                f'"{data.name}" has fragments of {_text(first)} and of {_text(tile)}; use a buffer '
                "for each",
                call.span,
            )
    for call in calls:
        if _kind(call) == "mma":
            # A result that nothing has filled is of the shape of the operands.
            result, left = (roots.get(data, data) for data in (call.args[0], call.args[2]))
            if left in tiles:
                tiles.setdefault(result, Tile(tiles[left].shape, "row_major"))
    return tiles


def _kind(call: Any) -> str:
    return _CALLS[operator_name(call)]


def _layout(call: E.Call) -> str:
    layout = call.args[7]
    assert isinstance(layout, E.StringImm)
    return layout.value


def _text(tile: Tile) -> str:
    return f"{'x'.join(map(str, tile.shape))} ({tile.layout})"


class _Unknown(Exception):
    """A call whose operands are not followed."""


class _Calls(Mutator):
    def __init__(
        self,
        buffers: Mapping[E.Var, Buffer],
        roots: Mapping[E.Var, E.Var],
        tiles: Mapping[E.Var, Tile],
    ) -> None:
        self.buffers = buffers
        self.roots = roots
        self.tiles = tiles

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        call = S.called_by(statement, _CALLS)
        if call is None:
            return statement
        try:
            return self.multiplied(call) if _kind(call) == "mma" else self.moved(call)
        except _Unknown:
            return statement

    def fragment(self, data: E.PrimExpr) -> tuple[Buffer, Tile]:
        tile = self.tiles.get(self.roots.get(data, data)) if isinstance(data, E.Var) else None
        buffer = self.buffers.get(data) if isinstance(data, E.Var) else None
        if tile is None or buffer is None or not buffer.scope().startswith(_PREFIX):
            raise _Unknown
        return buffer, tile

    def moved(self, call: E.Call) -> S.Stmt:
        """A fragment is filled, loaded or stored."""
        kind, number = _kind(call), call.args[4]
        buffer, tile = self.fragment(call.args[0])
        rows, columns = tile.sides(buffer.scope())
        i, j = E.Var("i", "int32"), E.Var("j", "int32")
        element = self.element(buffer, number, rows, columns, i, j)
        if kind == "store":
            tile = Tile(tile.shape, _layout(call))
        if kind == "fill":
            body = S.store_to(element, cast(buffer.dtype, call.args[5]), call.span)
        else:
            place = (j, i) if kind == "store" and _layout(call) == "col_major" else (i, j)
            memory = self.memory(call.args[5], call.args[6], *place)
            target, source = (element, memory) if kind == "load" else (memory, element)
            body = S.store_to(target, source, call.span)
        return _marked(kind, tile, loop_nest((i, j), (const(rows), const(columns)), body), call)

    def multiplied(self, call: E.Call) -> S.Stmt:
        """D = A @ B + C."""
        indices = {name: E.Var(name, "int32") for name in "ijk"}
        i, j, k = indices.values()

        def operand(position: int, row: E.Var, column: E.Var) -> E.BufferLoad:
            buffer, tile = self.fragment(call.args[position])
            if tile.layout == "col_major":
                row, column = column, row
            sides = tile.sides(buffer.scope())
            return self.element(buffer, call.args[position + 1], *sides, row, column)

        d, a, b, c = operand(0, i, j), operand(2, i, k), operand(4, k, j), operand(6, i, j)
        _, tile = self.fragment(call.args[2])
        m, n, depth = tile.shape
        product = multiply(cast(d.dtype, a), cast(d.dtype, b))
        body = loop_nest((k,), (const(depth),), S.store_to(d, add(d, product), call.span))
        same = d.buffer is c.buffer and same_expressions(d.indices, c.indices)
        if not same:
            body = S.sequence(S.store_to(d, c, call.span), body)
        return _marked("mma", tile, loop_nest((i, j), (const(m), const(n)), body), call)

    def element(
        self, buffer: Buffer, number: E.PrimExpr, rows: int, columns: int, i: E.Var, j: E.Var
    ) -> E.BufferLoad:
        """An element of the fragment of a number, in the buffer that fragments divide."""
        sizes = [part.value if isinstance(part, E.IntImm) else 0 for part in buffer.shape]
        if sizes[-2:] == [rows, columns] and prod(sizes[:-2]) == 1:
            return E.BufferLoad(buffer, (*[const(0)] * (len(sizes) - 2), i, j))
        if buffer.data in self.roots or buffer.strides or not all(sizes):
            raise _Unknown
        indices: list[E.PrimExpr] = []
        if len(sizes) > 1 and not (sizes[-2] % rows or sizes[-1] % columns):
            across = sizes.pop() // columns
            place = add(multiply(floordiv(number, across), rows), i)
            indices.append(add(multiply(floormod(number, across), columns), j))
        else:
            place = add(multiply(number, rows * columns), add(multiply(i, columns), j))
        for size in reversed(sizes[1:]):
            indices.insert(0, floormod(place, size))
            place = floordiv(place, size)
        return E.BufferLoad(buffer, (place, *indices))

    def memory(self, pointer: Any, stride: E.PrimExpr, row: E.Var, column: E.Var) -> E.BufferLoad:
        """An element of the tile that begins where a pointer points to."""
        name = operator_name(pointer)
        args: Any = getattr(pointer, "args", ())
        if name == "address_of" and isinstance(args[0], E.BufferLoad):
            buffer, first = args[0].buffer, args[0].indices
            offset = buffer.offset_of(first)[0]
        elif name == "tvm_access_ptr" and args[1] in self.buffers:
            buffer, offset = self.buffers[args[1]], args[2]
            first = (const(0),) * len(buffer.shape)
            if not same_expression(offset, buffer.elem_offset):
                first = ()
        else:
            raise _Unknown
        across = buffer.strides[-2:-1] if buffer.strides else buffer.shape[-1:]
        if len(first) > 1 and across and same_expression(across[0], stride):
            inside = (add(first[-2], row), add(first[-1], column))
            return E.BufferLoad(buffer, (*first[:-2], *inside))
        root = self.buffers.get(self.roots.get(buffer.data, buffer.data))
        if root is None or not all(isinstance(part, E.IntImm) for part in root.shape):
            raise _Unknown
        count = prod(part.value for part in root.shape if isinstance(part, E.IntImm))
        flat = decl_buffer((count,), buffer.dtype, root.name, data=root.data)
        return E.BufferLoad(flat, (add(offset, add(multiply(row, stride), column)),))


def _marked(kind: str, tile: Tile, body: S.Stmt, call: E.Call) -> S.Stmt:
    text = " ".join(map(str, (kind, *tile.shape, tile.layout)))
    return S.AttrStmt(E.StringImm(kind), MATRIX_UNIT, E.StringImm(text), body, span=call.span)


def by_one_lane(func: PrimFunc) -> PrimFunc:
    """The function where of each warp one thread alone does what a matrix unit does for all."""
    return func.with_body(_FirstLane().rewrite(func.body))


class _FirstLane(Lanes):
    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key != MATRIX_UNIT or self.lane is None:
            return self.rewrite_children(statement)
        lane: E.PrimExpr = self.lane
        first = self.lanes.min
        if not is_const_int(self.lanes.extent, WARP_SIZE):
            lane, first = floormod(lane, WARP_SIZE), const(0)
        return S.IfThenElse(equal(lane, first), statement, span=statement.span)
