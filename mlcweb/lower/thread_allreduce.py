"""The pass that carries out `T.tvm_thread_allreduce`, a reduction across threads as TVM lowers it,
or as a script has it: the steps of a tree, after which all threads have the result.

    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
        T.tvm_thread_allreduce(T.uint32(n), *values, condition, *results, *threads)

Each of `n` values is reduced to the element of its result, over the axes of `threads`. A thread in
which the condition does not hold has the identity element instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.analysis.threads import is_allreduce, thread_tag
from mlcweb.ir.visitor import on
from mlcweb.lower.reduction_tree import reduction_tree
from mlcweb.lower.thread_axes import ThreadError
from mlcweb.lower.thread_exchange import ThreadExchange
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, is_const_int
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.reduction import CommReducer
from mlcweb.tir.substitute import variables_in

REDUCE_SCOPE = "reduce_scope"
"""The attribute of an allreduce that tells how it combines values."""


def lower_thread_allreduce(func: PrimFunc, barriers: bool = False, warp: int = 1) -> PrimFunc:
    """The function without calls of `T.tvm_thread_allreduce`; it has no blocks.

    With `barriers` threads wait for each other at each step, else the pass ThreadSync has to see to
    that. `warp` neighbours can read each other's registers. Raises a ThreadError where a call does
    not say what is reduced over which threads.
    """
    if not any(map(is_allreduce, S.statements_in(func.body))):
        return func
    return func.with_body(_Allreduces(barriers, warp).rewrite(func.body))


class _Allreduces(ThreadExchange):
    reducer: CommReducer | None = None

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key != REDUCE_SCOPE or not isinstance(statement.node, CommReducer):
            return self.rewrite_children(statement)
        outer, self.reducer = self.reducer, statement.node
        body = self.rewrite(statement.body)
        self.reducer = outer
        return body

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        if not is_allreduce(statement):
            return statement
        reducer, call = self.reducer, statement.value
        if reducer is None:
            raise ThreadError(
                "T.tvm_thread_allreduce does not say how it combines values; write it in "
                '`with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0):`',
                statement.span,
            )
        assert isinstance(call, E.Call)
        count = len(reducer.lhs)
        if not is_const_int(call.args[0], count) or len(call.args) < 2 * count + 2:
            raise ThreadError(
                f"T.tvm_thread_allreduce is called with ({', '.join(map(str, call.args))}), and "
                f"its reducer has {count} value(s): it takes this number, the values, a condition, "
                "the elements that they are reduced to, and the threads",
                statement.span,
            )
        values, condition = call.args[1 : count + 1], call.args[count + 1]
        results: list[Any] = list(call.args[count + 2 : 2 * count + 2])
        if not all(isinstance(result, E.BufferLoad) for result in results):
            raise ThreadError(
                "T.tvm_thread_allreduce reduces to elements of buffers, and not to "
                f"{', '.join(map(str, results))}",
                statement.span,
            )
        own = [
            if_then_else(condition, cast(var.dtype, value), identity)
            for var, value, identity in zip(
                reducer.lhs, values, reducer.identity_element, strict=True
            )
        ]
        reduced = self.reduced(call.args[2 * count + 2 :], statement)
        threads = [loop for loop in self.axes.values() if thread_tag(loop)]
        name = results[0].buffer.name
        tree = reduction_tree(
            reducer, own, name, threads, reduced, warp=self.warp, span=statement.span
        )
        stores = (
            S.store_to(result, cast(result.dtype, value), statement.span)
            for result, value in zip(results, tree.results, strict=True)
        )
        return self.in_steps([*tree.steps, S.sequence(*stores)], tree.memory)

    def reduced(self, threads: Sequence[E.PrimExpr], statement: S.Evaluate) -> list[S.For]:
        """The loops over threads that are reduced over."""
        variables = variables_in(*threads)
        loops = [loop for loop in self.axes.values() if loop.loop_var in variables]
        others = sorted(var.name for var in variables.difference(loop.loop_var for loop in loops))
        if others or not all(map(thread_tag, loops)):
            names = others or [loop.loop_var.name for loop in loops]
            raise ThreadError(
                f'T.tvm_thread_allreduce reduces over "{names[0]}", which is no loop around '
                "that is bound to threads of a block",
                statement.span,
            )
        for loop in loops:
            if not isinstance(loop.extent, E.IntImm):
                raise ThreadError(
                    f'T.tvm_thread_allreduce reduces over loop "{loop.loop_var.name}", of which it '
                    f"is not known how many threads it has: {loop.extent}",
                    statement.span,
                )
        return loops
