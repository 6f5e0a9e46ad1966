"""Copies made in one block at a loop, for a memory that a whole iteration shares: read_at,
write_at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlcweb.analysis.effects import reads_old_elements
from mlcweb.arith import Analyzer, estimate_region, union
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import find_nodes
from mlcweb.schedule.accessed_buffer import accessed_buffer
from mlcweb.schedule.analysis.effects import contains, must_write
from mlcweb.schedule.analysis.iteration_order import check_init_runs_first
from mlcweb.schedule.analysis.regions import bound_ranges, regions_of, relaxed, threads_sharing
from mlcweb.schedule.analysis.scopes import scope_around
from mlcweb.schedule.analysis.units import check_all_blocks, hidden_accesses, stands_in
from mlcweb.schedule.arguments import ReadBuffer, StorageScope, WriteBuffer
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.registry import primitive
from mlcweb.schedule.rewriting.buffer_rewriting import Redirection
from mlcweb.schedule.rewriting.nests import (
    copy_of,
    loop_nest,
    loops_from,
    statements_of,
    with_stages,
)
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, full_region
from mlcweb.tir.expr import BufferLoad, Var
from mlcweb.tir.stmt import Block, BlockIdentity, BlockRealize, BufferStore, IterVar, Stmt
from mlcweb.tir.substitute import reads_memory, substitute

AUTO_COPY = "auto_copy"
"""The annotation of a block that does nothing but copy a box between two memories."""


@primitive("ReadAt")
def read_at(
    state: ScheduleState,
    loop: Var,
    block: BlockIdentity,
    read_buffer_index: ReadBuffer,
    storage_scope: StorageScope,
) -> tuple[ScheduleState, BlockIdentity]:
    """Copy what an iteration of a loop reads of a buffer, in one block, before its first use there.

    The copy keeps the buffer's shape; all blocks in the loop read it.

    Checked: the block reads such a buffer and stands in the loop; the storage scope exists; no
    block in the loop writes the buffer after one has read it; the box that is read is known, and
    lies in the buffer.

    rewrite:
        for i in range(16):                         for i in range(16):
            for j in range(16):                         (block "A_shared") A_shared[i, :] = A[i, :]
                (block "C") C[vi, vj] = A[vi, vj]  -->  for j in range(16):
                                                            (block "C") … = A_shared[vi, vj]
    """
    plan = _planned(state, loop, block, read_buffer_index, storage_scope, "read")
    reads, writes = plan.steps_that("read"), plan.steps_that("write")
    late = [step for step in writes if step >= reads[0]]
    if late:
        raise DataflowError(
            f'The buffer "{plan.buffer.name}" is written in the loop "{loop.name}" after it has '
            "been read there, so that a copy made before would be out of date",
            [plan.place.loop, *plan.users(late[0])],
            "read at a loop further inside",
        )
    box = plan.box([access for step in reads for access in plan.accesses(step, "read")])
    _check_inside(plan, box)
    return _with_copy(state, plan, box, reads[0], range(reads[0], len(plan.steps)))


@primitive("WriteAt")
def write_at(
    state: ScheduleState,
    loop: Var,
    block: BlockIdentity,
    write_buffer_index: WriteBuffer,
    storage_scope: StorageScope,
) -> tuple[ScheduleState, BlockIdentity]:
    """Let an iteration of a loop write a buffer through a copy, which one block copies back after
    its last use there.

    The copy keeps the buffer's shape; all blocks in the loop write it.

    Checked: the block writes such a buffer and stands in the loop; the storage scope exists; what
    the loop reads of the buffer it has written in the same iteration, and not after the last write;
    the box that an iteration writes is known, and written without gaps.

    rewrite:
        for i in range(16):                         for i in range(16):
            for j in range(16):                         for j in range(16):
                (block "C") C[vi, vj] = A[vi, vj]  -->      (block "C") C_shared[vi, vj] = …
                                                        (block "C_shared") C[i, :] = C_shared[i, :]
    """
    plan = _planned(state, loop, block, write_buffer_index, storage_scope, "write")
    reads, writes = plan.steps_that("read"), plan.steps_that("write")
    late = [step for step in reads if step > writes[-1]]
    if late:
        raise DataflowError(
            f'The buffer "{plan.buffer.name}" is read in the loop "{loop.name}" after its last '
            "write there, and would not hold the new values yet",
            [plan.place.loop, *plan.users(late[-1])],
            "write at a loop that does not hold the reader",
        )
    accesses = [a for step in range(len(plan.steps)) for a in plan.accesses(step, "write", "read")]
    check_all_blocks((a.place for a in accesses), plan.buffer, "would not use the copy")
    for access in accesses:
        check_init_runs_first(access.place, "a reduction that begins where its iterators do")
    box = plan.box([access for step in writes for access in plan.accesses(step, "write")])
    _check_written(plan, box)
    return _with_copy(state, plan, box, writes[-1] + 1, range(writes[-1] + 1))


@dataclass(frozen=True, slots=True)
class _Access:
    """A region of the buffer that a block reads or writes, seen from the loop."""

    place: BlockPlace
    region: BufferRegion
    inner: dict[Var, Range]

    @property
    def ranges(self) -> tuple[Range, ...]:
        return bound_ranges(self.place.realize, self.region)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where a copy is made of which buffer."""

    state: ScheduleState
    place: LoopPlace
    buffer: Buffer
    storage_scope: str
    access: str
    analyzer: Analyzer

    @property
    def steps(self) -> tuple[Stmt, ...]:
        """The statements of the loop's body."""
        return statements_of(self.place.loop)

    def units(self, step: int) -> list[BlockPlace]:
        units = scope_around(self.state, self.place).units
        return [unit for unit in units if stands_in(unit, self.steps[step])]

    def accesses(self, step: int, *kinds: str) -> Iterator[_Access]:
        """How the units of a statement read or write the buffer."""
        for place, kind in itertools.product(self.units(step), kinds):
            block = place.block
            sharing = threads_sharing(place, self.place.loop, self.storage_scope)
            inner = {**sharing, **place.inner_loops(self.place.loop)}
            for region in regions_of(block.reads if kind == "read" else block.writes, self.buffer):
                yield _Access(place, region, inner)

    def steps_that(self, access: str) -> list[int]:
        return [n for n in range(len(self.steps)) if any(True for _ in self.accesses(n, access))]

    def users(self, step: int) -> list[BlockRealize]:
        """The blocks of a statement that access the buffer."""
        accesses = self.accesses(step, "read", "write")
        return list({access.place.realize: None for access in accesses})

    def box(self, accesses: Sequence[_Access]) -> list[Range]:
        """The box around what blocks access in an iteration of the loop."""
        # Without the domains of the loops, so that the box depends on those of one iteration too.
        analyzer = Analyzer()
        boxes = [relaxed(access.ranges, access.inner, analyzer) for access in accesses]
        simplify = analyzer.simplify
        sides = []
        for n, values in enumerate(zip(*boxes, strict=True)):
            low, high = union(values, analyzer)
            if low is None or high is None or reads_memory(low) or reads_memory(high):
                raise DataflowError(
                    f'It is not known which elements of "{self.buffer.name}" an iteration of the '
                    f'loop "{self.place.loop.loop_var.name}" accesses in dimension {n}',
                    [self.place.loop, *(access.place.realize for access in accesses)],
                    "cache_read or cache_write of the whole buffer",
                )
            first = simplify(low)
            sides.append(Range(first, simplify(high + 1 - first)))
        return sides


