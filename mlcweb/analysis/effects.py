"""What an iteration of a block reads of what was there before it, and what it surely stores.

A read is exposed unless the same iteration of the block has surely stored the element before: in
its init, or in a statement further up. So a reduction with an init does not read its output in this
sense, whatever its T.reads say (programs that TVM printed in 2021 and 2022 list the output there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mlcweb.analysis.access_regions import (
    block_access_regions,
    covering,
    element_region,
    in_source,
    same_range,
)
from mlcweb.arith import (
    Analyzer,
    conjunction,
    conjuncts,
    estimate_region,
    eval_range,
    same_expression,
)
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import Visitor, find_nodes, on, walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, is_const_int, logical_and, may_trap
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from mlcweb.tir.substitute import reads_memory, substitute, uses_any, variables_in


def exposed_reads(block: S.Block) -> tuple[BufferRegion, ...]:
    """What an iteration of a block may read without having stored it before."""
    return _flow(block).exposed


def reads_old_elements(block: S.Block, buffer: Buffer) -> bool:
    """Whether an iteration of a block may read elements of a buffer without having stored them."""
    return any(region.buffer is buffer for region in _flow(block).exposed)


def reads_before_storing(
    statement: S.Stmt,
    buffer: Buffer,
    domains: Mapping[E.Var, Range],
    touches: Callable[[Node], bool],
) -> bool:
    """Whether a statement outside of blocks may read elements of a buffer that it has not stored
    before. `domains` are those of the variables around it; what does not touch the buffer is not
    looked at."""
    flow = _FlowVisitor(domains)

    def is_exposed() -> bool:
        return any(region.buffer is buffer for region in flow.exposed)

    flow.concerns = lambda node: touches(node) and not is_exposed()
    flow.visit(statement)
    return is_exposed()


def sure_stores(block: S.Block, buffer: Buffer) -> list[SureStore]:
    """What each iteration of a block (or, for its init, an earlier one) stores to a buffer."""
    return [store for store in _flow(block).stored if store.region.buffer is buffer]


def may_fail(block: S.Block) -> bool:
    """Whether an iteration of a block may fail, as far as is known: it divides integers by what may
    be zero, calls what is no operator, or accesses elements that need not be there."""
    if may_trap(block.body):
        return True
    proves = Analyzer(block.domains).can_prove
    regions = block_access_regions(block)
    return not all(
        proves(side.min >= 0) and proves(side.min + side.extent <= extent)
        for region in (*regions.reads, *regions.writes)
        for side, extent in zip(region.region, region.buffer.shape, strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class SureStore:
    """A region that is stored in each iteration of the loops `domains` in a block for which
    `predicate` holds.

    A later read finds what was stored (`reaches_reads`), but where the indices are read from
    memory, or where it is a block inside that declares the region and stores by other means.
    """

    region: BufferRegion
    domains: Mapping[E.Var, Range]
    predicate: E.PrimExpr
    reaches_reads: bool

    @property
    def variables(self) -> set[E.Var]:
        """The variables on which it depends where the store is."""
        return variables_in(self.region, self.predicate, *self.domains.values())

    def where(self, condition: E.PrimExpr) -> SureStore:
        """The same where a condition holds."""
        predicate = logical_and(self.predicate, condition)
        return SureStore(self.region, self.domains, predicate, self.reaches_reads)

    def substituted(self, values: Mapping[E.Var, E.PrimExpr]) -> SureStore:
        """The same in terms of what the variables around it stand for."""
        domains = {var: substitute(domain, values) for var, domain in self.domains.items()}
        region, predicate = substitute(self.region, values), substitute(self.predicate, values)
        return SureStore(region, domains, predicate, self.reaches_reads)


def exact_box(
    region: BufferRegion, domains: Mapping[E.Var, Range], predicate: E.PrimExpr
) -> Sequence[Range] | None:
    """The union of a region over the iterations for which a predicate holds; None where that is no
    box, or not known."""
    always = is_const_int(predicate, 1)
    if not domains and always:
        return region.region
    if not always:
        # What a predicate says of other variables than those that move is not looked at below.
        moving = {var for var, domain in domains.items() if not is_const_int(domain.extent, 1)}
        proves = Analyzer(dict(domains)).can_prove
        if not all(uses_any(part, moving) or proves(part) for part in conjuncts(predicate)):
            return None
    box = estimate_region(region.region, domains, predicate)
    if box is None and always:
        box = list(region.region)
        for var, domain in reversed([*domains.items()]):
            box = box and estimate_region(box, {var: domain})
    return box


def may_be_empty(extent: E.PrimExpr, part: S.Stmt) -> bool:
    """Whether a loop of an extent perhaps has no iteration, as far as a part of its body tells: the
    extents of the buffers that this accesses are taken for positive."""
    if isinstance(extent, E.IntImm):
        return extent.value <= 0
    unknown = variables_in(extent)
    for node in walk(part):
        buffer = getattr(node, "buffer", None)
        if isinstance(buffer, Buffer):
            unknown -= {var for extent in buffer.shape for var in variables_in(extent)}
    return bool(unknown) or reads_memory(extent)


class _Flow(NamedTuple):
    """The exposed reads of a block, and what each of its iterations surely stores."""

    exposed: tuple[BufferRegion, ...]
    stored: tuple[SureStore, ...]


@lru_cache(maxsize=4096)
def _flow(block: S.Block) -> _Flow:
    flow = _FlowVisitor(block.domains, block.alloc_buffers, block.match_buffers)
    if block.init is not None:
        flow.visit(block.init)
        # Of a reduction, the init has run in the first iteration alone.
        reduced = {i.var for i in block.iter_vars if i.iter_type != S.IterType.DATA_PARALLEL}
        flow.stored = [s for s in flow.stored if not variables_in(s.region) & reduced]
    declared = None
    if uses_addresses(block):
        for region in block.reads:
            flow.read(region)
        declared = tuple(flow.exposed)
    flow.visit(block.body)
    return _Flow(tuple(flow.exposed) if declared is None else declared, tuple(flow.stored))


def uses_addresses(block: S.Block) -> bool:
    """Whether a block may touch memory otherwise than by loads and stores of its buffers."""
    return any(
        isinstance(node, S.DeclBuffer) or (isinstance(node, E.Var) and node.dtype == "handle")
        for node in walk(block.body)
    )


_LEAVES = frozenset((E.Var, E.IntImm))


class _FlowVisitor(Visitor):
    """Goes through statements in the order in which they run. `stored` is what has surely been
    stored by then; what was stored in loops that have ended holds for all of their iterations."""

    def __init__(
        self,
        around: Mapping[E.Var, Range],
        own: Iterable[Buffer] = (),
        matches: Iterable[MatchBufferRegion] = (),
    ) -> None:
        self.exposed: list[BufferRegion] = []
        self.stored: list[SureStore] = []
        self.around = around
        self.loops: dict[E.Var, Range] = {}
        self.own = set(own)
        self.matches = {match.buffer: match for match in matches}
        self.concerns: Callable[[Node], bool] | None = None
        self.analyzer = Analyzer(around)
        self.boxes: dict[tuple[object, ...], Sequence[Range] | None] = {}

    def visit(self, node: Node) -> None:
        if type(node) in _LEAVES:
            return
        if self.concerns is None or self.concerns(node):
            super().visit(node)

    def in_source(self, region: BufferRegion) -> BufferRegion:
        match = self.matches.get(region.buffer)
        return region if match is None else in_source(match, region)

    def read(self, region: BufferRegion) -> None:
        region = self.in_source(region)
        if region.buffer in self.own or any(self.covers(store, region) for store in self.stored):
            return
        if not self.loops:
            self.exposed.append(region)
            return
        box = [eval_range(side, self.loops, self.analyzer) for side in region.region]
        self.exposed.append(covering(box, region.buffer, self.analyzer))

    def store(
        self,
        region: BufferRegion,
        domains: Mapping[E.Var, Range],
        predicate: E.PrimExpr,
        reaches_reads: bool,
    ) -> None:
        region = self.in_source(region)
        if region.buffer not in self.own:
            around = {**self.loops, **domains}
            self.stored.append(SureStore(region, around, predicate, reaches_reads))

    def covers(self, store: SureStore, region: BufferRegion) -> bool:
        if store.region.buffer is not region.buffer or not store.reaches_reads:
            return False
        ended = {var: domain for var, domain in store.domains.items() if var not in self.loops}
        predicate = self.unmet(store.predicate)
        key = store, predicate, *ended
        if key not in self.boxes:
            self.boxes[key] = exact_box(store.region, ended, predicate)
        box = self.boxes[key]
        return box is not None and (
            all(map(same_range, box, region.region))
            or all(map(self.holds, box, region.region, region.buffer.shape))
        )

    def unmet(self, predicate: E.PrimExpr) -> E.PrimExpr:
        """What is left of a predicate where parts of it hold."""
        parts = list(conjuncts(predicate))
        left = [part for part in parts if not self.analyzer.can_prove(part)]
        return predicate if len(left) == len(parts) else conjunction(left)

    def holds(self, outer: Range, inner: Range, extent: E.PrimExpr) -> bool:
        """Whether a range of indices holds another one, or all indices of a dimension: what is
        accessed is within the buffer."""

        def within(low: E.PrimExpr, high: E.PrimExpr) -> bool:
            proves = self.analyzer.can_prove
            ends = (outer.min + extent for extent in _least_of(outer.extent))
            return proves(low >= outer.min) and all(proves(high <= end) for end in ends)

        return within(inner.min, inner.min + inner.extent) or within(const(0), extent)

    @on(S.For)
    def visit_for(self, loop: S.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loops[loop.loop_var] = loop.domain
        outside, self.analyzer = self.analyzer, self.analyzer.clone()
        self.analyzer.bind(loop.loop_var, loop.domain)
        before = len(self.stored)
        self.visit(loop.body)
        del self.loops[loop.loop_var]
        self.analyzer = outside
        if may_be_empty(loop.extent, loop.body):
            stored = self.stored[before:]
            self.stored[before:] = [s for s in stored if loop.loop_var in variables_in(s.region)]

    def where(self, condition: E.PrimExpr | None) -> AbstractContextManager[None]:
        """Within it, a condition holds."""
        if condition is None or is_const_int(condition, 1) or reads_memory(condition):
            return nullcontext()
        # In the form of the indices that it is compared with.
        return self.analyzer.constraint(self.analyzer.canonical(condition))

    def stored_in(
        self, case: S.Stmt | None, condition: E.PrimExpr | None = None
    ) -> list[SureStore]:
        """Go through what runs only where a condition holds; what it stores if it does."""
        before = len(self.stored)
        if case is not None:
            with self.where(condition):
                self.visit(case)
        stored = self.stored[before:]
        del self.stored[before:]
        return stored

    @on(S.IfThenElse)
    def visit_branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        stored = self.stored_in(branch.then_case, branch.condition)
        otherwise = self.stored_in(branch.else_case, E.Not(branch.condition))
        first = self.variables_at_start(branch)
        self.stored += [
            store
            for store in stored
            if any(_same_store(store, other) for other in otherwise)
            or (first is not None and first.isdisjoint(store.variables))
        ]
        if variables_in(branch.condition) <= self.loops.keys() | self.around.keys():
            self.stored += [store.where(branch.condition) for store in stored]

    def variables_at_start(self, branch: S.IfThenElse) -> set[E.Var] | None:
        """The variables of a condition on the loops alone that holds in their first iteration, as
        that of the init of a reduction does (without variables where its loops have one iteration);
        None for others."""
        condition = branch.condition
        used = variables_in(condition)
        if not used <= self.loops.keys():
            return None
        if any(may_be_empty(self.loops[var].extent, branch) for var in used):
            return None
        start = substitute(condition, {var: self.loops[var].min for var in used})
        return used if Analyzer().can_prove(start) else None

    @on(S.While)
    def visit_while(self, loop: S.While) -> None:
        self.visit(loop.condition)
        self.stored_in(loop.body)

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
        block, flow, values = realize.block, _flow(realize.block), realize.bindings
        with self.where(realize.predicate):
            for region in flow.exposed:
                self.read(substitute(region, values))
        for store in flow.stored:
            inner = store.substituted(values)
            predicate = logical_and(realize.predicate, inner.predicate)
            self.store(inner.region, inner.domains, predicate, inner.reaches_reads)
        stored = {node.buffer for node in find_nodes(block, S.BufferStore)}
        for region in block.writes:
            if region.buffer not in stored:
                self.store(substitute(region, values), {}, realize.predicate, False)

    @on(S.BufferStore)
    def visit_store(self, store: S.BufferStore) -> None:
        self.visit_children(store)
        vectors = [index for index in store.indices if isinstance(index, E.Ramp)]
        if all(is_const_int(vector.stride, 1) for vector in vectors) and len(vectors) < 2:
            is_fixed = not any(map(reads_memory, store.indices))
            region = element_region(store.buffer, store.indices)
            self.store(region, {}, const(True), reaches_reads=is_fixed)

    @on(E.BufferLoad)
    def visit_load(self, load: E.BufferLoad) -> None:
        self.visit_children(load)
        self.read(element_region(load.buffer, load.indices))


def _least_of(extent: E.PrimExpr) -> Iterator[E.PrimExpr]:
    """Expressions the least of which is the extent: `58 - x` and `58 - y` for
    `58 - T.max(x, y)`, as tiles have that end with their loop."""
    if isinstance(extent, E.Min):
        yield from (extent.a, extent.b)
    elif isinstance(extent, E.Sub) and isinstance(extent.b, E.Max):
        yield from (extent.a - extent.b.a, extent.a - extent.b.b)
    else:
        yield extent


def _same_store(a: SureStore, b: SureStore) -> bool:
    return (
        a.region.buffer is b.region.buffer
        and all(map(same_range, a.region.region, b.region.region))
        and same_expression(a.predicate, b.predicate)
        and a.domains == b.domains
    )
