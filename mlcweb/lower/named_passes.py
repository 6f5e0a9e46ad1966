"""Passes that programs ask for under TVM's names, beside those that lower a program here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.analysis.access_regions import loads_any, with_access_regions
from mlcweb.analysis.queries import detect_buffer_access_lca
from mlcweb.analysis.threads import exchanges_data
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, rewrite_nodes, walk
from mlcweb.lower.convert_blocks_to_loops import (
    BlockConversion,
    instructions_in_loops,
    under_lets,
)
from mlcweb.lower.loop_exits import leaves_loop
from mlcweb.lower.pipeline_annotations import has_pipelines
from mlcweb.lower.simplify import Simplification
from mlcweb.lower.statement_simplifier import (
    NOTHING,
    StatementSimplifier,
    is_nothing,
    stores_what_is_there,
)
from mlcweb.lower.thread_launches import loop_as_launch
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, convert, is_const_int, logical_not, may_trap
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import reads_memory, substitute, uses, variables_in


class RemoveNoOp(Simplification):
    """Drops statements that do nothing, such as loops of no iteration, and stores of what an
    element holds already; expressions stay."""

    def rewrite(self, node: Any) -> Any:
        return node if isinstance(node, E.PrimExpr) else super().rewrite(node)

    def once(self, loop: S.For, low: E.PrimExpr) -> S.Stmt:
        return self.finished_loop(loop, self.rewrite(loop.body))

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        never = self.analyzer.const_int_bound(loop.extent).max_value <= 0
        return NOTHING if never else super().loop(loop)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> S.Stmt:
        new = super().branch(branch)
        if not isinstance(new, S.IfThenElse) or not is_nothing(new.then_case):
            return new
        assert new.else_case is not None
        return S.IfThenElse(logical_not(new.condition), new.else_case, span=new.span)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        if not reads_memory(let.value):
            self.analyzer.bind(let.var, let.value)
        return let.rewritten(self)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        is_there = stores_what_is_there(store, self.analyzer.can_prove_equal)
        return NOTHING if is_there else store

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        return statement if may_trap(statement.value) else NOTHING


def with_serial_loops(func: PrimFunc, kind: S.ForKind) -> PrimFunc:
    """Make the loops of a kind serial."""

    def serial(loop: S.For) -> S.For:
        return replace(loop, kind=S.ForKind.SERIAL) if loop.kind == kind else loop

    return func.with_body(rewrite_nodes(func.body, S.For, serial))


class CanonicalizeLoop(Mutator):
    """Lets loops begin at 0."""

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        new = self.rewrite_children(loop)
        if is_const_int(loop.min, 0):
            return new
        moved = substitute(new.body, {loop.loop_var: add(loop.loop_var, loop.min)})
        return replace(new, min=const(0, loop.loop_var.dtype), body=moved)


class SkipAssert(Mutator):
    """Drops assertions."""

    @on(S.AssertStmt)
    def assertion(self, statement: S.AssertStmt) -> S.Stmt:
        return self.rewrite(statement.body)


class RemoveAssume(StatementSimplifier):
    """Drops `T.assume(…)`."""

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> S.Stmt:
        return NOTHING if operator_name(statement.value) == "assume" else statement


class RemoveStoreUndef(StatementSimplifier):
    """Drops stores of values that `T.undef()` leaves open, and variables of such a value.

    Raises:
        TVMError: such a value is an index.
    """

    def __init__(self) -> None:
        self.open: set[E.Var] = set()

    def is_open(self, value: E.PrimExpr) -> bool:
        return any(node in self.open or operator_name(node) == "undef" for node in walk(value))

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> E.PrimExpr:
        self.check_indices(load)
        return self.rewrite_children(load)

    def check_indices(self, access: E.BufferLoad | S.BufferStore) -> None:
        if any(map(self.is_open, access.indices)):
            raise TVMError(
                f'An index of "{access.buffer.name}" is T.undef(), which may be any number',
                access.span,
            )

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> S.Stmt:
        if not self.is_open(let.value):
            return let.rewritten(self)
        self.rewrite(let.value)
        self.open.add(let.var)
        body = self.rewrite(let.body)
        return replace(let, body=body) if uses(body, let.var) else body

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        self.check_indices(store)
        self.rewrite_children(store)
        return NOTHING if self.is_open(store.value) else store


class AnnotateIrregularLoop(Mutator):
    """Marks the loops that `T.break_loop()` or `T.continue_loop()` may leave."""

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        new = self.rewrite_children(loop)
        if not leaves_loop(loop.body):
            return new
        return replace(new, annotations={**new.annotations, "irregular_loop_mark": 1})


class RewriteUnsafeSelect(Mutator):
    """Computes only the chosen value of a `T.Select` where one might fail, or reads memory."""

    @on(E.Select)
    def select(self, select: E.Select) -> E.PrimExpr:
        new = self.rewrite_children(select)
        values = (new.true_value, new.false_value)
        if not any(reads_memory(value) or may_trap(value) for value in values):
            return new
        return if_then_else(new.condition, *values)


class ConvertBlocksToOpaque(BlockConversion):
    """Puts the bindings of blocks where their iterators are; blocks without iterators stay.

    Raises:
        TVMError: the bindings of a block, or its predicate, have an iterator of its own.
    """

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        used = variables_in(*realize.iter_values, realize.predicate)
        axes = [axis.var for axis in realize.block.iter_vars]
        if early := [axis.name for axis in axes if axis in used]:
            name = realize.block.name_hint
            raise TVMError(
                f'"{early[0]}" is known in the body of the block "{name}" only, not in its '
                "bindings and its predicate",
                realize.span,
            )
        predicate = self.rewrite(realize.predicate)
        named = self.bind_axes(realize)
        body = under_lets(named, self.rewrite(realize.block.body))
        self.values.update(named)
        block = self.rewrite_children(replace(realize.block, iter_vars=(), body=NOTHING))
        block = replace(block, body=body)
        return replace(realize, iter_values=(), predicate=predicate, block=block)


class LowerMatchBuffer(BlockConversion):
    """Puts accesses of matched buffers where those of their views are."""

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        around = dict(self.values)
        for match in realize.block.match_buffers:
            self.match(match)
        block = replace(self.rewrite_children(realize.block), match_buffers=())
        self.values = around
        return replace(realize, block=block)


def lower_opaque_block(func: PrimFunc) -> PrimFunc:
    """Dissolve blocks as `convert_blocks_to_loops` does, and launch threads by statements; loops of
    one iteration go, and pragmas of loops and blocks are statements around them."""
    func = instructions_in_loops(func)
    return _OpaqueBlocks(exchanges_data(func), has_pipelines(func)).run(func)


class _OpaqueBlocks(BlockConversion):
    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        new = super().attribute(statement)
        return loop_as_launch(new) if isinstance(new, S.For) else new

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        launches = loop.kind == S.ForKind.THREAD_BINDING
        if is_const_int(loop.extent, 1) and not loop.annotations:
            low = self.rewrite(loop.min)
            if not launches and reads_memory(low):
                return S.LetStmt(loop.loop_var, low, self.rewrite(loop.body), span=loop.span)
            self.values[loop.loop_var] = low
            if not launches:
                return self.rewrite(loop.body)
        new = super().loop(loop)
        assert isinstance(new, S.For)
        kept, pragmas = _pragmas(loop.annotations)
        new = loop_as_launch(new) if launches else replace(new, annotations=kept)
        return _under(pragmas, loop.loop_var, new)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> S.Stmt:
        block = realize.block
        _, pragmas = _pragmas(block.annotations)
        body = _under(pragmas, const(0), block.body)
        return super().realize(replace(realize, block=replace(block, body=body)))


def _pragmas(annotations: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The annotations that are no pragmas, and those that are."""
    parts: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for key, value in annotations.items():
        parts[key.startswith("pragma_")][key] = value
    return parts


