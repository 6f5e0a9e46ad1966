"""Running the threads of a block one after the other, for machines without them.

The loops over threads are split at barriers, as pocl does: what stands between two barriers gets
loops of its own over all threads, and loops and conditions around a barrier move outside of them.
A buffer that a thread has for itself and uses on both sides of a barrier gets a copy for each
thread. (P. Jääskeläinen et al., "pocl: A performance-portable OpenCL implementation", 2015.)
"""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.analysis.threads import exchanges_data, has_barrier, is_barrier, thread_tag
from mlcweb.arith import conjuncts, same_expression, same_expressions
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Dispatcher, Mutator, on
from mlcweb.lower.compact_buffers import compact_buffers, compact_shared_buffers
from mlcweb.lower.global_exchange import passed_through_global_memory
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.matrix_units import by_one_lane
from mlcweb.lower.place_allocations import place_in_threads, place_outside_of_threads
from mlcweb.lower.statement_simplifier import NOTHING
from mlcweb.lower.store_once import store_once
from mlcweb.lower.thread_allreduce import lower_thread_allreduce
from mlcweb.lower.thread_axes import ThreadError, Varying, copies_of, unify_thread_bindings
from mlcweb.lower.thread_sync import insert_barriers
from mlcweb.lower.uniform_conditions import drop_uniform_marks
from mlcweb.lower.warp_shuffle import lower_warp_shuffle
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_and
from mlcweb.tir.buffer import Buffer, decl_buffer, is_compact
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import reads_memory, substitute


@lowering_pass("SerializeThreads", needed=True)
def serialize_threads(func: PrimFunc) -> PrimFunc:
    """Serial loops for the threads of a function without blocks, if they exchange data.

    Raises a ThreadError for a barrier where not all threads come, and for a thread's own buffer
    whose address is used on both sides of a barrier.
    """
    if not exchanges_data(func):
        return func
    func = lower_warp_shuffle(func)
    passed = passed_through_global_memory(func, refuses=False)
    return split_at_barriers(by_one_lane(synchronize_threads(func, passed)))


def synchronize_threads(func: PrimFunc, passed: Sequence[Buffer] = ()) -> PrimFunc:
    """One loop for each axis of threads, with memory where its owner is and barriers where threads
    wait for each other; no blocks before and after. `passed` are buffers through which the threads
    of a block pass data although they are not allocated for them."""
    func = compact_buffers(give_memory_to_its_owners(func))
    return insert_barriers(store_once(func), passed)


def give_memory_to_its_owners(func: PrimFunc) -> PrimFunc:
    """One loop for each axis of threads, around it the memory that threads share, inside it what
    each has for itself; no blocks before and after."""
    for run in (
        lower_thread_allreduce,
        place_outside_of_threads,
        compact_shared_buffers,
        unify_thread_bindings,
        place_in_threads,
    ):
        func = run(func)
    return func


def split_at_barriers(func: PrimFunc) -> PrimFunc:
    """Serial loops for those over threads that share memory; barriers must be in place."""
    return drop_uniform_marks(func.with_body(_Serialization().rewrite(func.body)))


