"""Filling the elements that a layout adds to a buffer.

Where a loop nest stores to all elements of the buffer in order, it is replaced by one over the new
layout, in which the stores choose between value and padding. Otherwise a block after the last
writer fills the padding. Where nobody writes the buffer, a block states what the caller has put
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlcweb.arith import same_expression
from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import find_nodes, rewrite_nodes, walk
from mlcweb.schedule.rewriting.nests import in_loops, loop_nest, stage, statements_of
from mlcweb.schedule.state import substatements, with_substatements
from mlcweb.tir.arithmetic import const, equal, is_const_int, logical_not, logical_or
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.builtins import OPS
from mlcweb.tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from mlcweb.tir.intrinsics import if_then_else
from mlcweb.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IterType,
    IterVar,
    SeqStmt,
    Stmt,
    nest_at,
    sequence,
)
from mlcweb.tir.substitute import substitute, uses

AnyStmt = TypeVar("AnyStmt", bound=Stmt)


def with_padding(
    top: Block, old: Buffer, new: Buffer, inverse: IndexMap, padding: PrimExpr, pad_value: IndexMap
) -> Block:
    """The block `top`, around all accesses of `old`, with the padding of the new layout filled.

    Accesses of `old` stay as they are; those that are added are of `new`.
    """
    layout = _Layout(old, new, inverse, padding, pad_value)
    stores = [node for node in find_nodes(top, BufferStore) if node.buffer is old]
    if not stores:
        return replace(top, body=sequence(layout.assumptions(), top.body))
    nests = [
        nest
        for nest in _outermost_loops(top)
        if any(store.buffer is old for store in find_nodes(nest, BufferStore))
    ]
    changed = {nest: layout.replaced_nest(nest) for nest in nests}
    covered = sum(_count(nest, stores) for nest in nests)
    if covered == len(stores) and all(changed.values()):
        new_nests = {nest: new_nest for nest, new_nest in changed.items() if new_nest is not None}
        return replace(top, body=_with_loops(top.body, new_nests))
    statements = list(statements_of(top))
    last = max(n for n, statement in enumerate(statements) if _count(statement, stores))
    statements.insert(last + 1, layout.filling())
    return replace(top, body=sequence(*statements))


@dataclass(frozen=True, slots=True)
class _Layout:
    old: Buffer
    new: Buffer
    inverse: IndexMap
    padding: PrimExpr
    pad_value: IndexMap

    def replaced_nest(self, nest: For) -> Stmt | None:
        """The nest over the new layout instead of the buffer's dimensions; None where it does not
        run through the whole buffer in order."""
        loops = self._loops_of_dimensions(nest)
        if loops is None:
            return None
        between, realize = nest_at(loops[-1].body)
        if not isinstance(realize, BlockRealize) or not self._stores_in_order(realize, loops):
            return self._nest_without_iterators(loops)
        old_loops = [loop.loop_var for loop in loops]
        positions = [n for n, v in enumerate(realize.iter_values) if v in old_loops]
        if [realize.iter_values[n] for n in positions] != old_loops:
            return None
        # The new iterators run in the order of the new layout.
        types = {realize.block.iter_vars[n].iter_type for n in positions}
        if types - {IterType.DATA_PARALLEL}:
            return None
        rest = [v for n, v in enumerate(realize.iter_values) if n not in positions]
        others = [*rest, realize.predicate, *(loop.extent for loop in between)]
        if any(uses(expression, var) for expression in others for var in old_loops):
            return None
        axes, iterators = self._axes(), self._axes("v_")
        block = self._padded_block(realize.block, positions, iterators)
        values = [v for n, v in enumerate(realize.iter_values) if n not in positions]
        values[positions[0] : positions[0]] = axes
        realize = replace(realize, iter_values=tuple(values), block=block)
        return loop_nest(axes, self.new.shape, in_loops(realize, between))

    def assumptions(self) -> Stmt:
        """A block that states that the padding of an input has its value."""
        axes, iterators = self._axes(), self._axes("v_")
        at = dict(zip(self.inverse.initial_indices, iterators, strict=True))
        element = BufferLoad(self.new, tuple(iterators))
        condition = logical_or(
            logical_not(substitute(self.padding, at)), equal(element, self._pad_value(iterators))
        )
        statement = Evaluate(Call("bool", OPS["assume"], (condition,)))
        return self._stage("assumptions", axes, iterators, statement, const(True))

    def filling(self) -> Stmt:
        """A block that stores the padding."""
        axes, iterators = self._axes(), self._axes("v_")
        at = dict(zip(self.inverse.initial_indices, axes, strict=True))
        store = BufferStore(self.new, self._pad_value(iterators), tuple(iterators))
        return self._stage("padding", axes, iterators, store, substitute(self.padding, at))

    def _stage(
        self,
        what: str,
        axes: Sequence[Var],
        iterators: Sequence[Var],
        body: Stmt,
        predicate: PrimExpr,
    ) -> Stmt:
        loops = dict(zip(axes, self.new.shape, strict=True))
        bound = zip(self._iter_vars(iterators), axes, strict=True)
        return stage(f"buffer_{self.new.name}_{what}", loops, bound, body, predicate)

    def _padded_block(
        self, block: Block, positions: Sequence[int], iterators: Sequence[Var]
    ) -> Block:
        at = dict(zip(self.inverse.initial_indices, iterators, strict=True))
        old = [block.iter_vars[n].var for n in positions]
        pairs = zip(old, self.inverse.final_indices, strict=True)
        values = {var: substitute(index, at) for var, index in pairs}
        kept = [iter_var for n, iter_var in enumerate(block.iter_vars) if n not in positions]
        kept[positions[0] : positions[0]] = self._iter_vars(iterators)
        changed = self._with_padding(replace(block, iter_vars=()), iterators)
        return replace(substitute(changed, values), iter_vars=tuple(kept))

    def _nest_without_iterators(self, loops: Sequence[For]) -> Stmt | None:
        """The nest where the statements use the loops themselves: they do nothing but store to the
        element that the loops stand at."""
        old_loops = [loop.loop_var for loop in loops]
        body = loops[-1].body
        for node in walk(body):
            if isinstance(node, (BufferStore, BufferLoad)) and node.buffer is self.old:
                fits = list(node.indices) == old_loops
            elif isinstance(node, BlockRealize):
                own = node.iter_values or node.block.alloc_buffers or node.block.match_buffers
                fits = not own and is_const_int(node.predicate, 1)
            elif isinstance(node, For):
                fits = isinstance(node.extent, IntImm) and node.extent.value > 0
            elif isinstance(node, Call):
                fits = isinstance(node.op, Op) and node.op.pure
            else:
                fits = isinstance(node, (Block, SeqStmt)) or not isinstance(node, Stmt)
            if not fits:
                return None
        axes = self._axes()
        at = dict(zip(self.inverse.initial_indices, axes, strict=True))
        indices = (substitute(index, at) for index in self.inverse.final_indices)
        padded = self._with_padding(body, axes)
        return loop_nest(
            axes, self.new.shape, substitute(padded, dict(zip(old_loops, indices, strict=True)))
        )

    def _with_padding(self, statement: AnyStmt, iterators: Sequence[Var]) -> AnyStmt:
        """A statement whose stores choose between value and padding, by the new indices."""
        at = dict(zip(self.inverse.initial_indices, iterators, strict=True))
        padding, pad_value = substitute(self.padding, at), self._pad_value(iterators)

        def padded(store: BufferStore) -> BufferStore:
            if store.buffer is not self.old:
                return store
            return replace(store, value=if_then_else(padding, pad_value, store.value))

        return rewrite_nodes(statement, BufferStore, padded)

    def _loops_of_dimensions(self, nest: For) -> list[For] | None:
        """The loops at the top of a nest, one per dimension of the buffer and with its extent."""
        loops: list[For] = []
        statement: Stmt = nest
        for extent in self.old.shape:
            if not isinstance(statement, For) or statement.kind != ForKind.SERIAL:
                return None
            if not (is_const_int(statement.min, 0) and same_expression(statement.extent, extent)):
                return None
            loops.append(statement)
            statement = statement.body
        return loops

    def _stores_in_order(self, realize: BlockRealize, loops: Sequence[For]) -> bool:
        """Whether a block does nothing but store to the element that the loops stand at."""
        bound = realize.bindings
        loop_vars = [loop.loop_var for loop in loops]
        return all(
            isinstance(store, BufferStore)
            and store.buffer is self.old
            and [bound.get(index) for index in store.indices] == loop_vars  # type: ignore[arg-type]
            for store in (realize.block.init, realize.block.body)
            if store is not None
        )

    def _axes(self, prefix: str = "") -> list[Var]:
        return [Var(prefix + var.name, var.dtype) for var in self.inverse.initial_indices]

    def _iter_vars(self, iterators: Sequence[Var]) -> tuple[IterVar, ...]:
        pairs = zip(iterators, self.new.shape, strict=True)
        return tuple(IterVar(Range(const(0, var.dtype), extent), var) for var, extent in pairs)

    def _pad_value(self, iterators: Sequence[Var]) -> PrimExpr:
        return self.pad_value.map_indices(iterators)[0]


def _outermost_loops(statement: Stmt) -> list[For]:
    if isinstance(statement, For):
        return [statement]
    return [loop for below in substatements(statement) for loop in _outermost_loops(below)]


def _count(statement: Stmt, stores: Sequence[BufferStore]) -> int:
    inside = set(walk(statement))
    return sum(store in inside for store in stores)


def _with_loops(statement: Stmt, changes: dict[For, Stmt]) -> Stmt:
    if isinstance(statement, For):
        return changes.get(statement, statement)
    below = {inner: _with_loops(inner, changes) for inner in substatements(statement)}
    return with_substatements(statement, below)