def _under(pragmas: dict[str, Any], node: Any, body: S.Stmt) -> S.Stmt:
    for key, value in reversed(pragmas.items()):
        value = E.StringImm(value) if isinstance(value, str) else convert(value)
        body = S.AttrStmt(node, key, value, body)
    return body


def plan_buffer_allocation(func: PrimFunc) -> PrimFunc:
    """Allocate the buffers of blocks at the lowest statement around all of their accesses, in a
    block of its own where that is a loop."""
    return func.with_body(_Planning(func).rewrite(func.body))


class _Planning(Mutator):
    def __init__(self, func: PrimFunc) -> None:
        common = detect_buffer_access_lca(func)
        self.at: dict[Node | None, list[Buffer]] = {}
        for buffer in _allocated_in(func.body):
            if buffer in common:
                self.at.setdefault(common[buffer], []).append(buffer)
        self.placed = {buffer for buffers in self.at.values() for buffer in buffers}

    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        new = self.rewrite_children(block)
        kept = [buffer for buffer in block.alloc_buffers if buffer not in self.placed]
        own = (*kept, *self.at.get(block, ()))
        new = replace(new, alloc_buffers=own)
        inside = {*own, *_allocated_in(new.body)}
        reads, writes = (
            tuple(region for region in regions if region.buffer not in inside)
            for regions in (new.reads, new.writes)
        )
        data = {buffer.data for buffer in own}
        if any(loads_any(region, data) for region in (*reads, *writes)):
            return with_access_regions(new)
        return replace(new, reads=reads, writes=writes)

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        new = self.rewrite_children(loop)
        buffers = self.at.get(loop)
        if not buffers:
            return new
        inner = S.Block((), (), (), "", new.body, alloc_buffers=tuple(buffers))
        realize = S.BlockRealize((), const(True, "bool"), with_access_regions(inner))
        return replace(new, body=realize)


def _allocated_in(body: S.Stmt) -> list[Buffer]:
    """The buffers that blocks in a statement allocate."""
    return [buffer for block in find_nodes(body, S.Block) for buffer in block.alloc_buffers]
