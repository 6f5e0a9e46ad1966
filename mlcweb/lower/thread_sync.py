"""The pass that puts barriers between accesses of different threads to one element.

Between a write and a later access of the same element by another thread there has to be a barrier,
`T.tvm_storage_sync("shared")`, that all threads of the block reach. The pass goes through the
statements in order with the accesses since the last barrier. A loop is left from its end to its
start, too: where the accesses after its last barrier meet those before its first, it begins with
a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from mlcweb.analysis.threads import (
    ATOMIC,
    CROSS_THREAD_REDUCTION,
    MATRIX_UNIT,
    WARP_EXCHANGE,
    WARP_MATRIX,
    is_barrier,
    is_own,
    thread_tag,
)
from mlcweb.arith import Analyzer
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Dispatcher, Mutator, children, find_nodes, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.statement_simplifier import NOTHING
from mlcweb.lower.thread_axes import ThreadError, Varying, reduced_across_threads
from mlcweb.lower.thread_conflicts import (
    QUICK,
    THOROUGH,
    Access,
    Reduction,
    may_conflict,
    read_of_another,
    write_different_values,
)
from mlcweb.lower.uniform_conditions import drop_uniform_marks, mark_uniform_conditions
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import logical_not
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import READ_ACCESS, WRITE_ACCESS, tvm_storage_sync
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


@lowering_pass("ThreadSync")
def thread_sync(func: PrimFunc) -> PrimFunc:
    """Insert the barriers that accesses to memory shared between threads need.

    Raises a ThreadError where one is needed, or written, in a place that not all threads reach
    alike.
    """
    return drop_uniform_marks(insert_barriers(func))


def insert_barriers(
    func: PrimFunc, passed: Sequence[Buffer] = (), refuses: bool = True
) -> PrimFunc:
    """The same where the threads of a block pass data through some buffers more. If it does not
    refuse, barriers are left out where not all threads would reach them. Conditions that are the
    same in all threads are marked (see `uniform_conditions.py`)."""
    func = mark_uniform_conditions(func)
    shared = {buffer.data: buffer for buffer in passed}
    blocks = _Blocks(reduced_across_threads(func), shared, refuses)
    return func.with_body(blocks.rewrite(func.body))


def barrier() -> S.Stmt:
    return S.Evaluate(tvm_storage_sync("shared"))


class _Blocks(Mutator):
    """Finds the loops over threads that are in no other."""

    def __init__(
        self, common: set[E.Var], shared: dict[E.Var, Buffer], refuses: bool = True
    ) -> None:
        self.common = common
        self.shared = shared
        self.refuses = refuses
        self.around: list[S.For] = []
        self.own: set[E.Var] = set()

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        data = statement.buffer.data
        if is_own(statement.buffer) and data not in self.common:
            self.own.add(data)
        else:
            self.shared[data] = statement.buffer
        return self.rewrite_children(statement)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if thread_tag(loop):
            block = _Synchronization(self.shared, self.common, self.around, self.refuses)
            tags = frozenset(filter(None, map(thread_tag, S.find_statements(loop, S.For))))
            block.varying.tags.update(dict.fromkeys(self.own, tags))
            return block.summary(loop).statement
        self.around.append(loop)
        new = self.rewrite_children(loop)
        self.around.pop()
        return new


class _Summary(NamedTuple):
    """A statement with its barriers, and the accesses to shared memory in it before the first and
    after the last of them: all, where there is none."""

    statement: S.Stmt
    head: list[Access]
    tail: list[Access]
    barrier: bool = False


class _Synchronization(Dispatcher):
    """Synchronises the threads of one block. `shared` are the buffers that they share: those of
    that storage scope, and those allocated outside of their loops. `common` are the data that they
    reduce to together, `around` the loops around the block."""

    def __init__(
        self,
        shared: dict[E.Var, Buffer],
        common: set[E.Var],
        around: Sequence[S.For],
        refuses: bool,
    ) -> None:
        self.shared = shared
        self.common = common
        self.refuses = refuses
        self.varying = Varying()
        self.analyzer = Analyzer({loop.loop_var: loop.domain for loop in around})
        self.values: dict[E.Var, E.PrimExpr] = {}
        self.loops = list(around)
        self.alike = [loop.loop_var for loop in around]
        self.guards: list[E.PrimExpr] = []
        self.divergent: list[tuple[frozenset[str], str, S.Stmt]] = []
        self.reduction: Reduction | None = None
        self.own: dict[E.Var, list[Access]] = {}
        self.one_instruction = False

    def summary(self, statement: S.Stmt) -> _Summary:
        handler = self.table.get(type(statement))
        if handler is not None:
            return handler(self, statement)
        accesses = [access for child in children(statement) for access in self.accesses(child)]
        return _Summary(statement, accesses, accesses)

    # Statements

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> _Summary:
        reads = [*self.accesses(store.value)]
        for index in store.indices:
            reads += self.accesses(index)
        writes = self.access(store.buffer, store.indices, True, store)
        if self.refuses:
            self.check_store(store, reads, writes)
        return _Summary(store, reads + writes, reads + writes)

    def check_store(self, store: S.BufferStore, reads: list[Access], writes: list[Access]) -> None:
        """Refuse a statement whose threads get into each other's way."""
        reduces = store.buffer.data in self.shared or store.buffer.data in self.common
        if reduces and self.meet(reads, writes, thorough=True):
            raise ThreadError(
                f'A thread reads an element of "{store.buffer.name}" that another may write in '
                "the same statement, and no barrier can stand between the two; store the value "
                "to a local buffer first, use an element for each thread, or rfactor a reduction",
                store.span,
            )
        if writes and self.reduction is None and self.meet(writes, writes, thorough=True):
            parts = self.varying_parts(store.value)
            if parts and write_different_values(writes[0], parts):
                raise ThreadError(
                    f'Threads write different values to one element of "{store.buffer.name}" in '
                    "one statement; use an element for each thread",
                    store.span,
                )

    def varying_parts(self, value: E.PrimExpr) -> list[E.PrimExpr]:
        """What differs between threads of the integers that a value is a function of, while memory
        that they share stays as it is. Nothing where it depends on memory of their own."""
        loads = find_nodes(value, E.BufferLoad)
        if any(self.varying.of(load.buffer.data) for load in loads):
            return []
        if not isinstance(value, E.BufferLoad) and not reads_memory(value):
            value = self.told(value)
            if isinstance(value, E.Var) or dtypes.is_integer(value.dtype):
                return [value] if self.varying.of(value) else []
        parts = (part for part in children(value) if isinstance(part, E.PrimExpr))
        return [varying for part in parts for varying in self.varying_parts(part)]

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> _Summary:
        if is_barrier(statement):
            self.check_alike(statement)
            return _Summary(statement, [], [], True)
        accesses = self.accesses(statement.value)
        return _Summary(statement, accesses, accesses)

    @on(S.SeqStmt)
    def statements(self, statement: S.SeqStmt) -> _Summary:
        return self.in_order([], statement.seq)

    def in_order(self, before: list[Access], parts: Sequence[S.Stmt]) -> _Summary:
        """Statements one after another, and accesses before all of them."""
        done: list[S.Stmt] = []
        head: list[Access] | None = None
        pending = before
        for part in parts:
            new = self.summary(part)
            if self.meet(pending, new.head) and self.check_alike(part):
                done.append(barrier())
                head, pending = (pending if head is None else head), []
            done.append(new.statement)
            if new.barrier:
                head = pending + new.head if head is None else head
                pending = new.tail
            else:
                pending = pending + new.head
                if new.tail is not new.head:
                    pending = pending + new.tail
        return _Summary(
            S.sequence(*done), pending if head is None else head, pending, head is not None
        )

    @on(S.For)
    def loop(self, loop: S.For) -> _Summary:
        bounds = [*self.accesses(loop.min), *self.accesses(loop.extent)]
        self.analyzer.bind(loop.loop_var, loop.domain)
        self.loops.append(loop)
        tag = self.varying.enter(loop)
        with self.diverging(loop, loop.min, loop.extent) as tags:
            alike = not tag and not tags
            if alike:
                self.alike.append(loop.loop_var)
            body = self.in_order(bounds, (loop.body,))
            if tag:
                self.varying.axes.pop()
            elif alike:
                self.alike.pop()
            if not tag:
                body = self.repeated(body, loop.loop_var, loop)
        self.loops.pop()
        statement = replace(loop, body=body.statement)
        if not body.barrier or tag:
            return body._replace(statement=statement)
        # Before the first barrier is the first iteration, after the last one the last.
        ends = self.analyzer.simplify(loop.min), self.analyzer.simplify(loop.min + loop.extent - 1)
        head, tail = (
            [access.where(loop.loop_var, end) for access in accesses]
            for accesses, end in zip((body.head, body.tail), ends, strict=True)
        )
        runs = self.analyzer.const_int_bound(loop.extent).min_value > 0
        return _Summary(statement, head, tail, runs)

    def repeated(self, body: _Summary, var: E.Var, loop: S.Stmt) -> _Summary:
        """The body of a loop, with a barrier between its iterations if they need one."""
        # With a barrier in each iteration, only what follows another one can meet it.
        meet = self.meet(body.tail, body.head, var, following=body.barrier)
        if not meet or not self.check_alike(loop):
            return body
        return _Summary(S.sequence(barrier(), body.statement), [], body.tail, True)

    @on(S.While)
    def while_loop(self, loop: S.While) -> _Summary:
        condition = self.accesses(loop.condition)
        with self.diverging(loop, loop.condition):
            body = self.in_order(condition, (loop.body,))
            meet = self.meet(body.tail, body.head, following=body.barrier)
            if meet and self.check_alike(loop):
                # At the end, since the condition is read before the next iteration.
                again = S.sequence(body.statement, barrier())
                body = _Summary(again, body.head, condition, True)
        return body._replace(statement=replace(loop, body=body.statement), barrier=False)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> _Summary:
        condition = self.accesses(branch.condition)
        with self.diverging(branch, branch.condition) as tags:
            parts = [
                self.guarded(condition, branch.condition, branch.then_case),
                self.guarded(condition, logical_not(branch.condition), branch.else_case),
            ]
            if tags and self.meet(parts[0].head, parts[1].head):
                self.check_alike(branch)
        head = tail = parts[0].head + parts[1].head
        if any(part.tail is not part.head for part in parts):
            tail = parts[0].tail + parts[1].tail
        then_case, else_case = (part.statement for part in parts)
        new = replace(
            branch, then_case=then_case, else_case=else_case if branch.else_case else None
        )
        return _Summary(new, head, tail, parts[0].barrier and parts[1].barrier)

    @contextmanager
    def diverging(self, statement: Any, *values: E.PrimExpr) -> Iterator[frozenset[str]]:
        """Inside of a loop or branch. The axes along which what it depends on differs: threads do
        not come there alike, if there are any."""
        tags = frozenset[str]().union(*map(self.varying.of, values))
        if tags:
            self.divergent.append((tags, _divergence(statement, tags), statement))
        yield tags
        if tags:
            self.divergent.pop()

    def guarded(self, before: list[Access], condition: E.PrimExpr, part: S.Stmt | None) -> _Summary:
        if part is None:
            return _Summary(NOTHING, before, before)
        self.guards.append(self.told(condition))
        done = self.in_order(before, (part,))
        self.guards.pop()
        return done

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> _Summary:
        self.varying.let(let.var, let.value)
        if not reads_memory(let.value):
            self.values[let.var] = substitute(let.value, self.values)
        body = self.in_order(self.accesses(let.value), (let.body,))
        return body._replace(statement=replace(let, body=body.statement))

    @on(S.AssertStmt)
    def assertion(self, statement: S.AssertStmt) -> _Summary:
        body = self.in_order(self.accesses(statement.condition), (statement.body,))
        return body._replace(statement=replace(statement, body=body.statement))

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> _Summary:
        if statement.buffer.scope().startswith("shared"):
            self.shared[statement.buffer.data] = statement.buffer
            body = self.summary(statement.body)
            return body._replace(statement=replace(statement, body=body.statement))
        self.varying.allocate(statement.buffer)
        self.own[statement.buffer.data] = []
        body = self.summary(statement.body)
        self.check_own(statement.buffer)
        return body._replace(statement=replace(statement, body=body.statement))

    def check_own(self, buffer: Buffer) -> None:
        """Refuse to read of a thread's own memory what another has stored to its own."""
        threads = [loop.loop_var for loop in self.varying.axes]
        accesses = self.own.pop(buffer.data, [])
        indices = (index for access in accesses if access.writes for index in access.indices or ())
        if not any(variables_in(index).intersection(threads) for index in indices):
            return
        if any(access.buffer is not accesses[0].buffer for access in accesses):
            return
        read = read_of_another(accesses, threads) if self.refuses else None
        if read is not None:
            raise ThreadError(
                f'A thread reads an element of "{buffer.name}" that only others have written, and '
                'each has a buffer of its own; use "shared" memory',
                read.span,
            )

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> _Summary:
        outer = self.reduction
        if statement.attr_key == CROSS_THREAD_REDUCTION:
            axes = statement.value.value if isinstance(statement.value, E.StringImm) else ""
            self.reduction = Reduction(statement.node, frozenset(axes.split()))
        elif statement.attr_key == ATOMIC:
            self.reduction = Reduction(ATOMIC, frozenset(map(thread_tag, self.varying.axes)))
        elif statement.attr_key in (MATRIX_UNIT, WARP_MATRIX):
            self.check_warp(statement)
        elif statement.attr_key == WARP_EXCHANGE:
            self.check_alike(statement)
        within, self.one_instruction = self.one_instruction, statement.attr_key == WARP_MATRIX
        body = self.summary(statement.body)
        self.reduction, self.one_instruction = outer, within
        return body._replace(statement=replace(statement, body=body.statement))

    def check_warp(self, statement: S.AttrStmt) -> None:
        """Refuse an instruction of a whole warp where not all of its threads come."""
        for tags, reason, _ in self.divergent:
            if "threadIdx.x" in tags and self.refuses:
                raise ThreadError(
                    "The threads of a warp work on a fragment of a matrix together, and here not "
                    f"all of them come: {reason}",
                    statement.span,
                )

    # Accesses

    def accesses(self, node: Node) -> list[Access]:
        """The accesses to shared memory in an expression."""
        accesses: list[Access] = []
        for part in walk(node):
            if isinstance(part, E.BufferLoad):
                accesses += self.access(part.buffer, part.indices, False, part)
            elif operator_name(part) == "tvm_access_ptr":
                accesses += self.pointer(part)
        return accesses

    def access(
        self, buffer: Buffer, indices: Sequence[E.PrimExpr] | None, writes: bool, node: Node
    ) -> list[Access]:
        loops, guards = tuple(self.loops), tuple(self.guards)
        if buffer.data in self.own:
            own = None if indices is None else tuple(indices)
            access = Access(buffer, own, writes, loops, guards, None, node.span)
            self.own[buffer.data].append(access)
            return []
        if buffer.data not in self.shared and buffer.data not in self.common:
            return []
        if indices is not None:
            indices = tuple(map(self.told, indices))
            indices = None if any(map(reads_memory, indices)) else indices
        subscripts = None if indices is None else tuple(indices)
        return [Access(buffer, subscripts, writes, loops, guards, self.reduction, node.span)]

    def pointer(self, pointer: Any) -> list[Access]:
        """What a call may do with a pointer."""
        data, mask = pointer.args[1], pointer.args[4]
        if not isinstance(data, E.Var):
            return []
        self.own.pop(data, None)
        buffer = self.shared.get(data)
        if buffer is None:
            return []
        bits = mask.value if isinstance(mask, E.IntImm) else READ_ACCESS | WRITE_ACCESS
        return [
            access
            for bit in (READ_ACCESS, WRITE_ACCESS)
            if bits & bit
            for access in self.access(buffer, None, bit == WRITE_ACCESS, pointer)
        ]

    def told(self, value: E.PrimExpr) -> E.PrimExpr:
        """A value in terms of loops, simplified."""
        value = substitute(value, self.values) if self.values else value
        return value if reads_memory(value) else self.analyzer.simplify(value)

    def meet(
        self,
        before: list[Access],
        after: list[Access],
        carried: E.Var | None = None,
        thorough: bool = False,
        following: bool = False,
    ) -> bool:
        """Whether two accesses need a barrier between them; those of one instruction do not."""
        if self.one_instruction:
            return False
        limit = THOROUGH if thorough or self.divergent else QUICK
        return any(
            may_conflict(a, b, self.alike, carried, limit, following) for a in before for b in after
        )

    def check_alike(self, statement: S.Stmt) -> bool:
        """Whether all threads reach a statement alike, so that a barrier may stand before it; it is
        refused where not."""
        if not self.refuses:
            return self.reduction is None and not self.divergent
        if self.reduction is not None:
            raise ThreadError("A reduction across threads cannot hold a barrier", statement.span)
        if self.divergent:
            _, reason, where = self.divergent[-1]
            raise ThreadError(
                f"Threads of a block need a barrier where not all of them come: {reason}. Move "
                "the barrier, and what has to wait for other threads, out of it",
                statement.span or where.span,
            )
        return True


def _divergence(statement: Any, tags: frozenset[str]) -> str:
    axes = " and ".join(sorted(tags))
    if isinstance(statement, S.For):
        return f'the number of iterations of loop "{statement.loop_var.name}" depends on {axes}'
    return f'the condition "{statement.condition}" depends on {axes}'