class _Serialization(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if not thread_tag(loop):
            return self.rewrite_children(loop)
        return Fission().split(loop)


class _Serial(Mutator):
    """Loops over threads without a barrier inside are loops as any other."""

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        new = self.rewrite_children(loop)
        if not thread_tag(loop):
            return new
        return replace(new, kind=S.ForKind.SERIAL, thread_binding=None)


class Fission(Dispatcher):
    """Splits the loops over the threads of one block. `keeps_barriers` where these are virtual ones
    and the barriers are those of the threads around them."""

    def __init__(self, keeps_barriers: bool = False) -> None:
        self.varying = Varying()
        self.keeps_barriers = keeps_barriers

    def split(self, statement: S.Stmt) -> S.Stmt:
        """A statement inside loops over threads as statements around such loops."""
        if not has_barrier(statement):
            return self.over_threads(statement)
        handler = self.table.get(type(statement))
        if handler is None:
            raise ThreadError(
                f"A barrier of threads cannot be inside a {type(statement).__name__}",
                statement.span,
            )
        return handler(self, statement)

    def over_threads(self, statement: S.Stmt) -> S.Stmt:
        """A statement that all threads run, one thread after the other."""
        axes = self.varying.axes
        statement, first = _by_first_thread(statement, axes)
        statement = _Serial().rewrite(statement)
        for loop in reversed(axes):
            if loop in first:
                statement = substitute(statement, {loop.loop_var: loop.min})
            else:
                statement = S.For(
                    loop.loop_var, loop.min, loop.extent, S.ForKind.SERIAL, statement,
                    annotations=loop.annotations, span=loop.span,
                )  # fmt: skip
        return statement

    @on(S.Evaluate)
    def barrier(self, statement: S.Evaluate) -> S.Stmt:
        return statement if self.keeps_barriers else NOTHING

    @on(S.SeqStmt)
    def statements(self, statement: S.SeqStmt) -> S.Stmt:
        done: list[S.Stmt] = []
        together: list[S.Stmt] = []
        for part in statement.seq:
            if not (has_barrier(part) or _by_first_thread(part, self.varying.axes)[1]):
                together.append(part)
                continue
            if together:
                done.append(self.over_threads(S.sequence(*together)))
                together = []
            if self.keeps_barriers or not is_barrier(part):
                done.append(self.split(part))
        if together:
            done.append(self.over_threads(S.sequence(*together)))
        return S.sequence(*done) if done else NOTHING

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if self.varying.enter(loop):
            body = self.split(loop.body)
            self.varying.axes.pop()
            return body
        self.check(loop, self.varying.of(loop.loop_var), f'loop "{loop.loop_var.name}"')
        unrolled = loop.kind == S.ForKind.UNROLLED
        kind = S.ForKind.UNROLLED if unrolled else S.ForKind.SERIAL
        return replace(loop, kind=kind, thread_binding=None, body=self.split(loop.body))

    @on(S.While)
    def while_loop(self, loop: S.While) -> S.Stmt:
        self.check(loop, self.varying.of(loop.condition), f'"while {loop.condition}"')
        return replace(loop, body=self.split(loop.body))

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        self.check(branch, self.varying.of(branch.condition), f'"if {branch.condition}"')
        else_case = None if branch.else_case is None else self.split(branch.else_case)
        return replace(branch, then_case=self.split(branch.then_case), else_case=else_case)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        self.varying.let(let.var, let.value)
        if not self.varying.of(let.var):
            return replace(let, body=self.split(let.body))
        if not reads_memory(let.value):
            return self.split(substitute(let.body, {let.var: let.value}))
        zero = const(0)
        copy = decl_buffer((1,), let.var.dtype, let.var.name, scope="local")
        body = substitute(let.body, {let.var: E.BufferLoad(copy, (zero,))})
        store = S.BufferStore(copy, let.value, (zero,), span=let.span)
        return self.allocation(S.AllocBuffer(copy, S.sequence(store, body)))

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        """A copy of the buffer for each thread."""
        buffer = statement.buffer
        self.varying.allocate(buffer)
        if not is_compact(buffer):
            raise ThreadError(
                f'"{buffer.name}", which each thread has for itself across a barrier, has strides',
                statement.span,
            )
        copies = _PerThread(buffer, self.varying.axes)
        return S.AllocBuffer(copies.new, copies.rewrite(self.split(statement.body)))

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        return replace(statement, body=self.split(statement.body))

    @on(S.AssertStmt)
    def assertion(self, statement: S.AssertStmt) -> S.Stmt:
        return S.sequence(
            self.over_threads(replace(statement, body=NOTHING)), self.split(statement.body)
        )

    def check(self, statement: S.Stmt, tags: frozenset[str], what: str) -> None:
        if tags:
            raise ThreadError(
                f"A barrier stands inside {what}, which differs between threads of "
                f"{' and '.join(sorted(tags))}; all threads of a block have to reach it",
                statement.span,
            )


def _is_view_of_all(view: Buffer, buffer: Buffer) -> bool:
    """Whether two buffers of the same data are the same but for their names."""
    return view is buffer or (
        view.dtype == buffer.dtype
        and same_expressions(view.shape, buffer.shape)
        and same_expressions(view.strides, buffer.strides)
        and same_expression(view.elem_offset, buffer.elem_offset)
    )


class _PerThread(Mutator):
    """Gives each thread a copy of a buffer. Outside of the loops over threads, where the condition
    is the same in all of them, it is that of the first."""

    def __init__(self, buffer: Buffer, axes: Sequence[S.For]) -> None:
        self.old = buffer
        self.new, indices = copies_of(buffer, axes)
        self.own = dict(zip((loop.loop_var for loop in axes), indices, strict=True))
        self.thread = [const(0, index.dtype) for index in indices]

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.loop_var not in self.own:
            return self.rewrite_children(loop)
        outer = self.thread
        number = list(self.own).index(loop.loop_var)
        self.thread = [*outer[:number], self.own[loop.loop_var], *outer[number + 1 :]]
        new = self.rewrite_children(loop)
        self.thread = outer
        return new

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        if node.buffer.data is not self.old.data:
            return new
        if not _is_view_of_all(node.buffer, self.old):
            raise self.address_used(node)
        return replace(new, buffer=self.new, indices=(*self.thread, *new.indices))

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        if var is self.old.data:
            raise self.address_used(var)
        return var

    def address_used(self, node: Node) -> ThreadError:
        return ThreadError(
            f'"{self.old.name}", which each thread has for itself across a barrier, is used by '
            "its address, which threads that run one after the other cannot keep apart",
            node.span,
        )


def _by_first_thread(statement: S.Stmt, axes: Sequence[S.For]) -> tuple[S.Stmt, list[S.For]]:
    """A statement without conditions that only the first thread of an axis runs it, and the loops
    over these axes."""
    if not isinstance(statement, S.IfThenElse) or statement.else_case is not None:
        return statement, []
    first: list[S.For] = []
    condition: E.PrimExpr = const(True)
    for part in conjuncts(statement.condition):
        loops = [loop for loop in axes if is_first_thread(part, loop)]
        first += loops
        condition = condition if loops else logical_and(condition, part)
    if not first:
        return statement, []
    if isinstance(condition, E.IntImm):
        return statement.then_case, first
    return replace(statement, condition=condition), first


def is_first_thread(condition: E.PrimExpr, loop: S.For) -> bool:
    """Whether a condition says that a loop over threads is in its first iteration."""
    if not (isinstance(condition, E.EQ) and condition.a is loop.loop_var):
        return False
    low = condition.b
    return low is loop.min or (
        isinstance(low, E.IntImm) and isinstance(loop.min, E.IntImm) and low == loop.min
    )
