"""Saying in loops what the matrix instructions of PTX do.

The threads of a warp run such an instruction together: `ldmatrix` takes rows from the addresses
that lanes tell it and gives their elements to other lanes, `mma` multiplies tiles whose elements
are in the registers of all. What a lane's operands are is a function of the lane, so that the whole
instruction is a loop over elements, under a mark, run by the first lane on memory of scope "warp".
A language that has the instruction writes it for the mark, and keeps that memory in registers
(`registers_of_lanes`). What each lane does for itself, to fill and store a tile, is a loop of its
own. Which lane has which element is told by "Warp Level Matrix Instructions" in the PTX ISA.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any

from mlcweb.analysis.threads import WARP_MATRIX
from mlcweb.arith import Analyzer
from mlcweb.arith.pattern import linear_in
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import on
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.lower.warp_registers import Lanes
from mlcweb.schedule.rewriting.nests import loop_nest
from mlcweb.tir import dtype as dtypes
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
    subtract,
)
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, decl_buffer, row_major_strides
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import substitute

_CALLS = {
    "ptx_ldmatrix": "ldmatrix", "ptx_legacy.ldmatrix": "ldmatrix",
    "ptx_mma": "mma", "ptx_legacy.mma": "mma",
    "mma_fill": "fill", "cuda.mma_fill_legacy": "fill",
    "mma_store": "store", "cuda.mma_store_legacy": "store",
}  # fmt: skip
_REGISTERS = {"ldmatrix": (3,), "mma": (6, 8, 10), "fill": (1,), "store": (3,)}
"""Which arguments point to registers; the next one is an offset."""

STORED = 8
"""The registers of each lane that `mma_store` stores: 16 x 16 elements."""

_TYPES = {
    "fp16": ("f16", "float16"), "bf16": ("bf16", "bfloat16"), "tf32": ("tf32", "float32"),
    "fp32": ("f32", "float32"), "fp64": ("f64", "float64"), "int8": ("s8", "int8"),
    "uint8": ("u8", "uint8"), "int32": ("s32", "int32"), "e4m3": ("e4m3", "float8_e4m3fn"),
    "e5m2": ("e5m2", "float8_e5m2"),
}  # fmt: skip
_TYPES |= {dtype: (short, dtype) for short, dtype in _TYPES.values() if short != "tf32"}
"""The types of operands as calls have them: what PTX calls them, and the type of their buffers."""

_PRODUCTS = (
    ("f16", "m16n8k8 m16n8k16", "f16 f32"),
    ("bf16", "m16n8k8 m16n8k16", "f32"),
    ("tf32", "m16n8k4 m16n8k8", "f32"),
    ("f64", "m8n8k4", "f64"),
    ("s8 u8", "m8n8k16 m16n8k16 m16n8k32", "s32"),
    ("e4m3 e5m2", "m16n8k32", "f32"),
)
"""Types of A and B, shapes, and types of C, as PTX names them."""


def sizes_of(shape: str) -> tuple[int, int, int]:
    """The sides of a product, C (m x n) += A (m x k) @ B (k x n), from "m16n8k16"."""
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


def lower_warp_matrices(func: PrimFunc) -> PrimFunc:
    """Loops over elements for the calls of `T.ptx_ldmatrix`, `T.ptx_mma`, `T.mma_fill` and
    `T.mma_store`.

    Raises a TVMError for operands that are not followed, and for threads that are no warp.
    """
    calls = [call for part in S.statements_in(func.body) if (call := _call(part)) is not None]
    if not calls:
        return func
    buffers = func.buffers_by_data()
    own = {
        call.args[at]
        for call in calls
        for at in _REGISTERS[_kind(call)]
        if call.args[at] in buffers and buffers[call.args[at]].scope().startswith("local")
    }
    if own:
        func = func.with_body(_LanesBuffers({buffers[data] for data in own}).rewrite(func.body))
        buffers = func.buffers_by_data()
    return func.with_body(_Calls(buffers).rewrite(func.body))


def _call(statement: S.Stmt) -> E.Call | None:
    return S.called_by(statement, _CALLS)


def _kind(call: E.Call) -> str:
    return _CALLS[operator_name(call)]


def _number(value: Any) -> int:
    return value.value if isinstance(value, E.IntImm) else -1


class _LanesBuffers(Lanes):
    """Makes buffers that each thread has for itself one of the warp, by lanes and registers."""

    def __init__(self, buffers: set[Buffer]) -> None:
        super().__init__()
        self.old = {buffer.data: buffer for buffer in buffers}
        self.new: dict[E.Var, Buffer] = {}
        for data, buffer in self.old.items():
            shape = (const(WARP_SIZE), reduce(multiply, buffer.shape, const(1)))
            self.new[data] = decl_buffer(shape, buffer.dtype, buffer.name, scope="warp")

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.new.get(buffer.data, buffer)

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        return self.new[var].data if var in self.new else var

    @on(E.BufferLoad, S.BufferStore)
    def element(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.access(node)
        if node.buffer.data not in self.old:
            return new
        return replace(new, indices=(self.index(node), _place(node.buffer, new.indices)))

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        new = self.access(region)
        if region.buffer.data not in self.old:
            return new
        return replace(new, region=tuple(Range(const(0), size) for size in new.buffer.shape))

    def index(self, node: Node) -> E.PrimExpr:
        if self.lane is None:
            raise TVMError("Registers of a warp are used outside of its threads", node.span)
        return subtract(self.lane, self.lanes.min)

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        new: Any = self.rewrite_children(statement)
        call = _call(statement)
        if call is None:
            return new
        args = [*new.value.args]
        for at in _REGISTERS[_kind(call)]:
            buffer = self.old.get(call.args[at])
            if buffer is not None:
                count = subtract(self.new[buffer.data].shape[1], const(_tiled(call)))
                args[at + 1] = add(multiply(self.index(statement), count), args[at + 1])
        return replace(new, value=replace(new.value, args=tuple(args)))


class LoopsOfLanes(Lanes):
    """Writes what the threads of a warp do together as loops. An operand is a function of the lane,
    as it stands in the program."""

    def check_lanes(self, what: str, count: int, span: Span | None) -> None:
        """Refuse an instruction of so many threads where others are."""
        if self.lane is None or not is_const_int(self.lanes.extent, count):
            threads = "no loop" if self.lane is None else f"a loop of {self.lanes.extent}"
            raise TVMError(
                f"{what} is done by the {count} threads of a warp, those of one loop over "
                f"threadIdx.x; here is {threads} around it",
                span,
            )

    def marked(self, kind: str, nest: Nest, body: S.Stmt) -> S.Stmt:
        assert self.lane is not None
        alone = S.IfThenElse(equal(self.lane, self.lanes.min), nest.around(body))
        text = E.StringImm(kind)
        return S.AttrStmt(text, WARP_MATRIX, text, alone, span=body.span)

    @property
    def number(self) -> E.PrimExpr:
        """The lane that a thread is."""
        assert self.lane is not None
        return subtract(self.lane, self.lanes.min)

    def of_lane(self, value: E.PrimExpr, lane: E.PrimExpr) -> E.PrimExpr:
        """What a lane has for a value of the program."""
        assert self.lane is not None
        return substitute(self.told(value), {self.lane: add(lane, self.lanes.min)})


class _Calls(LoopsOfLanes):
    def __init__(self, buffers: dict[E.Var, Buffer]) -> None:
        super().__init__()
        self.by_data = buffers

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        call = _call(statement)
        if call is None:
            return statement
        self.check_lanes(operator_name(call), WARP_SIZE, call.span)
        return getattr(self, _kind(call))(call)

    # Instructions

    def ldmatrix(self, call: E.Call) -> S.Stmt:
        """Of each matrix of 8 x 8 pairs of bytes, eight lanes tell where a row of 16 bytes is."""
        turns, count = _number(call.args[0]) > 0, _number(call.args[1])
        size = dtypes.size_in_bytes(self.pointed(call, 3).dtype)
        if _number(call.args[0]) < 0:
            raise _refusal(call, f"transposes or does not, which {call.args[0]} leaves open")
        if count not in ((4,) if turns and size == 1 else (1, 2, 4)) or size > 2:
            raise _refusal(call, f"loads 1, 2 or 4 matrices of 2 bytes, not {count} of {size}")
        if turns and size == 1:
            return self.bytes_by_column(call)
        word = 4 // size
        nest = Nest(lane=WARP_SIZE, register=count * word)
        lane, register = nest.loops
        row, column = floordiv(lane, const(4)), multiply(floormod(lane, const(4)), word)
        column = add(column, floormod(register, const(word)))
        if turns:
            row, column = column, row
        row = add(multiply(floordiv(register, const(word)), 8), row)
        element = self.register(call, 3, lane, register, nest)
        source = self.memory(call, 5, self.of_lane(call.args[6], row), column, nest)
        return self.marked(
            f"ldmatrix {count} {int(turns)}", nest, S.store_to(element, source, call.span)
        )

    def bytes_by_column(self, call: E.Call) -> S.Stmt:
        """The instruction would turn pairs of bytes, so that each lane loads its own one by one.
        What the call says of the address is how far the next row is."""
        nest = Nest(register=16)
        [register], lane = nest.loops, self.number
        half = floormod(floordiv(register, const(4)), const(2))
        row = add(multiply(half, 16), multiply(floormod(lane, const(4)), 4))
        row = multiply(add(row, floormod(register, const(4))), call.args[6])
        column = add(floordiv(lane, const(4)), multiply(floordiv(register, const(8)), 8))
        element = self.register(call, 3, lane, register, nest)
        return nest.around(S.store_to(element, self.memory(call, 5, row, column, nest), call.span))

    def mma(self, call: E.Call) -> S.Stmt:
        shape, *layouts, a_type, b_type, c_type = (getattr(x, "value", "") for x in call.args[:6])
        none = ("", "")
        types = [_TYPES.get(part, none)[0] for part in (a_type, b_type, c_type)]
        rows = [row for row in _PRODUCTS if {*types[:2]} <= {*row[0].split()}]
        if not any(shape in row[1].split() and types[2] in row[2].split() for row in rows):
            shapes = " or ".join(f"{row[1].replace(' ', ', ')} to {row[2]}" for row in rows)
            raise _refusal(
                call,
                f"multiplies {a_type} by {b_type} in {shapes or 'no shape'} here, not {shape} to "
                f"{c_type}",
            )
        if layouts != ["row", "col"]:
            raise _refusal(call, f'takes A by "row" and B by "col", not {layouts}')
        for at, said in ((6, a_type), (8, b_type), (10, c_type)):
            buffer = self.pointed(call, at)
            if buffer.dtype != _TYPES[said][1]:
                raise _refusal(call, f'takes "{buffer.name}" for {said}, which is {buffer.dtype}')
        if any(_number(part) != 0 for part in call.args[12:13]):
            raise _refusal(call, "has no saturation here; leave it out")
        m, n, depth = sizes_of(shape)
        nest = Nest(i=m, j=n, k=depth)
        i, j, k = nest.loops
        word = const(max(1, 4 // dtypes.size_in_bytes(self.pointed(call, 6).dtype)))
        group, half = multiply(floormod(i, const(8)), 4), floordiv(i, const(8))
        quad, inside = multiply(word, 4), floormod(k, word)
        along, block = floordiv(floormod(k, quad), word), multiply(floordiv(k, quad), word)
        a_register = add(add(inside, multiply(half, word)), multiply(block, m // 8))
        a = self.register(call, 6, add(group, along), a_register, nest)
        b = self.register(call, 8, add(multiply(j, 4), along), add(inside, block), nest)
        c_lane = add(group, floordiv(j, const(2)))
        c_register = add(floormod(j, const(2)), multiply(half, 2))
        c = self.register(call, 10, c_lane, c_register, nest)
        value = add(c, multiply(cast(c.dtype, a), cast(c.dtype, b)))
        return self.marked(" ".join(("mma", shape, *types)), nest, S.store_to(c, value, call.span))

    def fill(self, call: E.Call) -> S.Stmt:
        nest = Nest(register=_tiled(call))
        element = self.register(call, 1, self.number, nest.loops[0], nest)
        return nest.around(S.store_to(element, const(0, element.dtype), call.span))

    def store(self, call: E.Call) -> S.Stmt:
        if [_number(part) for part in call.args[:2]] != [16, 16]:
            raise _refusal(call, f"stores 16 x 16 elements, not {call.args[0]} x {call.args[1]}")
        nest = Nest(register=STORED)
        [register], lane = nest.loops, self.number
        half = floormod(floordiv(register, const(2)), const(2))
        row = add(multiply(half, 8), floordiv(lane, const(4)))
        column = add(multiply(floordiv(register, const(4)), 8), floormod(register, const(2)))
        column = add(column, multiply(floormod(lane, const(4)), 2))
        target = self.memory(call, 2, multiply(row, call.args[5]), column, nest)
        element = self.register(call, 3, lane, register, nest)
        return nest.around(S.store_to(target, element, call.span))

    # Operands

    def pointed(self, call: E.Call, at: int) -> Buffer:
        data = call.args[at]
        buffer = self.by_data.get(data) if isinstance(data, E.Var) else None
        if buffer is None:
            raise _refusal(call, f"has {data} for an operand, which is no buffer's data")
        return buffer

    def register(
        self, call: E.Call, at: int, lane: E.PrimExpr, register: E.PrimExpr, nest: Nest
    ) -> E.BufferLoad:
        """A register of a lane: one of the operand that an argument points to."""
        buffer = self.pointed(call, at)
        if not buffer.scope().startswith("warp"):
            raise _refusal(
                call,
                f'has operands in registers, and "{buffer.name}" has scope "{buffer.scope()}"; '
                'give it scope "warp", and 32 lanes by their registers as its last dimensions',
            )
        place = add(self.of_lane(call.args[at + 1], lane), multiply(lane, _tiled(call)))
        return nest.element(buffer, subtract(add(place, register), buffer.elem_offset))

    def memory(
        self, call: E.Call, at: int, offset: E.PrimExpr, column: E.PrimExpr, nest: Nest
    ) -> E.BufferLoad:
        """An element so far from where an argument points to, in a column."""
        pointer: Any = call.args[at]
        name = operator_name(pointer)
        if name == "address_of" and isinstance(pointer.args[0], E.BufferLoad):
            buffer, first = pointer.args[0].buffer, list(map(self.told, pointer.args[0].indices))
        elif name == "tvm_access_ptr" and pointer.args[1] in self.by_data:
            buffer = self.by_data[pointer.args[1]]
            first = [const(0)] * len(buffer.shape)
            offset = add(offset, subtract(self.told(pointer.args[2]), buffer.elem_offset))
        else:
            buffer = self.pointed(call, at)
            first = [const(0)] * len(buffer.shape)
            offset = subtract(offset, buffer.elem_offset)
        if len(first) < 2 or not buffer.strides:
            return nest.element(buffer, add(add(offset, _place(buffer, first)), column))
        # Rows are so many strides apart, which is a symbol, and what is left is in the row.
        stride: Any = buffer.strides[-2]
        parts = linear_in(offset, stride) if isinstance(stride, E.Var) else None
        if parts is None:
            raise _refusal(
                call, f'has an address in "{buffer.name}" that is not followed: {offset}'
            )
        row, inside = add(first[-2], parts[0]), add(add(first[-1], parts[1]), column)
        indices = (*first[:-2], nest.analyzer.simplify(row), nest.analyzer.simplify(inside))
        return E.BufferLoad(buffer, indices)


class Nest:
    """Loops over elements, by their extents."""

    def __init__(self, **extents: int) -> None:
        self.loops = [E.Var(name, "int32") for name in extents]
        self.extents = [const(extent) for extent in extents.values()]
        pairs = zip(self.loops, self.extents, strict=True)
        self.analyzer = Analyzer({var: Range(const(0), extent) for var, extent in pairs})

    def around(self, body: S.Stmt) -> S.Stmt:
        return loop_nest(self.loops, self.extents, body)

    def element(self, buffer: Buffer, place: E.PrimExpr) -> E.BufferLoad:
        """The element at a place in a buffer's memory."""
        indices: list[E.PrimExpr] = []
        for extent in reversed(buffer.shape[1:]):
            indices.insert(0, self.analyzer.simplify(floormod(place, extent)))
            place = self.analyzer.simplify(floordiv(place, extent))
        return E.BufferLoad(buffer, (self.analyzer.simplify(place), *indices))


def _place(buffer: Buffer, indices: Sequence[E.PrimExpr]) -> E.PrimExpr:
    """How far an element of a buffer is from its first one."""
    strides = row_major_strides(buffer)
    parts = (multiply(*pair) for pair in zip(indices, strides, strict=True))
    return reduce(add, parts, const(0))


def _tiled(call: E.Call) -> int:
    """How many registers of a lane follow those of the one before, where the call says so: the
    offset of others is a function of the lane."""
    kind = _kind(call)
    return _number(call.args[0]) if kind == "fill" else STORED if kind == "store" else 0


def _refusal(call: E.Call, reason: str) -> TVMError:
    return TVMError(f"{operator_name(call)} {reason}", call.span)
