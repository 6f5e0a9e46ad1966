"""The threads of a program that exchange data: one loop for each axis, and what varies along it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlcweb.analysis.threads import (
    CROSS_THREAD_REDUCTION,
    WARP_MATRIX,
    is_own,
    is_shared,
    stored_data,
    thread_tag,
)
from mlcweb.arith import same_expression
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, children, on, walk
from mlcweb.lower.optimize.accesses import Touched
from mlcweb.schedule.rewriting.nests import in_loops
from mlcweb.schedule.state import with_substatements
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, constant_value, is_const_int, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import substitute, variables_in

WARP_SIZE = 32
WAVE_SIZE = 64
"""The threads of a warp of NVIDIA's GPUs, and of a wavefront of AMD's, which is one by another
name."""

MATRIX_CORES = "mfma"
"""The instruction of AMD's matrix cores, with which the mark of loops that it does begins."""

Tags = frozenset[str]


class ThreadError(TVMError, ValueError):
    """The threads of a program cannot run as they are written."""


class Varying:
    """Which values differ between threads, and along which axes.

    A pass tells of each definition when it comes to it; a variable is never defined twice with
    different meanings.
    """

    def __init__(self) -> None:
        self.axes: list[S.For] = []
        self.tags: dict[E.Var, Tags] = {}

    def enter(self, loop: S.For) -> str:
        """A loop begins. The tag, if it is one over threads: then the caller leaves it again."""
        tag = thread_tag(loop)
        tags = self.of(loop.min) | self.of(loop.extent)
        self.tags[loop.loop_var] = tags | {tag} if tag else tags
        if tag:
            self.axes.append(loop)
        return tag

    def let(self, var: E.Var, value: E.PrimExpr) -> None:
        self.tags[var] = self.of(value)

    def allocate(self, buffer: Buffer) -> None:
        """A buffer that each of the threads around has for itself."""
        self.tags[buffer.data] = frozenset(map(thread_tag, self.axes))

    def of(self, node: Node) -> Tags:
        """The axes along which the value, or the effect, of a part may differ: none of what is
        said to be the same in all threads."""
        tags: Tags = frozenset()
        parts = [node]
        for part in parts:  # which grows
            if isinstance(part, E.Call) and operator_name(part) == "tvm_thread_invariant":
                continue
            parts += children(part)
            if isinstance(part, E.Var):
                tags |= self.tags.get(part, frozenset())
            elif isinstance(part, (E.BufferLoad, S.BufferStore)):
                tags |= self.tags.get(part.buffer.data, frozenset())
        return tags


def kernels_in(statement: S.Stmt) -> Iterator[S.For]:
    """The outermost loops over blocks and threads."""
    if isinstance(statement, S.For) and statement.thread_binding is not None:
        yield statement
        return
    for part in children(statement):
        if isinstance(part, S.Stmt):
            yield from kernels_in(part)


def unify_thread_bindings(func: PrimFunc) -> PrimFunc:
    """Loops inside each other over one thread axis become one: a thread has one index on an axis.

    Shared buffers are allocated outside of the loops over threads, local ones inside; of a warp's,
    the threads along threadIdx.x have one together. Raises a ThreadError where the loops of one
    axis differ in extent, or a statement uses two of them, and for a warp of more than 32 threads.
    """
    return func.with_body(_Unification(func).rewrite(func.body))


def check_same_extent(first: S.For, loop: S.For) -> None:
    """Refuse a loop that has not as many iterations as another one over its axis, be they counted
    in other integers."""
    extents = [constant_value(each.extent) for each in (first, loop)]
    same = extents[0] == extents[1]
    if None in extents:
        same = same_expression(first.extent, loop.extent)
    if same:
        return
    assert loop.thread_binding is not None
    raise ThreadError(
        f'"{loop.thread_binding.thread_tag}" has extent {first.extent} at loop '
        f'"{first.loop_var.name}" and {loop.extent} at loop "{loop.loop_var.name}"; all loops of '
        "one thread axis in a kernel have the same extent",
        loop.span,
    )


