"""The threads of a program: which run together, what each has of its own, what they share.

Threads of one block are the iterations of loops bound to threadIdx or vthread axes. Passes that
concern them do nothing to a program whose threads exchange no data.
"""

from __future__ import annotations

from mlcweb.arith import same_expression
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Mutator, children, on, walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

CROSS_THREAD_REDUCTION = "cross_thread_reduction"
"""The attribute of a reduction whose threads add to one element, one after the other."""

Tags = frozenset[str]


class ThreadError(TVMError):
    """The threads of a program cannot run as they are written."""


def thread_tag(loop: Node) -> str:
    """The axis of a loop over threads of one block; "" for other nodes."""
    if not (isinstance(loop, S.For) and loop.thread_binding is not None):
        return ""
    tag = loop.thread_binding.thread_tag
    return "" if tag.startswith("blockIdx") else tag


def is_shared(buffer: Buffer) -> bool:
    """Whether the threads of a block share one buffer because of its storage scope."""
    return buffer.scope().startswith("shared")


def is_barrier(statement: S.Stmt) -> bool:
    """Whether a statement is a call of `tvm_storage_sync`."""
    call = statement.value if isinstance(statement, S.Evaluate) else None
    op = call.op if isinstance(call, E.Call) else None
    return isinstance(op, Op) and op.name == "tir.tvm_storage_sync"


def has_barrier(statement: S.Stmt) -> bool:
    return any(map(is_barrier, _statements(statement)))


def exchanges_data(func: PrimFunc) -> bool:
    """Whether a function has threads, and memory that they share or barriers among them."""
    threads = exchange = False
    for part in _statements(func.body):
        if isinstance(part, S.AttrStmt):
            axis = part.node if isinstance(part.node, S.IterVar) else None
            threads = threads or bool(axis and not axis.thread_tag.startswith("blockIdx"))
        elif isinstance(part, S.For):
            threads = threads or (part.thread_binding is not None and thread_tag(part) != "")
        elif isinstance(part, S.Block):
            exchange = exchange or any(map(is_shared, part.alloc_buffers))
        elif isinstance(part, S.AllocBuffer):
            exchange = exchange or is_shared(part.buffer)
        elif isinstance(part, S.Evaluate):
            exchange = exchange or is_barrier(part)
        if threads and exchange:
            return True
    return False


def _statements(statement: S.Stmt) -> list[S.Stmt]:
    """A statement and those inside it."""
    found = [statement]
    for part in found:  # which grows
        if type(part) is S.For or type(part) is S.AllocBuffer:
            found.append(part.body)
        elif type(part) is S.SeqStmt:
            found += part.seq
        elif not isinstance(part, (S.BufferStore, S.Evaluate)):
            found += [child for child in children(part) if isinstance(child, S.Stmt)]
    return found


class Varying:
    """Which values differ between threads, and along which axes.

    A pass tells of each definition when it comes to it; a variable is never defined twice with
    different meanings.
    """

    def __init__(self) -> None:
        self.axes: list[S.For] = []
        self._tags: dict[E.Var, Tags] = {}

    def enter(self, loop: S.For) -> str:
        """A loop begins. The tag, if it is one over threads: then the caller leaves it again."""
        tag = thread_tag(loop)
        tags = self.of(loop.min) | self.of(loop.extent)
        self._tags[loop.loop_var] = tags | {tag} if tag else tags
        if tag:
            self.axes.append(loop)
        return tag

    def let(self, var: E.Var, value: E.PrimExpr) -> None:
        self._tags[var] = self.of(value)

    def allocate(self, buffer: Buffer) -> None:
        """A buffer that each of the threads around has for itself."""
        self._tags[buffer.data] = frozenset(map(thread_tag, self.axes))

    def of(self, node: Node) -> Tags:
        """The axes along which the value, or the effect, of a part may differ."""
        tags: Tags = frozenset()
        for part in walk(node):
            if isinstance(part, E.Var):
                tags |= self._tags.get(part, frozenset())
            elif isinstance(part, (E.BufferLoad, S.BufferStore)):
                tags |= self._tags.get(part.buffer.data, frozenset())
        return tags


