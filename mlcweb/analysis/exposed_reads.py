"""What a block reads of what was there before it: its upward-exposed reads.

A read is exposed unless the same iteration of the block has surely stored the element before: in
its init, or in a statement further up. So a reduction with an init does not read its output in this
sense, whatever its T.reads say (programs that TVM printed in 2021 and 2022 list the output there).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from mlcweb.analysis.access_regions import element_region, in_source
from mlcweb.arith import Analyzer, estimate_region, eval_range, same_expression
from mlcweb.ir.visitor import Visitor, on, walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.substitute import reads_memory, substitute, variables_in


def exposed_reads(block: S.Block) -> tuple[BufferRegion, ...]:
    """What an iteration of a block may read without having stored it before."""
    return _flow(block).exposed


def reads_old_elements(block: S.Block, buffer: Buffer) -> bool:
    """Whether an iteration of a block may read elements of a buffer without having stored them."""
    return any(region.buffer is buffer for region in _flow(block).exposed)


class _Flow(NamedTuple):
    """The exposed reads of a block, and what each of its iterations surely stores."""

    exposed: tuple[BufferRegion, ...]
    stored: tuple[BufferRegion, ...]


@lru_cache(maxsize=4096)
def _flow(block: S.Block) -> _Flow:
    flow = _FlowVisitor(block)
    if block.init is not None:
        flow.visit(block.init)
        # Of a reduction, the init has run in the first iteration alone.
        reduced = {i.var for i in block.iter_vars if i.iter_type != S.IterType.DATA_PARALLEL}
        flow.stored = [region for region in flow.stored if not variables_in(region) & reduced]
    if uses_addresses(block):
        for region in block.reads:
            flow.read(region)
        return _Flow(tuple(flow.exposed), ())
    flow.visit(block.body)
    return _Flow(tuple(flow.exposed), tuple(flow.stored))


def uses_addresses(block: S.Block) -> bool:
    """Whether a block may touch memory otherwise than by loads and stores of its buffers."""
    return any(
        isinstance(node, S.DeclBuffer) or (isinstance(node, E.Var) and node.dtype == "handle")
        for node in walk(block.body)
    )


class _FlowVisitor(Visitor):
    """Goes through statements in the order in which they run. `stored` is what has surely been
    stored by then, in terms of the variables that are visible."""

    def __init__(self, block: S.Block) -> None:
        self.exposed: list[BufferRegion] = []
        self.stored: list[BufferRegion] = []
        self.iterators = {i.var: i.dom for i in block.iter_vars if i.dom is not None}
        self.loops: dict[E.Var, Range] = {}
        self.own = set(block.alloc_buffers)
        self.matches = {match.buffer: match for match in block.match_buffers}

    def in_source(self, region: BufferRegion) -> BufferRegion:
        match = self.matches.get(region.buffer)
        return region if match is None else in_source(match, region)

    def read(self, region: BufferRegion) -> None:
        region = self.in_source(region)
        if region.buffer in self.own or any(self.covers(known, region) for known in self.stored):
            return
        if not self.loops:
            self.exposed.append(region)
            return
        analyzer = Analyzer({**self.iterators, **self.loops})
        sides = tuple(
            eval_range(side, self.loops, analyzer).cover_range(
                Range(const(0, extent.dtype), extent), analyzer
            )
            for side, extent in zip(region.region, region.buffer.shape, strict=True)
        )
        self.exposed.append(BufferRegion(region.buffer, sides))

    def store(self, region: BufferRegion) -> None:
        region = self.in_source(region)
        if region.buffer not in self.own:
            self.stored.append(region)

    def covers(self, known: BufferRegion, region: BufferRegion) -> bool:
        if known.buffer is not region.buffer:
            return False
        if all(map(_same_side, known.region, region.region)):
            return True
        analyzer = Analyzer({**self.iterators, **self.loops})
        return all(
            analyzer.can_prove(inner.min >= outer.min)
            and analyzer.can_prove(inner.min + inner.extent <= outer.min + outer.extent)
            for outer, inner in zip(known.region, region.region, strict=True)
        )

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        known = len(self.stored)
        domain = Range(loop.min, loop.extent)
        self.loops[loop.loop_var] = domain
        self.visit(loop.body)
        del self.loops[loop.loop_var]
        inside, self.stored = self.stored[known:], self.stored[:known]
        for region in inside:
            exact = estimate_region(region.region, {loop.loop_var: domain})
            if exact is not None:
                self.stored.append(BufferRegion(region.buffer, tuple(exact)))

    @on(S.IfThenElse, S.While)
    def visit_condition(self, statement: S.IfThenElse | S.While) -> None:
        self.visit(statement.condition)
        is_branch = isinstance(statement, S.IfThenElse)
        for case in (statement.then_case, statement.else_case) if is_branch else (statement.body,):
            known = len(self.stored)
            if case is not None:
                self.visit(case)
            del self.stored[known:]

    @on(S.LetStmt)
    def visit_let(self, let: S.LetStmt) -> None:
        self.visit(let.value)
        self.visit(substitute(let.body, {let.var: let.value}))

    @on(S.AllocBuffer)
    def visit_allocation(self, allocation: S.AllocBuffer) -> None:
        self.own.add(allocation.buffer)
        self.visit(allocation.body)

    @on(S.BlockRealize)
    def visit_block(self, realize: S.BlockRealize) -> None:
        self.visit(realize.predicate)
        for value in realize.iter_values:
            self.visit(value)
        flow = _flow(realize.block)
        iterators = (iter_var.var for iter_var in realize.block.iter_vars)
        values = dict(zip(iterators, realize.iter_values, strict=True))
        for region in flow.exposed:
            self.read(substitute(region, values))
        if is_const_int(realize.predicate, 1):
            for region in flow.stored:
                self.store(substitute(region, values))

    @on(S.BufferStore)
    def visit_store(self, store: S.BufferStore) -> None:
        self.visit_children(store)
        if not any(isinstance(i, E.Ramp) or reads_memory(i) for i in store.indices):
            self.store(element_region(store.buffer, store.indices))

    @on(E.BufferLoad)
    def visit_load(self, load: E.BufferLoad) -> None:
        self.visit_children(load)
        self.read(element_region(load.buffer, load.indices))


def _same_side(a: Range, b: Range) -> bool:
    return same_expression(a.min, b.min) and same_expression(a.extent, b.extent)