class _Unification(Mutator):
    def __init__(self, func: PrimFunc) -> None:
        self.common = reduced_across_threads(func)
        self.loops: dict[str, S.For] = {}
        self.hoisted: list[Buffer] = []
        self.touched = Touched()
        self.warps: dict[E.Var, _WarpCopies] = {}
        self.warp_size = WAVE_SIZE if uses_matrix_cores(func) else WARP_SIZE

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        tag = loop.thread_binding.thread_tag
        outer = self.loops.get(tag)
        if outer is not None:
            check_same_extent(outer, loop)
            check_one_index(loop, outer)
            index = cast(loop.loop_var.dtype, add(subtract(outer.loop_var, outer.min), loop.min))
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
        buffer = statement.buffer
        if buffer.scope().startswith("warp"):
            self.warps[buffer.data] = _WarpCopies(buffer, self.warp_size)
        body = self.rewrite(statement.body)
        if buffer.data in self.warps:
            buffer = self.warps.pop(buffer.data).buffer
        inside = any(thread_tag(loop) for loop in self.loops.values())
        if inside and (is_shared(buffer) or buffer.data in self.common):
            self.hoisted.append(buffer)
            return body
        owner = _owner(buffer)
        if not inside and owner and buffer.data not in self.common:
            sunk = _sunk(buffer, body, owner, self.touched)
            if sunk is not None:
                return sunk
            if is_own(buffer) and (loops := _loops_over(owner, body)):
                # Each thread has it through several loops over threads, which become one.
                return self.rewrite(in_loops(replace(statement, body=statement.body), loops))
        return replace(statement, buffer=buffer, body=body)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        copies = self.warps.get(node.buffer.data)
        return new if copies is None else copies.access(new, list(self.loops.values()))

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        if var in self.warps:
            raise self.warps[var].refusal("is used by its address", var)
        return var


def copies_of(buffer: Buffer, loops: Sequence[S.For]) -> tuple[Buffer, list[E.PrimExpr]]:
    """Copies of a buffer for the iterations of some loops, and the index of the present one."""
    data = E.Var(buffer.data.name, "handle", buffer.data.type_annotation)
    shape = (*(loop.extent for loop in loops), *buffer.shape)
    index = [subtract(loop.loop_var, loop.min) for loop in loops]
    return replace(buffer, data=data, shape=shape, strides=()), index


class _WarpCopies:
    """The copies of a buffer of scope "warp": one for each index on the other thread axes."""

    def __init__(self, buffer: Buffer, warp_size: int) -> None:
        self.old = self.buffer = buffer
        self.warp_size = warp_size
        self.tags: list[str] | None = None

    def access(self, node: Any, around: Sequence[S.For]) -> Any:
        loops = {tag: loop for loop in around if (tag := thread_tag(loop))}
        lanes = loops.pop("threadIdx.x", None)
        if lanes is None or not _divides(self.warp_size, lanes.extent):
            threads = "no loop" if lanes is None else f"a loop of {lanes.extent}"
            raise self.refusal(
                f"is memory of a warp, whose threads are those of one loop over threadIdx.x, of "
                f"which {self.warp_size} is a multiple; here is {threads}",
                node,
            )
        tags = sorted(tag for tag, loop in loops.items() if not is_const_int(loop.extent, 1))
        copies, index = copies_of(self.old, [loops[tag] for tag in tags])
        if self.tags is None:
            self.tags = tags
            if tags:
                self.buffer = copies
        if tags != self.tags:
            names = " and ".join(sorted({*tags, *self.tags}))
            raise self.refusal(f"is memory of a warp, used inside and outside of {names}", node)
        if not tags:
            return node
        if node.buffer is not self.old or self.old.strides:
            raise self.refusal("is memory of a warp, and has strides or a view", node)
        return replace(node, buffer=self.buffer, indices=(*index, *node.indices))

    def refusal(self, reason: str, node: Node) -> ThreadError:
        return ThreadError(f'"{self.old.name}" {reason}; use "shared" memory instead', node.span)


