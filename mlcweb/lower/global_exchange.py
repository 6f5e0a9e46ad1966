"""What threads of one kernel pass each other through global memory.

Threads of a block can wait for each other, so a barrier goes between a write and another thread's
read. Blocks cannot: where one reads what another writes, the result depends on which runs first.
Both are found by listing the elements of the first, second and last blocks; what cannot be listed
is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from itertools import product

from mlcweb.analysis.threads import ATOMIC, thread_tag
from mlcweb.ir.visitor import Visitor, on
from mlcweb.lower.thread_axes import ThreadError, kernels_in
from mlcweb.lower.thread_conflicts import QUICK, Access, may_conflict
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, equal
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc

Block = tuple[int, ...]


def passed_through_global_memory(func: PrimFunc, refuses: bool = True) -> list[Buffer]:
    """The buffers, not allocated in a kernel, through which threads of one block pass data.

    Raises:
        ThreadError: it `refuses`, and a block of threads reads what another one writes in the same
            kernel.
    """
    passed: dict[Buffer, None] = {}
    for kernel in kernels_in(func.body):
        search = _Search()
        search.visit(kernel)
        for write in search.accesses:
            for read in search.accesses:
                if write.writes and not read.writes and read.buffer is write.buffer:
                    if refuses:
                        _check_blocks(write, read)
                    if _surely_meet(write, read):
                        passed[read.buffer] = None
    return list(passed)


class _Search(Visitor):
    """Collects the accesses to global memory that a kernel does not allocate."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.own: set[E.Var] = set()
        self.loops: list[S.For] = []
        self.guards: list[E.PrimExpr] = []

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loops.append(loop)
        self.visit(loop.body)
        self.loops.pop()

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        self.own.add(statement.buffer.data)
        self.visit(statement.body)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        if statement.attr_key != ATOMIC:
            self.visit(statement.body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        self.guards.append(branch.condition)
        self.visit(branch.then_case)
        self.guards.pop()
        if branch.else_case is not None:
            self.visit(branch.else_case)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> None:
        self.visit_children(node)
        if node.buffer.data not in self.own and node.buffer.scope().startswith("global"):
            writes = isinstance(node, S.BufferStore)
            loops, guards = tuple(self.loops), tuple(self.guards)
            self.accesses.append(
                Access(node.buffer, node.indices, writes, loops, guards, None, node.span)
            )


def _check_blocks(write: Access, read: Access) -> None:
    """Refuse a read of what another block writes."""
    axes = [loop for loop in read.loops if not thread_tag(loop) and loop.thread_binding]
    samples = [_samples(loop) for loop in axes]
    blocks = list(product(*samples)) if len(axes) < 3 else []
    if len(blocks) < 2:
        return
    written = {block: _elements(write, axes, block) for block in blocks}
    for block in blocks:
        elements = _elements(read, axes, block)
        for other, theirs in written.items():
            if other != block and elements & theirs:
                tags = ", ".join(loop.thread_binding.thread_tag for loop in axes)  # type: ignore[union-attr]
                where = f" ({write.span})" if write.span else ""
                raise ThreadError(
                    f"Block {_text(block)} of threads ({tags}) reads an element of "
                    f'"{read.buffer.name}" that block {_text(other)} writes{where} in the same '
                    "kernel, and blocks do not wait for each other; write it in a kernel before, "
                    "which is one of loops of its own at the root, or add to it by T.atomic_add",
                    read.span or write.span,
                )


def _samples(loop: S.For) -> list[int]:
    extent = loop.extent.value if isinstance(loop.extent, E.IntImm) else 2
    return sorted({0, min(1, extent - 1), extent - 1})


def _elements(access: Access, axes: Sequence[S.For], block: Block) -> set[tuple[int, ...]]:
    """The elements that a block accesses; nothing where that is not listed."""
    here = tuple(
        equal(loop.loop_var, const(at, loop.loop_var.dtype))
        for loop, at in zip(axes, block, strict=True)
    )
    points = changed(access, guards=(*access.guards, *here)).points(QUICK)
    if points is None:
        return set()
    return {row[len(points.variables) :] for row in points.rows}


def _surely_meet(write: Access, read: Access) -> bool:
    """Whether threads of the first block touch one element."""
    axes = [loop for loop in read.loops if not thread_tag(loop) and loop.thread_binding]
    here = tuple(equal(loop.loop_var, const(0, loop.loop_var.dtype)) for loop in axes)
    first, second = (changed(part, guards=(*part.guards, *here)) for part in (write, read))
    listed = first.points(QUICK) is not None and second.points(QUICK) is not None
    return listed and may_conflict(first, second)


def _text(block: Block) -> str:
    return f"({', '.join(map(str, block))})"
