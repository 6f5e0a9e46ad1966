"""The asynchronous stages of a software pipeline: what is committed together, and who waits.

Copies under `async_scope` go on while the thread computes. Those under one
`async_commit_queue_scope` are a group, and `async_wait_queue_scope` waits before its body until at
most `async_wait_inflight_count` of the groups committed last are not done. The attributes are
TVM's.

A reader of iteration a waits for the groups of iteration a. Of each group that it reads, as many
may be in flight as have been committed since, which is the difference between the last iteration
that was committed and a; of several, their sum. Where that is not known, it waits for all.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from mlcweb.arith import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.pipeline_dependences import Stage
from mlcweb.lower.statement_simplifier import NOTHING
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.intrinsics import if_then_else

ASYNC_SCOPE = "async_scope"
COMMIT = "async_commit_queue_scope"
WAIT = "async_wait_queue_scope"
IN_FLIGHT = "async_wait_inflight_count"


@dataclass(frozen=True, slots=True, eq=False)
class Emitted:
    """A statement in a part of the pipeline: the block, where it runs, and for which iteration,
    counted from 0."""

    stage: Stage
    block: S.Block
    predicate: E.PrimExpr
    iteration: E.PrimExpr


@dataclass(slots=True, eq=False)
class _Group:
    """Statements that are committed together, and what they write."""

    queue: int
    members: list[Stage] = field(default_factory=list)
    written: set[E.Var] = field(default_factory=set)


@dataclass(slots=True)
class _Wait:
    """A wait for a queue before a statement that runs where a predicate holds. `committed` groups
    come before it in the body."""

    queue: int
    position: int
    count: E.PrimExpr
    predicate: E.PrimExpr
    committed: int


class AsyncStages:
    """The asynchronous stages of one pipeline. `own` are the buffers that its loop allocates."""

    def __init__(self, stages: Sequence[Stage], own: Container[Buffer]) -> None:
        self.written: dict[int, set[E.Var]] = {}
        self.outlives = False
        for stage in stages:
            if stage.is_async:
                buffers = [region.buffer for region in stage.block.writes]
                self.written.setdefault(stage.number, set()).update(b.data for b in buffers)
                self.outlives = self.outlives or any(buffer not in own for buffer in buffers)
        # Groups of a pipeline inside would have to be counted, too.
        self.counts = not any(map(_commits, (stage.block for stage in stages)))
        self.groups = self._grouped(sorted(stages, key=lambda stage: stage.order))
        self.heads: dict[int, E.PrimExpr | None] = dict.fromkeys(self.written, const(-1))

    def complete(
        self, emitted: Sequence[Emitted], analyzer: Analyzer, extent: E.PrimExpr
    ) -> list[tuple[S.Stmt | S.Block, E.PrimExpr]]:
        """The statements of a part, with asynchronous scopes around them, and where each runs.
        `analyzer` knows the loop that they are in, of an extent."""
        if not self.written:
            return [(each.block, each.predicate) for each in emitted]
        positions = {each.stage: n for n, each in enumerate(emitted)}
        groups = [group for group in self.groups if group.members[0] in positions]
        bodies = [each.block.body for each in emitted]
        for n, each in enumerate(emitted):
            if each.stage.is_async:
                bodies[n] = _attribute(ASYNC_SCOPE, const(1), bodies[n])
            if not self.counts:
                bodies[n] = _WaitForAll().rewrite(bodies[n])
        for wait in self._waits(emitted, groups, positions, analyzer):
            waited = _attribute(IN_FLIGHT, wait.count, bodies[wait.position])
            bodies[wait.position] = _attribute(WAIT, const(wait.queue), waited)
        for queue in {group.queue for group in groups}:
            head, own = self.heads[queue], next(g for g in groups if g.queue == queue)
            runs = emitted[positions[own.members[0]]].predicate
            is_counted = head is not None and analyzer.can_prove(runs)
            self.heads[queue] = add(head, extent) if is_counted else None
        result: list[tuple[S.Stmt | S.Block, E.PrimExpr]] = []
        committed = {group.members[0]: group for group in groups}
        later = {stage for group in groups for stage in group.members[1:]}
        for n, each in enumerate(emitted):
            if each.stage in committed:
                group = committed[each.stage]
                own = [positions[member] for member in group.members]
                body = S.sequence(*(_whole(emitted[m].block, bodies[m]) for m in own))
                result.append((_attribute(COMMIT, const(group.queue), body), each.predicate))
            elif each.stage not in later:
                result.append((replace(each.block, body=bodies[n]), each.predicate))
        return result

    def finish(self) -> list[S.Stmt]:
        """What waits after the pipeline for copies that somebody may read there."""
        if not self.outlives:
            return []
        return [
            _attribute(WAIT, const(queue), _attribute(IN_FLIGHT, const(0), NOTHING))
            for queue in self.written
        ]

    def _grouped(self, in_order: Sequence[Stage]) -> list[_Group]:
        """Neighbours of one stage that do not read each other's copies are a group, in all parts of
        the pipeline alike: counts in one part are of groups in another, too."""
        groups: list[_Group] = []
        previous: Stage | None = None
        for stage in in_order:
            if stage.is_async:
                last = groups[-1] if groups else None
                if (
                    last is None
                    or last.members[-1] is not previous
                    or last.queue != stage.number
                    or not last.written.isdisjoint(_touched(stage.block, writes=False))
                ):
                    last = _Group(stage.number)
                    groups.append(last)
                last.members.append(stage)
                last.written.update(region.buffer.data for region in stage.block.writes)
            previous = stage
        return groups

    def _waits(
        self,
        emitted: Sequence[Emitted],
        groups: Sequence[_Group],
        positions: Mapping[Stage, int],
        analyzer: Analyzer,
    ) -> list[_Wait]:
        """Where to wait for a queue. Who comes after another waits with it, if nothing is committed
        between, and the other one runs whenever it does."""
        waits: list[_Wait] = []
        last: dict[int, _Wait] = {}
        for n, each in enumerate(emitted):
            touched = _touched(each.block, writes=not each.stage.is_async)
            for queue, written in self.written.items():
                if queue > each.stage.number or written.isdisjoint(touched):
                    continue
                own = [group for group in groups if group.queue == queue]
                seen = [group for group in own if positions[group.members[-1]] < n]
                count = self._count(queue, each, touched, own, seen, emitted, positions, analyzer)
                previous = last.get(queue)
                together = (
                    previous is not None
                    and previous.committed == len(seen)
                    and (
                        same_expression(previous.predicate, each.predicate)
                        or analyzer.can_prove(previous.predicate)
                    )
                )
                if previous is None or not together:
                    last[queue] = _Wait(queue, n, count, each.predicate, len(seen))
                    waits.append(last[queue])
                elif not analyzer.can_prove(count >= previous.count):
                    less = analyzer.can_prove(count < previous.count)
                    previous.count = count if less else const(0)
        return waits

    def _count(
        self,
        queue: int,
        reader: Emitted,
        touched: set[E.Var],
        groups: Sequence[_Group],
        seen: Sequence[_Group],
        emitted: Sequence[Emitted],
        positions: Mapping[Stage, int],
        analyzer: Analyzer,
    ) -> E.PrimExpr:
        """How many groups of a queue may be in flight when a reader begins; those that are `seen`
        have been committed in the same iteration of the new loop."""
        if not self.counts:
            return const(0)
        heads: list[E.PrimExpr | None] = [] if groups else [self.heads[queue]]
        runs: E.PrimExpr = const(True)
        for group in groups:
            producer = emitted[positions[group.members[0]]]
            runs, head = producer.predicate, producer.iteration
            if not group.written.isdisjoint(touched):
                heads.append(head if group in seen else subtract(head, const(1, head.dtype)))
        total: E.PrimExpr = const(0)
        for head in heads:
            if head is None or not analyzer.can_prove(head >= 0):
                return const(0)
            total = add(total, subtract(head, reader.iteration))
        total = analyzer.simplify(total)
        if analyzer.can_prove(runs):
            return total
        return if_then_else(runs, total, const(0, total.dtype))


def _attribute(key: str, value: E.PrimExpr, body: S.Stmt) -> S.Stmt:
    return S.AttrStmt(0, key, value, body)


def _whole(block: S.Block, body: S.Stmt) -> S.Stmt:
    """The body of a block, in the block where that allocates memory."""
    if not block.alloc_buffers:
        return body
    return S.BlockRealize((), const(True), replace(block, body=body))


def _touched(block: S.Block, writes: bool) -> set[E.Var]:
    regions = (*block.reads, *block.writes) if writes else block.reads
    return {region.buffer.data for region in regions}


def _commits(node: S.Stmt) -> bool:
    return any(S.find_attributes(node, COMMIT))


class _WaitForAll(Mutator):
    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> Node:
        new = self.rewrite_children(statement)
        return replace(new, value=const(0)) if statement.attr_key == IN_FLIGHT else new
