"""The lowering for machines with threads: kernels, each a launch of blocks of threads.

What a program binds to thread axes becomes a kernel: one loop for each axis, those over blocks
outside, and in them what one thread does, barriers included. What stands around kernels is the
host's: it may loop, choose, and allocate memory that kernels pass on, but computes nothing itself.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

from mlcweb.analysis.threads import CROSS_THREAD_REDUCTION, is_thread_tag, thread_tag
from mlcweb.arith import conjuncts, same_expression
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on, walk
from mlcweb.lower.compact_buffers import compact_shared_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.global_exchange import passed_through_global_memory
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.pipeline import run_pipeline
from mlcweb.lower.place_allocations import place_outside_of_threads
from mlcweb.lower.serialize_threads import Fission, synchronize_threads
from mlcweb.lower.simplify import simplify
from mlcweb.lower.thread_axes import ThreadError, check_one_index
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, logical_and, multiply
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.operators import OPERATORS
from mlcweb.tir.substitute import substitute, uses_any, variables_in

AXES = tuple(f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx", "vthread") for axis in "zyx")
"""The axes of a launch, outermost first."""


def lower_for_device(func: PrimFunc) -> PrimFunc:
    """The function as launches of threads: no blocks, buffers of one dimension, barriers in place.

    Raises a ThreadError where threads cannot run as they are written.
    """
    return run_pipeline(func, _passes())


@functools.cache
def _passes() -> tuple[LoweringPass, ...]:
    return (
        lower_init_block,
        convert_blocks_to_loops,
        LoweringPass(place_outside_of_threads, "PlaceSharedAllocations", needed=True),
        LoweringPass(compact_shared_buffers, "CompactSharedAllocations"),
        LoweringPass(launch_threads, "LaunchThreads", needed=True),
        LoweringPass(reduce_through_shared_memory, "LowerThreadAllreduce", needed=True),
        LoweringPass(synchronize_launches, "ThreadSync", needed=True),
        LoweringPass(unfold_virtual_threads, "InjectVirtualThread", needed=True),
        flatten_buffers,
        simplify,
    )


def launch_threads(func: PrimFunc) -> PrimFunc:
    """Move the loops over each axis out of what is bound, where they become one.

    Raises a ThreadError where the loops of one axis differ in extent, or one depends on others.
    """
    return func.with_body(_Launches().rewrite(func.body))


class _Launches(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        return _Launch().whole(loop) if loop.thread_binding else self.rewrite_children(loop)


class _Launch(Mutator):
    """Takes the loops over axes out of one kernel."""

    def __init__(self) -> None:
        self.axes: dict[str, S.For] = {}
        self.around: dict[str, S.For] = {}
        self.common: list[Buffer] = []

    def whole(self, loop: S.For) -> S.Stmt:
        inside = self.rewrite(loop)
        inner = variables_in(*(axis.extent for axis in self.axes.values()))
        defined = {part.loop_var for part in S.statements_in(loop) if isinstance(part, S.For)}
        for axis in self.axes.values():
            if defined & inner & variables_in(axis.extent):
                raise ThreadError(
                    f'The extent of loop "{axis.loop_var.name}" over threads depends on loops '
                    "of its kernel; all blocks of a launch have the same threads",
                    axis.span,
                )
        threads = sorted(filter(is_thread_tag, self.axes), key=_rank)
        for tag in reversed(threads):
            inside = replace(self.axes[tag], body=inside)
        for buffer in self.common:
            inside = S.AllocBuffer(buffer, inside)
        for tag in sorted(self.axes.keys() - set(threads), key=_rank, reverse=True):
            inside = replace(self.axes[tag], body=inside)
        return inside

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        tag = loop.thread_binding.thread_tag
        if tag in self.around:
            check_one_index(loop, self.around[tag])
        axis = self.axes.setdefault(tag, replace(loop, min=const(0, loop.loop_var.dtype)))
        if not same_expression(axis.extent, loop.extent):
            raise ThreadError(
                f'"{tag}" has extent {axis.extent} at loop "{axis.loop_var.name}" and '
                f'{loop.extent} at loop "{loop.loop_var.name}"; all loops of one thread axis in a '
                "kernel have the same extent",
                loop.span,
            )
        outer, self.around = self.around, {**self.around, tag: loop}
        index = add(axis.loop_var, loop.min)
        body = loop.body
        if index is not loop.loop_var:
            body = substitute(body, {loop.loop_var: index})
        body = self.rewrite(body)
        self.around = outer
        return body

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> S.Stmt:
        """Memory that threads have around them is theirs together, unless it is local."""
        outside = not any(map(is_thread_tag, self.around))
        if outside and statement.buffer.scope() == "global":
            self.common.append(statement.buffer)
            return self.rewrite(statement.body)
        return self.rewrite_children(statement)


def _rank(tag: str) -> int:
    return AXES.index(tag) if tag in AXES else len(AXES)


def reduce_through_shared_memory(func: PrimFunc) -> PrimFunc:
    """Threads that reduce to one element put their values side by side in shared memory, add them
    up in pairs, and the first thread brings the sum to the element."""
    return func.with_body(_Reductions().rewrite(func.body))


class _Reductions(Mutator):
    def __init__(self) -> None:
        self.axes: dict[str, S.For] = {}

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if loop.thread_binding is None:
            return self.rewrite_children(loop)
        self.axes[loop.thread_binding.thread_tag] = loop
        new = self.rewrite_children(loop)
        del self.axes[loop.thread_binding.thread_tag]
        return new

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
        assert isinstance(statement.value, E.StringImm)
        reduced = [self.axes[tag] for tag in statement.value.value.split()]
        threads = [loop for tag, loop in self.axes.items() if is_thread_tag(tag)]
        update = _update_in(statement.body)
        constant = all(isinstance(loop.extent, E.IntImm) for loop in reduced)
        if update is not None and constant and _may_go_in_pairs(statement.body, update, reduced):
            return _in_pairs(statement.body, update, threads, reduced)
        return _by_the_first(statement.body, reduced)


def _update_in(body: S.Stmt) -> S.BufferStore | None:
    """The one statement that combines an element with a value; None where there are others."""
    stores = [part for part in walk(body) if isinstance(part, S.BufferStore)]
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


def _in_pairs(
    body: S.Stmt, update: S.BufferStore, threads: list[S.For], reduced: list[S.For]
) -> S.Stmt:
    combined: Any = update.value
    combine, dtype = type(combined), update.buffer.dtype
    count = prod(loop.extent.value for loop in reduced if isinstance(loop.extent, E.IntImm))
    others = [loop for loop in threads if loop not in reduced]
    partial = decl_buffer(
        (*(loop.extent for loop in others), count),
        dtype,
        f"{update.buffer.name}_partial",
        scope="shared",
    )
    place: list[E.PrimExpr] = [loop.loop_var for loop in others]
    position: E.PrimExpr = const(0)
    for loop in reduced:
        position = add(multiply(position, loop.extent), loop.loop_var)

    def element(index: E.PrimExpr) -> E.BufferLoad:
        return E.BufferLoad(partial, (*place, index))

    def store(index: E.PrimExpr, value: E.PrimExpr) -> S.Stmt:
        return S.BufferStore(partial, value, (*place, index), span=update.span)

    identity = OPERATORS[combine].identity
    assert identity is not None
    value = combined.b
    conditions = _conditions_of(body, update)
    if conditions:
        condition = functools.reduce(logical_and, conditions)
        value = if_then_else(condition, value, const(identity(dtype), dtype))
    steps = [store(position, value)]
    rest = count
    while rest > 1:
        half = (rest + 1) // 2
        pair = combine(element(position), element(add(position, half)))
        steps.append(S.IfThenElse(E.LT(position, const(rest - half)), store(position, pair)))
        rest = half
    last = replace(update, value=combine(combined.a, element(const(0))))
    axes = {loop.loop_var for loop in reduced}
    ending = _Ending(update, last, axes).rewrite(body)
    first = {loop.loop_var: const(0, loop.loop_var.dtype) for loop in reduced}
    steps.append(S.IfThenElse(E.EQ(position, const(0)), substitute(ending, first)))
    return S.AllocBuffer(partial, S.sequence(*steps))


def _conditions_of(body: S.Stmt, update: S.BufferStore) -> list[E.PrimExpr]:
    """What has to hold for a statement in a body to run."""
    parts: list[E.PrimExpr] = []
    for part in S.statements_in(body):
        if isinstance(part, S.IfThenElse) and any(node is update for node in walk(part)):
            parts += conjuncts(part.condition)
    return parts


def _may_go_in_pairs(body: S.Stmt, update: S.BufferStore, reduced: list[S.For]) -> bool:
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
        for part in walk(body)
        if isinstance(part, E.BufferLoad) and part.buffer.scope() == "local"
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


def synchronize_launches(func: PrimFunc) -> PrimFunc:
    """Put the barriers in, also between what threads of a block do in global memory.

    Raises a ThreadError where blocks would have to wait for each other.
    """
    return synchronize_threads(func, passed_through_global_memory(func))


def unfold_virtual_threads(func: PrimFunc) -> PrimFunc:
    """Each thread runs the virtual ones in it one after the other, from barrier to barrier."""
    return func.with_body(_VirtualThreads().rewrite(func.body))


class _VirtualThreads(Mutator):
    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        if thread_tag(loop).startswith("vthread"):
            return Fission(keeps_barriers=True).split(loop)
        return self.rewrite_children(loop)