def unify_thread_bindings(func: PrimFunc) -> PrimFunc:
    """Loops inside each other over one thread axis become one: a thread has one index on an axis.

    Shared buffers are allocated outside of the loops over threads, local ones inside. Raises a
    ThreadError where the loops of one axis differ in extent.
    """
    body = _Unification(func).rewrite(func.body)
    return func if body is func.body else replace(func, body=body)


class _Unification(Mutator):
    def __init__(self, func: PrimFunc) -> None:
        self.common = reduced_across_threads(func)
        self.loops: dict[str, S.For] = {}
        self.hoisted: list[Buffer] = []

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        tag = loop.thread_binding.thread_tag
        outer = self.loops.get(tag)
        if outer is not None:
            if not same_expression(outer.extent, loop.extent):
                raise ThreadError(
                    f'"{tag}" has extent {outer.extent} at loop "{outer.loop_var.name}" and '
                    f'{loop.extent} at loop "{loop.loop_var.name}" inside it; all loops of one '
                    "thread axis have the same extent",
                    loop.span,
                )
            index = add(subtract(outer.loop_var, outer.min), loop.min)
            return self.rewrite(substitute(loop.body, {loop.loop_var: index}))
        inside = any(thread_tag(other) for other in self.loops.values())
        self.loops[tag] = loop
        new: S.Stmt = self.rewrite_children(loop)
        del self.loops[tag]
        if thread_tag(loop) and not inside:
            for buffer in self.hoisted:
                new = S.AllocBuffer(buffer, new)
            self.hoisted = []
        return new

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        buffer, body = statement.buffer, self.rewrite(statement.body)
        inside = any(thread_tag(loop) for loop in self.loops.values())
        if inside and (is_shared(buffer) or buffer.data in self.common):
            self.hoisted.append(buffer)
            return body
        owner = _owner(buffer)
        if not inside and owner and buffer.data not in self.common:
            sunk = _sunk(buffer, body, owner)
            if sunk is not None:
                return sunk
        return replace(statement, body=body)


def reduced_across_threads(func: PrimFunc) -> set[E.Var]:
    """The data of the buffers that threads reduce to together."""
    return {
        node.buffer.data
        for part in _statements(func.body)
        if isinstance(part, S.AttrStmt) and part.attr_key == CROSS_THREAD_REDUCTION
        for node in walk(part.body)
        if isinstance(node, S.BufferStore)
    }


def _owner(buffer: Buffer) -> tuple[str, ...]:
    """The axes of whose indices each has the buffer for itself, by its storage scope."""
    if is_shared(buffer):
        return ("blockIdx",)
    return ("threadIdx", "vthread") if buffer.scope() == "local" else ()


def _sunk(buffer: Buffer, statement: S.Stmt, owner: tuple[str, ...]) -> S.Stmt | None:
    """A statement with a buffer allocated in the innermost loop over an axis of its owner that
    holds all its accesses; None where there is no such loop."""
    parts = [child for child in children(statement) if _touches(child, buffer)]
    part = parts[0] if len(parts) == 1 else None
    if isinstance(part, S.Stmt):
        inner = _sunk(buffer, part, owner)
        if inner is not None:
            return _with_child(statement, part, inner)
    if not isinstance(statement, S.For) or statement.thread_binding is None:
        return None
    if not statement.thread_binding.thread_tag.startswith(owner):
        return None
    return replace(statement, body=S.AllocBuffer(buffer, statement.body))


def _with_child(statement: S.Stmt, old: S.Stmt, new: S.Stmt) -> S.Stmt:
    if isinstance(statement, S.SeqStmt):
        return S.sequence(*(new if part is old else part for part in statement.seq))
    names = [name for name in statement.child_fields if getattr(statement, name) is old]
    return replace(statement, **{names[0]: new})


def _touches(node: Node, buffer: Buffer) -> bool:
    return any(
        part.buffer.data is buffer.data
        if isinstance(part, (E.BufferLoad, S.BufferStore))
        else part is buffer.data
        for part in walk(node)
    )
