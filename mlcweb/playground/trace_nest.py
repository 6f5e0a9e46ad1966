"""The loop nest of a program: loops with where they come from, and blocks with what they read and
write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from mlcweb.playground.protocol.trace import (
    LoopKind,
    NestBlock,
    NestEntry,
    NestFunction,
    NestIterator,
    NestLoop,
    NestRegion,
    NestStatement,
)
from mlcweb.playground.trace_origins import TIMES, Origins, extent_text
from mlcweb.schedule.analysis.scopes import is_trivially_true
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState, executed_substatements
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import BufferRegion, constant_shape
from mlcweb.tir.expr import IntImm
from mlcweb.tir.function import PrimFunc, prim_funcs

KINDS: dict[S.ForKind, LoopKind] = {
    S.ForKind.SERIAL: "serial",
    S.ForKind.PARALLEL: "parallel",
    S.ForKind.VECTORIZED: "vectorized",
    S.ForKind.UNROLLED: "unrolled",
    S.ForKind.THREAD_BINDING: "thread",
}
ITERATORS = {
    S.IterType.DATA_PARALLEL: "spatial",
    S.IterType.COMM_REDUCE: "reduce",
    S.IterType.OPAQUE: "opaque",
    S.IterType.ORDERED: "scan",
    S.IterType.THREAD_INDEX: "thread",
}


def nest(
    state: ScheduleState, origins: Origins, before: ScheduleState | None = None
) -> list[NestFunction]:
    """The functions of a program, each with its nest.

    Args:
        before: the program before the step; what is other than there is marked.
    """
    writer = _Writer(state, origins, before)
    return [
        NestFunction(name, writer.function(func)) for name, func in prim_funcs(state.module).items()
    ]


def vanished(before: ScheduleState, after: ScheduleState) -> list[str]:
    """The loops and blocks that a step did away with: "j (128)", "block B"."""
    loops = [
        f"{var.name} ({extent_text(place.loop.extent)})"
        for var, place in before.index.loops.items()
        if var not in after.index.loops
    ]
    blocks = [
        f"block {place.block.name_hint}"
        for identity, place in before.index.blocks.items()
        if identity not in after.index.blocks
    ]
    return loops + blocks


@dataclass(eq=False, slots=True)
class _Writer:
    state: ScheduleState
    origins: Origins
    before: ScheduleState | None

    def function(self, func: PrimFunc) -> list[NestEntry]:
        root = func.root_block
        if root is None:
            return self.statement(func.body)
        allocated = [NestStatement(_allocation(buffer), []) for buffer in root.alloc_buffers]
        return [*allocated, *self.statement(root.body)]

    def statement(self, node: S.Stmt) -> list[NestEntry]:
        if isinstance(node, S.SeqStmt):
            return [entry for each in node.seq for entry in self.statement(each)]
        if isinstance(node, S.For):
            return [self.loop(node)]
        if isinstance(node, S.BlockRealize):
            return [self.block(node)]
        body = [e for each in executed_substatements(node) for e in self.statement(each)]
        return [NestStatement(_first_line(node), body)]

    def loop(self, loop: S.For) -> NestLoop:
        var = loop.loop_var
        traced = var in self.origins.loops
        return NestLoop(
            name=var.name,
            extent=extent_text(loop.extent),
            how=KINDS[loop.kind],
            thread=loop.thread_binding.thread_tag if loop.thread_binding else None,
            annotations=_annotations(loop.annotations),
            origin=self.origins.loops[var].text() if traced else "",
            colours=self.origins.colours(var) if traced else [],
            change=self._loop_change(loop),
            body=self.statement(loop.body),
        )

    def block(self, realize: S.BlockRealize) -> NestBlock:
        block = realize.block
        where = None if is_trivially_true(realize.predicate) else repr(realize.predicate)
        inner = [] if isinstance(block.body, S.BufferStore) else self.statement(block.body)
        return replace(
            _block_facts(block),
            iterators=[
                NestIterator(each.var.name, ITERATORS[each.iter_type], repr(value))
                for each, value in realize.iterators
            ],
            where=where,
            change=self._block_change(realize),
            body=inner,
        )

    def _loop_change(self, loop: S.For) -> str | None:
        if self.before is None:
            return None
        old = self.before.index.loops.get(loop.loop_var)
        if old is None:
            return "new"
        if old.loop.kind is not loop.kind:
            return KINDS[loop.kind]
        if self._moved(old, self.state.index.loops.get(loop.loop_var)):
            return "moved"
        same = extent_text(old.loop.extent) == extent_text(loop.extent)
        return None if same and old.loop.annotations == loop.annotations else "edited"

    def _block_change(self, realize: S.BlockRealize) -> str | None:
        if self.before is None:
            return None
        identity = realize.block.identity
        old = self.before.index.blocks.get(identity)
        if old is None:
            return "new"
        if old.realize is realize:
            return None
        if self._moved(old, self.state.index.blocks.get(identity)):
            return "moved"
        changed = _block_facts(old.block) != _block_facts(realize.block)
        return "edited" if changed else None

    def _moved(self, old: LoopPlace | BlockPlace, new: LoopPlace | BlockPlace | None) -> bool:
        """Whether other loops or blocks are around it, of those that were there and still are."""
        assert self.before is not None
        if new is None:
            return False
        return _around(old, self.state) != _around(new, self.before)


def _around(place: LoopPlace | BlockPlace, other: ScheduleState) -> set[Any]:
    """The loops and blocks around a place that another program has, too; what only changes its
    place among them moves, not what is inside of all."""
    keys: set[Any] = set()
    for parent in place.parents:
        if isinstance(parent, S.For) and parent.loop_var in other.index.loops:
            keys.add(parent.loop_var)
        elif isinstance(parent, S.Block) and parent.identity in other.index.blocks:
            keys.add(parent.identity)
    return keys


@lru_cache(maxsize=1024)
def _block_facts(block: S.Block) -> NestBlock:
    """What a block says of itself; blocks stay the same objects over many steps."""
    return NestBlock(
        name=block.name_hint,
        iterators=[],
        where=None,
        reads=[_region(region) for region in block.reads],
        writes=[_region(region) for region in block.writes],
        init=None if block.init is None else _first_line(block.init),
        statement=repr(block.body) if isinstance(block.body, S.BufferStore) else None,
        buffers=[_allocation(buffer) for buffer in block.alloc_buffers],
        annotations=_annotations(block.annotations),
        change=None,
        body=[],
    )


def _region(region: BufferRegion) -> NestRegion:
    extents = [r.extent.value if isinstance(r.extent, IntImm) else None for r in region.region]
    elements = None if None in extents else prod(e for e in extents if e is not None)
    return NestRegion(repr(region), region.buffer.scope(), elements)


def _allocation(buffer: Any) -> str:
    shape = constant_shape(buffer)
    size = TIMES.join(map(str, shape if shape is not None else map(repr, buffer.shape)))
    scope = "" if buffer.scope() in ("", "global") else f" in {buffer.scope()} memory"
    return f"memory for {buffer.name}: {size or '1'} {buffer.dtype}{scope}"


def _annotations(annotations: Any) -> list[str]:
    return [f"{key} = {value!r}" for key, value in annotations.items()]


def _first_line(node: S.Stmt) -> str:
    return repr(node).strip().split("\n", 1)[0]
