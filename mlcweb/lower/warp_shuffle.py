"""The pass that carries out `T.tvm_warp_shuffle` and its kin, by which the threads of a warp read
each other's values:

    x = T.tvm_warp_shuffle_down(mask, value, delta, width, 32)

A warp is 32 threads that follow each other along x, then y, then z, and each `width` of them read
among themselves. Whoever would read beyond them, or beyond the block, gets its own value. GPUs read
registers; elsewhere each thread puts its value into shared memory, and reads that of another after
a barrier. All threads of the block have to come there, so the mask of those that do says nothing.
"""

from __future__ import annotations

from math import prod

from mlcweb.analysis.threads import WARP_EXCHANGE, is_shuffle, shuffles
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import on
from mlcweb.lower.reduction_tree import ALL_LANES
from mlcweb.lower.thread_axes import WARP_SIZE, ThreadError
from mlcweb.lower.thread_exchange import ThreadExchange
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, const, floormod, select
from mlcweb.tir.buffer import decl_buffer
from mlcweb.tir.builtins import OPS
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name


def lower_warp_shuffle(func: PrimFunc, barriers: bool = False, warp: int = 1) -> PrimFunc:
    """The function in which threads read each other's values through memory, or where `warp` is
    more than 1 through registers; it has no blocks.

    With `barriers` threads wait for each other, else the pass ThreadSync has to see to that. Raises
    a ThreadError where not all threads of a block of constant size come to a shuffle.
    """
    if not shuffles(func.body):
        return func
    return func.with_body(_Shuffles(barriers, warp).rewrite(func.body))


class _Shuffles(ThreadExchange):
    stores: list[S.BufferStore] | None = None
    """What threads put into memory before the statement; None where not all compute a value."""

    @on(S.BufferStore, S.Evaluate)
    def leaf(self, statement: S.BufferStore | S.Evaluate) -> S.Stmt:
        self.stores = []
        return self.exchanged(self.rewrite_children(statement), self.stores, shuffles(statement))

    @on(S.LetStmt)
    def named(self, let: S.LetStmt) -> S.Stmt:
        self.stores = stores = []
        value = self.rewrite(let.value)
        self.stores = None
        new = replace(let, value=value, body=self.rewrite(let.body))
        return self.exchanged(new, stores, shuffles(let.value))

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        self.stores = stores = []
        condition = self.rewrite(branch.condition)
        self.stores = None
        others = branch.else_case
        new = replace(
            branch,
            condition=condition,
            then_case=self.rewrite(branch.then_case),
            else_case=None if others is None else self.rewrite(others),
        )
        return self.exchanged(new, stores, shuffles(branch.condition))

    def exchanged(self, statement: S.Stmt, stores: list[S.BufferStore], exchanges: bool) -> S.Stmt:
        """A statement after what threads put into memory for it, around which that memory is."""
        self.stores = None
        if not exchanges:
            return statement
        if not stores:
            lanes = const(WARP_SIZE)
            return S.AttrStmt(const(0), WARP_EXCHANGE, lanes, statement, span=statement.span)
        return self.in_steps([*stores, statement], [store.buffer for store in stores])

    @on(E.Call)
    def call(self, call: E.Call) -> Node:
        if is_shuffle(call):
            return self.shuffle(call)
        if operator_name(call) == "tvm_warp_activemask":
            return const(ALL_LANES, "uint32")
        if operator_name(call) == "if_then_else":
            condition = self.rewrite(call.args[0])
            return replace(call, args=(condition, *map(self.sometimes, call.args[1:])))
        return self.rewrite_children(call)

    @on(E.Let)
    def let(self, let: E.Let) -> E.Let:
        return replace(let, value=self.rewrite(let.value), body=self.sometimes(let.body))

    def sometimes(self, value: E.PrimExpr) -> E.PrimExpr:
        """A part that is computed in some threads alone, or by names that are known there."""
        stores, self.stores = self.stores, None
        new = self.rewrite(value)
        self.stores = stores
        return new

    def shuffle(self, call: E.Call) -> E.PrimExpr:
        kind = operator_name(call)
        if self.stores is None:
            raise ThreadError(
                f"T.{kind} is in a part of an expression, or of a loop, that not all threads "
                "compute; store its value first, and use that there",
                call.span,
            )
        if len(call.args) != 5 or not isinstance(width := call.args[3], E.IntImm):
            raise ThreadError(
                f"T.{kind} takes a mask, a value, a lane or distance, a constant width and the "
                f"size of warps, and not ({', '.join(map(str, call.args))})",
                call.span,
            )
        if width.value not in (1, 2, 4, 8, 16, 32):
            raise ThreadError(
                f"T.{kind} is among {width.value} threads; a power of two up to {WARP_SIZE} read "
                "each other's values",
                call.span,
            )
        value, where = self.rewrite(call.args[1]), cast("int32", self.rewrite(call.args[2]))
        thread, count = self.thread(call)
        source = _source(kind, thread, where, width.value)
        if count % width.value:
            source = select(source < count, source, thread)
        if self.warp > 1:
            if kind == "tvm_warp_shuffle" or width.value != WARP_SIZE or count % WARP_SIZE:
                kind, where = "tvm_warp_shuffle", floormod(source, WARP_SIZE)
            whole = const(WARP_SIZE)
            mask = const(ALL_LANES, "uint32")
            return E.Call(value.dtype, OPS[kind], (mask, value, where, whole, whole))
        virtual = [loop for tag, loop in self.axes.items() if tag.startswith("vthread")]
        shape = (*(loop.extent for loop in virtual), const(count))
        memory = decl_buffer(shape, value.dtype, "shuffled", scope="shared")
        own = [loop.loop_var - loop.min for loop in virtual]
        self.stores.append(S.BufferStore(memory, value, (*own, thread), span=call.span))
        return E.BufferLoad(memory, (*own, source))

    def thread(self, call: E.Call) -> tuple[E.PrimExpr, int]:
        """The number of the thread in its block, and how many there are."""
        loops = [self.axes[tag] for tag in sorted(self.axes) if tag.startswith("threadIdx")]
        extents = [loop.extent.value for loop in loops if isinstance(loop.extent, E.IntImm)]
        if not loops or len(extents) < len(loops):
            raise ThreadError(
                f"T.{operator_name(call)} is read by threads of a block, whose loops are bound to "
                "threadIdx and have constant extents",
                call.span,
            )
        number: E.PrimExpr = const(0)
        for loop, extent in zip(reversed(loops), reversed(extents), strict=True):
            number = number * extent + cast("int32", loop.loop_var - loop.min)
        return number, prod(extents)


def _source(kind: str, thread: E.PrimExpr, where: E.PrimExpr, width: int) -> E.PrimExpr:
    """The number of the thread whose value a thread reads."""
    lane = floormod(thread, width)
    if kind == "tvm_warp_shuffle":
        return thread - lane + floormod(where, width)
    if kind == "tvm_warp_shuffle_up":
        return select(lane >= where, thread - where, thread)
    if kind == "tvm_warp_shuffle_down":
        return select(lane + where < width, thread + where, thread)
    other = thread ^ where
    return select(other < thread - lane + width, other, thread)
