"""Finding conditions that are the same for all threads although each computes them for itself.

A condition on memory of a thread's own (`while not done[0]`) is uniform where each thread has
stored the same there: the same values, under conditions that are uniform themselves. That is a
dataflow analysis over the buffers that threads have for themselves, which maps each to the axes
along which its elements may differ; loops are repeated until nothing changes. (R. Karrenberg and
S. Hack, "Improving Performance of OpenCL on CPUs", 2012, call it divergence analysis.)
"""

from __future__ import annotations

from typing import Any

from mlcweb.analysis.threads import is_own, thread_tag
from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Dispatcher, Mutator, find_nodes, on, walk
from mlcweb.lower.thread_axes import Tags, Varying
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import call
from mlcweb.tir.operators import operator_name

UNIFORM = "tvm_thread_invariant"
"""The call that says of a value that it is the same in all threads."""

_NOWHERE: Tags = frozenset()

State = dict[E.Var, Tags]
"""The axes along which the elements of buffers differ, by the buffers' data."""


def mark_uniform_conditions(func: PrimFunc) -> PrimFunc:
    """Put `T.tvm_thread_invariant` around the conditions and extents that read memory of a thread's
    own, where they are the same in all threads that come there. No blocks before and after."""
    if not any(map(_reads_own, S.statements_in(func.body))):
        return func
    analysis = _Divergence()
    analysis.visit(func.body)
    uniform = {statement for statement, tags in analysis.tags.items() if not tags}
    return func.with_body(_Marking(uniform).rewrite(func.body))


def drop_uniform_marks(func: PrimFunc) -> PrimFunc:
    """The function without `T.tvm_thread_invariant`."""
    return func.with_body(_Unmarking().rewrite(func.body))


def _controls(statement: Node) -> tuple[E.PrimExpr, ...]:
    """What decides how often the statements inside of one run."""
    if isinstance(statement, (S.While, S.IfThenElse)):
        return (statement.condition,)
    return (statement.min, statement.extent) if isinstance(statement, S.For) else ()


def _reads_own(statement: Node) -> bool:
    return any(
        isinstance(part, E.BufferLoad) and is_own(part.buffer)
        for value in _controls(statement)
        for part in walk(value)
    )


class _Divergence(Dispatcher):
    """Goes through a function in the order in which it runs. `tags` has the axes along which what
    controls a statement differs."""

    def __init__(self) -> None:
        self.varying = Varying()
        self.state: State = self.varying.tags
        self.control: Tags = _NOWHERE
        self.tags: dict[S.Stmt, Tags] = {}

    def visit(self, statement: S.Stmt) -> None:
        handler = self.table.get(type(statement))
        if handler is not None:
            handler(self, statement)
            return
        self.escape(statement)
        body = getattr(statement, "body", None)
        if isinstance(body, S.Stmt):
            self.visit(body)

    @property
    def everywhere(self) -> Tags:
        return frozenset(map(thread_tag, self.varying.axes))

    def escape(self, statement: S.Stmt) -> None:
        """What a call may write to through an address differs along all axes."""
        value = statement.value if isinstance(statement, S.Evaluate) else None
        for part in walk(value) if isinstance(value, E.PrimExpr) else ():
            data = part.buffer.data if isinstance(part, E.BufferLoad) else part
            if isinstance(data, E.Var) and data.dtype == "handle":
                self.state[data] = self.everywhere

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> None:
        data = store.buffer.data
        if not is_own(store.buffer) or data not in self.state:
            return
        tags = self.control.union(*map(self.varying.of, (store.value, *store.indices)))
        for part in find_nodes(store.value, E.Call):
            if not (isinstance(part.op, Op) and part.op.pure):
                tags = self.everywhere
        single = all(is_const_int(extent, 1) for extent in store.buffer.shape)
        self.state[data] = tags if single and not self.control else self.state[data] | tags

    @on(S.SeqStmt)
    def statements(self, statement: S.SeqStmt) -> None:
        for part in statement.seq:
            self.visit(part)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        if self.varying.axes:
            own = is_own(statement.buffer)
            self.state[statement.buffer.data] = _NOWHERE if own else self.everywhere
        self.visit(statement.body)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> None:
        self.varying.let(let.var, let.value)
        self.visit(let.body)

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        if self.varying.enter(loop):
            self.visit(loop.body)
            self.varying.axes.pop()
            return
        self.repeat(loop)

    @on(S.While)
    def repeat(self, loop: S.For | S.While) -> None:
        outer = self.control
        while True:
            before = dict(self.state)
            tags = self.note(loop)
            if isinstance(loop, S.For):
                self.state[loop.loop_var] = tags
            self.control = outer | tags
            self.visit(loop.body)
            self.join(before)
            if all(self.state[data] <= before.get(data, _NOWHERE) for data in before):
                break
        self.control = outer

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        outer, before = self.control, dict(self.state)
        self.control = outer | self.note(branch)
        self.visit(branch.then_case)
        after = dict(self.state)
        self.state.update(before)
        if branch.else_case is not None:
            self.visit(branch.else_case)
        self.join(after)
        self.control = outer

    def note(self, statement: Any) -> Tags:
        tags = _NOWHERE.union(*map(self.varying.of, _controls(statement)))
        self.tags[statement] = self.tags.get(statement, _NOWHERE) | tags
        return tags

    def join(self, other: State) -> None:
        for data, tags in other.items():
            self.state[data] = self.state.get(data, _NOWHERE) | tags


class _Marking(Mutator):
    def __init__(self, uniform: set[S.Stmt]) -> None:
        self.uniform = uniform

    @on(S.While, S.IfThenElse, S.For)
    def control(self, statement: Any) -> S.Stmt:
        new = self.rewrite_children(statement)
        if statement not in self.uniform or not _reads_own(statement):
            return new
        names = ("min", "extent") if isinstance(new, S.For) else ("condition",)
        values = {name: getattr(new, name) for name in names}
        return replace(new, **{name: call(v.dtype, UNIFORM, v) for name, v in values.items()})


class _Unmarking(Mutator):
    @on(E.Call)
    def call(self, node: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(node)
        return new.args[0] if operator_name(new) == UNIFORM else new