def _divides(count: int, extent: E.PrimExpr) -> bool:
    return isinstance(extent, E.IntImm) and extent.value > 0 and count % extent.value == 0


def uses_matrix_cores(func: PrimFunc) -> bool:
    """Whether loops are marked as an instruction of AMD's matrix cores."""
    marks = S.find_attributes(func.body, WARP_MATRIX)
    return any(str(getattr(mark.value, "value", "")).startswith(MATRIX_CORES) for mark in marks)


def check_one_index(inner: S.For, outer: S.For) -> None:
    """Refuse a loop over the axis of another one around it, if a statement uses both: these loops
    are meant to run through all pairs, and a thread has one index on an axis."""
    for part in S.statements_in(inner.body):
        headers = (child for child in children(part) if not isinstance(child, S.Stmt))
        used = {var for header in headers for var in variables_in(header)}
        if {inner.loop_var, outer.loop_var} <= used:
            assert inner.thread_binding is not None
            raise ThreadError(
                f'The loops "{outer.loop_var.name}" and "{inner.loop_var.name}" inside it are both '
                f'over "{inner.thread_binding.thread_tag}", on which a thread has one index, and a '
                "statement uses both; bind one of them to another axis",
                part.span,
            )


def reduced_across_threads(func: PrimFunc) -> set[E.Var]:
    """The data of the buffers that threads reduce to together."""
    return {
        data
        for part in S.find_attributes(func.body, CROSS_THREAD_REDUCTION)
        for data in stored_data(part)
    }


def _owner(buffer: Buffer) -> tuple[str, ...]:
    """The axes of whose indices each has the buffer for itself, by its storage scope."""
    if is_shared(buffer):
        return ("blockIdx",)
    return ("threadIdx", "vthread") if is_own(buffer) else ()


def _loops_over(owner: tuple[str, ...], statement: S.Stmt) -> list[S.For]:
    """A loop for each axis of an owner that there are loops over in a statement, if that is part of
    one kernel, and does nothing outside of such loops, which threads would do again."""
    loops: dict[str, S.For] = {}
    for node in walk(statement):
        if isinstance(node, S.For) and node.thread_binding is not None:
            if node.thread_binding.thread_tag.startswith("blockIdx"):
                return []
            loops.setdefault(node.thread_binding.thread_tag, node)
    own = {tag: loop for tag, loop in loops.items() if tag.startswith(owner)}
    if not _is_inside(statement, frozenset(own)):
        return []
    return [replace(loop, loop_var=replace(loop.loop_var)) for loop in own.values()]


def _is_inside(statement: S.Stmt, tags: frozenset[str]) -> bool:
    """Whether all that a statement does is inside of loops over some thread axes."""
    if isinstance(statement, S.For) and statement.thread_binding is not None:
        tags -= {statement.thread_binding.thread_tag}
    if not tags:
        return True
    parts = (part for part in children(statement) if isinstance(part, S.Stmt))
    is_leaf = isinstance(statement, (S.BufferStore, S.Evaluate))
    return not is_leaf and all(_is_inside(part, tags) for part in parts)


def _sunk(
    buffer: Buffer, statement: S.Stmt, owner: tuple[str, ...], touched: Touched
) -> S.Stmt | None:
    """A statement with a buffer allocated in the innermost loop over an axis of its owner that
    holds all its accesses; None where there is no such loop. What threads share is outside of the
    loops over them, also of one that has the thread blocks inside."""
    if is_shared(buffer) and thread_tag(statement):
        return None
    parts = [child for child in children(statement) if buffer.data in touched.by(child)]
    part = parts[0] if len(parts) == 1 else None
    if isinstance(part, S.Stmt):
        inner = _sunk(buffer, part, owner, touched)
        if inner is not None:
            return with_substatements(statement, {part: inner})
    if not isinstance(statement, S.For) or statement.thread_binding is None:
        return None
    if not statement.thread_binding.thread_tag.startswith(owner):
        return None
    return replace(statement, body=S.AllocBuffer(buffer, statement.body))
