"""The pass by which threads reduce to one element together: each reduces what is its own in a
register, the values of all are combined by a tree, and the first thread stores the result."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mlcweb.analysis.threads import CROSS_THREAD_REDUCTION, is_thread_tag
from mlcweb.arith import Analyzer, conjuncts
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.lower.optimize.accesses import Touched
from mlcweb.lower.reduction_tree import reduction_tree
from mlcweb.lower.thread_axes import ThreadError, kernels_in, reduced_across_threads
from mlcweb.lower.thread_exchange import ThreadExchange
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, is_const_int, logical_and, subtract
from mlcweb.tir.buffer import Buffer, Range, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.operators import OPERATORS
from mlcweb.tir.reduction import CommReducer
from mlcweb.tir.substitute import BufferMutator, reads_memory, substitute, uses_any, variables_in


def reduce_through_shared_memory(func: PrimFunc, barriers: bool = False, warp: int = 1) -> PrimFunc:
    """Threads that reduce to one element reduce in loops of their own first, put their values side
    by side in shared memory, add up a few at a time, and the first thread brings the sum to the
    element. With `barriers` they wait for each other at each step, else the pass ThreadSync has to
    see to that. `warp` neighbours can read each other's registers: they reduce without shared
    memory first."""
    return func.with_body(_Reductions(barriers, warp).rewrite(func.body))


def share_results(func: PrimFunc) -> PrimFunc:
    """Memory that threads reduce to, and that one kernel alone uses, becomes shared: all threads
    may read the result there."""
    results = reduced_across_threads(func)
    if not results:
        return func
    touched = Touched()
    kernels = [touched.by(kernel) for kernel in kernels_in(func.body)]
    by_address = set(find_nodes(func.body, E.Var))
    results -= by_address | {buffer.data for buffer in func.parameter_buffers}
    accesses = (E.BufferLoad, S.BufferStore)
    buffers = {part.buffer for part in find_nodes(func.body, *accesses)}
    views = Counter(buffer.data for buffer in buffers)
    moved = {
        data
        for data in results
        if views[data] == 1 and sum(data in kernel for kernel in kernels) == 1
    }
    return func.with_body(_Shared(moved).rewrite(func.body))


class _Shared(BufferMutator):
    """Moves buffers, by their data, to shared memory."""

    def __init__(self, moved: set[E.Var]) -> None:
        self.moved = moved
        self.new: dict[Buffer, Buffer] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data not in self.moved or buffer.scope() not in ("local", "global"):
            return buffer
        if buffer not in self.new:
            self.new[buffer] = decl_buffer(buffer.shape, buffer.dtype, buffer.name, scope="shared")
        return self.new[buffer]


class _Reductions(ThreadExchange):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        own = self.own_loops(loop) if loop.thread_binding is None else None
        return own or super().loop(loop)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        """A condition on a whole reduction is one on its values: all threads go on together."""
        inside = branch.then_case
        if not isinstance(inside, S.AttrStmt) or inside.attr_key != CROSS_THREAD_REDUCTION:
            return self.rewrite_children(branch)
        return self.attribute(replace(inside, body=replace(branch, then_case=inside.body)))

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key != CROSS_THREAD_REDUCTION:
            return self.rewrite_children(statement)
        done = self.together(statement, ())
        if done is not None:
            return done
        return self.done(statement, [_by_the_first(statement.body, self.reduced(statement))])

    def done(
        self, reduction: S.AttrStmt, steps: Sequence[S.Stmt], memory: Sequence[Buffer] = ()
    ) -> S.Stmt:
        """A reduction in steps. If this pass makes threads wait after each, the last one tells that
        its result is for all of them."""
        if self.barriers:
            steps = [*steps[:-1], replace(reduction, body=steps[-1])]
        return self.in_steps(steps, memory)

    def own_loops(self, loop: S.For) -> S.Stmt | None:
        """The reduction of loops over nothing else, which a thread runs through by itself; None
        where these loops are others."""
        loops: list[S.For] = []
        body: S.Stmt = loop
        while isinstance(body, S.For) and body.thread_binding is None:
            loops.append(body)
            body = body.body
        condition = None
        if isinstance(body, S.IfThenElse) and body.else_case is None:
            condition, body = body, body.then_case
        if not isinstance(body, S.AttrStmt) or body.attr_key != CROSS_THREAD_REDUCTION:
            return None
        if condition is not None:
            body = replace(body, body=replace(condition, then_case=body.body))
        return self.together(body, loops)

    def reduced(self, statement: S.AttrStmt) -> list[S.For]:
        """The loops over threads that a reduction is over."""
        assert isinstance(statement.value, E.StringImm)
        return [self.axes[tag] for tag in statement.value.value.split()]

    def together(self, statement: S.AttrStmt, own: Sequence[S.For]) -> S.Stmt | None:
        """The reduction by all threads, each through some loops first; None where it is no sum,
        product, or extreme, or those loops are over elements, too."""
        reduced = self.reduced(statement)
        update = _update_in(statement.body)
        every = [*own, *reduced]
        if update is None or not _may_be_regrouped(statement.body, update, every):
            return None
        if not all(isinstance(loop.extent, E.IntImm) for loop in reduced):
            return None
        axes = {loop.loop_var for tag, loop in self.axes.items() if is_thread_tag(tag)}
        if not all(_reduces_only(loop, update, own, axes) for loop in own):
            return None
        if not all(_starts_first(statement.body, update, loop, every) for loop in own):
            return None
        threads = [loop for tag, loop in self.axes.items() if is_thread_tag(tag)]
        steps, buffers = _steps(statement.body, update, threads, reduced, own, self.warp)
        return self.done(statement, steps, buffers)


def _update_in(body: S.Stmt) -> S.BufferStore | None:
    """The one statement that combines an element with a value; None where there are others."""
    stores = list(find_nodes(body, S.BufferStore))
    updates = [store for store in stores if _own_loads(store.value, store.buffer)]
    plain = (S.BufferStore, S.SeqStmt, S.IfThenElse)
    if len(updates) != 1 or not all(isinstance(part, plain) for part in S.statements_in(body)):
        return None
    if any(isinstance(part, S.IfThenElse) and part.else_case for part in S.statements_in(body)):
        return None
    combined = updates[0].value
    if not isinstance(combined, (E.Add, E.Mul, E.Max, E.Min)):
        return None
    is_element = isinstance(combined.a, E.BufferLoad) and not _own_loads(
        combined.b, updates[0].buffer
    )
    return updates[0] if is_element else None


def _own_loads(value: E.PrimExpr, buffer: Buffer) -> list[E.BufferLoad]:
    nodes = walk(value)
    return [n for n in nodes if isinstance(n, E.BufferLoad) and n.buffer.data is buffer.data]


def _reduces_only(
    loop: S.For, update: S.BufferStore, own: Sequence[S.For], threads: set[E.Var]
) -> bool:
    """Whether a loop runs through values of one element, as often in all threads."""
    plain = loop.kind in (S.ForKind.SERIAL, S.ForKind.UNROLLED)
    inside = {other.loop_var for other in own}
    return (
        plain
        and not any(uses_any(index, inside) for index in update.indices)
        and not uses_any(loop.extent, inside | threads)
        and not reads_memory(loop.extent)
        and (not isinstance(loop.extent, E.IntImm) or loop.extent.value > 0)
    )


def _starts_first(body: S.Stmt, update: S.BufferStore, loop: S.For, every: Sequence[S.For]) -> bool:
    """Whether all but the update runs in the first iteration of a loop alone, as an init does."""
    ranges = {other.loop_var: other.domain for other in every}
    ranges[loop.loop_var] = Range(add(loop.min, 1), subtract(loop.extent, 1))
    later = Analyzer(ranges)

    def is_over(condition: E.PrimExpr) -> bool:
        if not isinstance(condition, E.EQ):
            return False
        low, high = later.const_int_bound(later.simplify(subtract(condition.a, condition.b)))
        return low > 0 or high < 0

    others = [part for part in S.find_statements(body, S.BufferStore) if part is not update]
    return is_const_int(loop.extent, 1) or all(
        any(map(is_over, _conditions_of(body, store))) for store in others
    )


def _steps(
    body: S.Stmt,
    update: S.BufferStore,
    threads: list[S.For],
    reduced: list[S.For],
    own: Sequence[S.For],
    warp: int,
) -> tuple[list[S.Stmt], list[Buffer]]:
    """The steps of a reduction, and the memory that they need."""
    combined: Any = update.value
    combine, dtype = type(combined), update.buffer.dtype
    left, right = E.Var("x", dtype), E.Var("y", dtype)
    reducer = CommReducer((left,), (right,), (combine(left, right),), (_identity(update),))
    value, name = _value(body, update), update.buffer.name
    tree = reduction_tree(reducer, [value], name, threads, reduced, own, warp, update.span)
    last = replace(update, value=combine(combined.a, tree.results[0]))
    axes = {loop.loop_var for loop in (*reduced, *own)}
    ending = _Ending(update, last, axes).rewrite(body)
    first: dict[E.Var, E.PrimExpr] = {
        loop.loop_var: const(0, loop.loop_var.dtype) for loop in reduced
    }
    first |= {loop.loop_var: loop.min for loop in own}
    last_step: S.Stmt = substitute(ending, first)
    for loop in own:
        if not isinstance(loop.extent, E.IntImm):  # Where it does not run, nothing is reduced.
            runs = E.GT(loop.extent, const(0, loop.extent.dtype))
            last_step = S.IfThenElse(runs, last_step)
    last_step = S.IfThenElse(E.EQ(tree.position, const(0)), last_step)
    return [*tree.steps, last_step], tree.memory


def _value(body: S.Stmt, update: S.BufferStore) -> E.PrimExpr:
    """What is combined with the element: what changes nothing where that would not run."""
    combined: Any = update.value
    conditions = _conditions_of(body, update)
    if not conditions:
        return combined.b
    condition = functools.reduce(logical_and, conditions)
    return if_then_else(condition, combined.b, _identity(update))


def _identity(update: S.BufferStore) -> E.PrimExpr:
    identity = OPERATORS[type(update.value)].identity
    assert identity is not None
    return const(identity(update.buffer.dtype), update.buffer.dtype)


def _conditions_of(body: S.Stmt, update: S.BufferStore) -> list[E.PrimExpr]:
    """What has to hold for a statement in a body to run."""
    parts: list[E.PrimExpr] = []
    for part in S.find_statements(body, S.IfThenElse):
        if any(node is update for node in walk(part)):
            parts += conjuncts(part.condition)
    return parts


def _may_be_regrouped(body: S.Stmt, update: S.BufferStore, reduced: list[S.For]) -> bool:
    """Whether no condition is about both which values are reduced and to which element."""
    axes = {loop.loop_var for loop in reduced}
    element = variables_in(*update.indices)
    used = (variables_in(condition) for condition in _conditions_of(body, update))
    return not any(axes & variables and element & variables for variables in used)


class _Ending(Mutator):
    """What the first thread does at the end: the update, whatever its own value depends on."""

    def __init__(self, update: S.BufferStore, last: S.BufferStore, axes: set[E.Var]) -> None:
        self.update = update
        self.last = last
        self.axes = axes

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        return self.last if store is self.update else store

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        new = replace(branch, then_case=self.rewrite(branch.then_case))
        if not any(part is self.update for part in walk(branch)):
            return new
        kept = [c for c in conjuncts(branch.condition) if not uses_any(c, self.axes)]
        if not kept:
            return new.then_case
        return replace(new, condition=functools.reduce(logical_and, kept))


def _by_the_first(body: S.Stmt, reduced: list[S.For]) -> S.Stmt:
    """The reduction by the first thread alone, for all others one after the other."""
    local = {
        part.buffer.name
        for part in find_nodes(body, E.BufferLoad)
        if part.buffer.scope() == "local"
    }
    if local:
        raise ThreadError(
            f'Threads reduce values of their own "{min(local)}" in a way other than by adding, '
            'multiplying, or taking the greatest or least; keep these values in "shared" memory',
            body.span,
        )
    fresh = {loop.loop_var: E.Var(loop.loop_var.name, loop.loop_var.dtype) for loop in reduced}
    again, first = substitute(body, fresh), const(True)
    for loop in reversed(reduced):
        again = S.For(fresh[loop.loop_var], loop.min, loop.extent, S.ForKind.SERIAL, again)
        first = logical_and(E.EQ(loop.loop_var, loop.min), first)
    return S.IfThenElse(first, again, span=body.span)
