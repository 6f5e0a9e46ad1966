"""The pass `tvm.s_tir.transform.MergeSharedMemoryAllocations`: the dynamic shared memory of a
launch is one allocation, in which buffers that are not needed at once overlap.

Memory is in pieces, and a piece in layers, one over the other: the buffers of a layer lie side by
side, and those of the next one begin when these are done with.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from operator import attrgetter

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.storage_rewrite import Uses, first_and_last
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, multiply
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name

SCOPE = "shared.dyn"
_MATCH_RANGE = 16
"""How many times larger a piece may be that a buffer gets."""

_SMALL = 4
"""Buffers of up to so many bytes share nothing."""


def merge_shared_memory(func: PrimFunc) -> PrimFunc:
    """The function with one allocation of dynamic shared memory in each launch; buffers are flat.

    Raises:
        TVMError: a buffer is not flat, or its size is not constant.
    """
    return func.with_body(_Launches().rewrite(func.body))


class _Launches(Mutator):
    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if not S.is_launch(statement):
            return self.rewrite_children(statement)
        uses = Uses(kept=())
        uses.visit(statement)
        buffers = {d: b for d, b in uses.buffers.items() if b.scope() == SCOPE}
        if len(buffers) < 2:
            return statement
        offsets, size = _offsets(_pieces(uses, buffers), buffers)
        merged = decl_buffer((size,), "uint8", "buf_dyn_shmem", scope=SCOPE)
        rewriting = _Merging(merged, offsets, buffers)
        body = rewriting.rewrite(statement.body)
        for buffer in rewriting.parts.values():
            body = S.DeclBuffer(buffer, body)
        return replace(statement, body=S.AllocBuffer(merged, body))


@dataclass(eq=False)
class _Piece:
    """Memory of so many bytes, as layers of the data of buffers."""

    nbytes: int
    layers: list[list[E.Var]]


_SIZE = attrgetter("nbytes")


def _pieces(uses: Uses, buffers: dict[E.Var, Buffer]) -> list[_Piece]:
    """The pieces of memory of a launch: the smallest first, and at the end those that are shared by
    none."""
    first, last = (
        {at: [data for data in group if data in buffers] for at, group in every.items()}
        for every in first_and_last(uses.points)
    )
    free: list[_Piece] = []
    small: list[_Piece] = []
    pieces: dict[E.Var, _Piece] = {}

    def place(data: E.Var) -> None:
        nbytes = _bytes(buffers[data])
        if nbytes <= _SMALL:
            small.append(_Piece(nbytes, [[data]]))
        else:
            pieces[data] = _piece(free, data, nbytes)

    def release(data: E.Var) -> None:
        if data in pieces:
            insort(free, pieces[data], key=_SIZE)

    for point in uses.points:
        starting = first.get(point.statement, []) if point.begins else []
        ending = last.get(point.statement, []) if point.ends else []
        at_once = [data for data in ending if data in starting]
        for data in ending:
            if data not in at_once:
                release(data)
        for data in starting:
            place(data)
        for data in at_once:
            release(data)
    return free + small


def _piece(free: list[_Piece], data: E.Var, nbytes: int) -> _Piece:
    """A piece for a buffer: the smallest that is large enough, else some smaller ones, side by
    side, else a new one."""
    start = bisect_left(free, nbytes, key=_SIZE)
    if start < bisect_right(free, nbytes * _MATCH_RANGE, key=_SIZE):
        piece = free.pop(start)
        piece.layers.append([data])
        return piece
    layers: list[list[E.Var]] = []
    total = 0
    while start > 0 and total < nbytes:
        start -= 1
        piece = free.pop(start)
        total += piece.nbytes
        layers += ([] for _ in range(len(piece.layers) - len(layers)))
        for layer, more in zip(layers, piece.layers, strict=False):
            layer += more
    return _Piece(max(nbytes, total), [*layers, [data]])


def _offsets(pieces: list[_Piece], buffers: dict[E.Var, Buffer]) -> tuple[dict[E.Var, int], int]:
    """Where buffers begin, in bytes, and how many there are of these."""
    offsets: dict[E.Var, int] = {}
    end = 0
    for piece in pieces:
        furthest = end
        for layer in piece.layers:
            at = end
            for data in layer:
                at += -at % buffers[data].data_alignment
                offsets[data] = at
                at += _bytes(buffers[data])
            furthest = max(furthest, at)
        end = furthest
    return offsets, end


def _bytes(buffer: Buffer) -> int:
    size = buffer.shape[0] if len(buffer.shape) == 1 else None
    if not isinstance(size, E.IntImm):
        raise TVMError(
            f'"{buffer.name}" has shape ({", ".join(map(str, buffer.shape))}); shared memory that '
            "is merged is flat, and its size constant: run FlattenBuffer first",
            buffer.span,
        )
    return size.value * dtypes.size_in_bytes(buffer.dtype)


class _Merging(Mutator):
    """Puts buffers, by their data, where they begin in one. `parts` are what they become, the last
    one that is used first."""

    def __init__(
        self, merged: Buffer, offsets: dict[E.Var, int], buffers: dict[E.Var, Buffer]
    ) -> None:
        self.merged = merged
        self.offsets = offsets
        self.types = {data: buffer.dtype for data, buffer in buffers.items()}
        self.parts: dict[Buffer, Buffer] = {}

    def part(self, buffer: Buffer) -> Buffer:
        if buffer not in self.parts:
            self.parts[buffer] = replace(buffer, data=self.merged.data)
        return self.parts[buffer]

    def start(self, data: E.Var, dtype: str) -> int:
        return self.offsets[data] // dtypes.size_in_bytes(dtype)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        new = self.rewrite_children(statement)
        return new.body if statement.buffer.data in self.offsets else new

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new, data = self.rewrite_children(node), node.buffer.data
        if data not in self.offsets:
            return new
        [index] = new.indices
        index = add(index, const(self.start(data, node.buffer.dtype), index.dtype))
        return replace(new, buffer=self.part(node.buffer), indices=(index,))

    @on(S.DeclBuffer)
    def declaration(self, statement: S.DeclBuffer) -> S.Stmt:
        new = self.rewrite_children(statement)
        if statement.buffer.data not in self.offsets:
            return new
        return replace(new, buffer=self.part(statement.buffer))

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        """Pointers and asynchronous copies begin in the one allocation."""
        name, arguments = operator_name(call), list(call.args)
        where = {"tvm_access_ptr": 1, "ptx_cp_async": 0, "ptx_legacy.cp_async": 0}.get(name)
        data = arguments[where] if where is not None else None
        if where is None or not isinstance(data, E.Var) or data not in self.offsets:
            return self.rewrite_children(call)
        arguments[where] = self.merged.data
        offset, dtype = arguments[where + 1], self.types[data]
        if name == "tvm_access_ptr":
            dtype = arguments[0].dtype
        offset = add(const(self.start(data, dtype), offset.dtype), offset)
        if name != "tvm_access_ptr":  # which counts elements; copies now count bytes
            offset = multiply(offset, const(dtypes.size_in_bytes(dtype), offset.dtype))
        arguments[where + 1] = offset
        return replace(call, args=tuple(map(self.rewrite, arguments)))

    @on(E.Var)
    def pointer(self, var: E.Var) -> E.Var:
        if var in self.offsets:
            raise TVMError(
                f'"{var.name}" points to shared memory that is merged; use its access_ptr', var.span
            )
        return var