def _planned(
    state: ScheduleState,
    loop: Var,
    block: BlockIdentity,
    index: int,
    storage_scope: str,
    access: str,
) -> _Plan:
    place, target = state.block(block), state.loop(loop)
    buffer = accessed_buffer(place, index, access)
    loops_from(place, target.loop)
    plan = _Plan(state, target, buffer, storage_scope, access, target.analyzer_inside())
    blocks = [user.block for step in range(len(plan.steps)) for user in plan.units(step)]
    if any(buffer in buffers for block in blocks for buffers in hidden_accesses(block)):
        scope_around(state, target).check_declared(buffer)
    return plan


def _check_inside(plan: _Plan, box: Sequence[Range]) -> None:
    if not contains(full_region(plan.buffer).region, box, plan.analyzer):
        raise DataflowError(
            f'The box of "{plan.buffer.name}" that an iteration of the loop '
            f'"{plan.place.loop.loop_var.name}" reads is not known to lie in the buffer, and the '
            "copy reads all of it",
            [plan.place.loop],
            "split by a factor that divides the extent, or use cache_read with compute_at",
        )


def _check_written(plan: _Plan, box: Sequence[Range]) -> None:
    """Raise DataflowError unless an iteration writes all of the box, and reads of it only what it
    has written before."""
    written: list[list[Range]] = []
    analyzer = plan.analyzer
    for step in range(len(plan.steps)):
        for read in plan.accesses(step, "read"):
            if not reads_old_elements(read.place.block, plan.buffer):
                continue
            needed = relaxed(read.ranges, read.inner, analyzer)
            if not any(contains(part, needed, analyzer) for part in written):
                raise DataflowError(
                    f'The {read.place.title} reads elements of "{plan.buffer.name}" that this '
                    f'iteration of the loop "{plan.place.loop.loop_var.name}" has not written; '
                    "the copy does not hold them",
                    [plan.place.loop, read.place.realize],
                    "write at a loop around the block that writes them first",
                )
        for write in plan.accesses(step, "write"):
            exact = estimate_region(write.ranges, write.inner, True)
            if exact is not None and must_write(write.place, plan.buffer, plan.place.loop, exact):
                written.append(list(exact))
    if not any(contains(part, box, analyzer) for part in written):
        raise DataflowError(
            f'An iteration of the loop "{plan.place.loop.loop_var.name}" is not known to write all '
            f'of the box of "{plan.buffer.name}" that it touches, so that copying back would '
            "overwrite other elements",
            [plan.place.loop],
            "split by a factor that divides the extent, or use cache_write with reverse_compute_at",
        )


def _with_copy(
    state: ScheduleState, plan: _Plan, box: Sequence[Range], position: int, steps: range
) -> tuple[ScheduleState, BlockIdentity]:
    """The program with the copying block before the statement at `position` of the loop, and the
    blocks of the statements `steps` using the copy."""
    buffer, function = plan.buffer, plan.place.function
    copy = copy_of(buffer, plan.storage_scope, buffer.shape)
    redirection = Redirection(buffer, copy, None)
    changes: dict[Stmt, Stmt | None] = {
        realize: redirection.of(realize) for step in steps for realize in plan.users(step)
    }
    source, target = (buffer, copy) if plan.access == "read" else (copy, buffer)
    stage = _copying_block(plan, box, source, target, f"{buffer.name}_{plan.storage_scope}")
    scope = state.scope_of(plan.place)
    state = state.replaced(function, changes)
    state, (block,) = with_stages(state, scope, plan.place.loop, position, [stage], copy)
    return state, block


def _copying_block(
    plan: _Plan, box: Sequence[Range], source: Buffer, target: Buffer, name: str
) -> BlockRealize:
    """A block that copies a box. Its iterators are the loops that the box depends on."""
    loops = {loop.loop_var: loop for loop in (*plan.place.loops, plan.place.loop)}
    iter_vars: dict[Var, IterVar] = {}
    for side in box:
        for var in find_nodes(side, Var):
            if var in loops and var not in iter_vars:
                iterator = Var(f"v{len(iter_vars)}", var.dtype)
                iter_vars[var] = IterVar(loops[var].domain, iterator)
    inside = substitute(
        BufferRegion(source, tuple(box)), {var: i.var for var, i in iter_vars.items()}
    )
    variables = [Var(f"ax{n}", side.extent.dtype) for n, side in enumerate(inside.region)]
    indices = tuple(
        var if is_const_int(side.min, 0) else side.min + var
        for var, side in zip(variables, inside.region, strict=True)
    )
    body = loop_nest(
        variables,
        [side.extent for side in inside.region],
        BufferStore(target, BufferLoad(source, indices), indices),
    )
    block = Block(
        tuple(iter_vars.values()),
        (inside,),
        (replace(inside, buffer=target),),
        name,
        body,
        annotations={AUTO_COPY: True},
    )
    return BlockRealize(tuple(iter_vars), const(True), block)
