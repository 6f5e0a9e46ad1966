"""Accesses that no block declares: what it uses all the same, and other buffers in its memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mlcweb.ir.visitor import walk
from mlcweb.schedule.state import BlockPlace, ScheduleState
from mlcweb.schedule.units import bound_reads
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Var
from mlcweb.tir.stmt import (
    AllocBuffer,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    statements_in,
)


def in_the_same_memory(
    state: ScheduleState, place: BlockPlace, buffers: Iterable[Buffer]
) -> dict[Buffer, None]:
    """Other buffers in the memory of some, as T.decl_buffer declares them: what is done to one is
    done to all, and no region says to which elements."""
    views = state.cached(("views", place.function), lambda: _views(state, place.function))
    if not views:
        return {}
    return {
        view: None
        for buffer in buffers
        for view in views.get(buffer.data, ())
        if view is not buffer
    }


def _views(state: ScheduleState, function: str) -> dict[Var, tuple[Buffer, ...]]:
    """The buffers of each memory that has more than one, by the variable of its address."""
    body = state.function(function).body
    shared = {part.buffer.data for part in statements_in(body) if isinstance(part, DeclBuffer)}
    views: dict[Var, dict[Buffer, None]] = {data: {} for data in shared}
    if shared:
        for node in walk(body):
            if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data in shared:
                views[node.buffer.data][node.buffer] = None
    return {data: tuple(buffers) for data, buffers in views.items() if len(buffers) > 1}


@lru_cache(maxsize=4096)
def hidden_accesses(block: Block) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The buffers from outside of which a block, or a block in it, stores or loads elements without
    declaring it. A reduction loads what it declares to write alone."""
    written = {region.buffer for region in block.writes}
    readable = {region.buffer for region in block.reads}
    if any(isinstance(node, Block) and node.init is not None for node in walk(block)):
        readable |= written
    own: set[Buffer] = set()
    matched: dict[Buffer, Buffer] = {}
    stored: dict[Buffer, None] = {}
    loaded: dict[Buffer, None] = {}
    for node in walk(block):
        if isinstance(node, (BufferStore, BufferLoad)):
            buffer = node.buffer
            while buffer in matched:
                buffer = matched[buffer]
            if isinstance(node, BufferStore) and buffer not in written:
                stored[buffer] = None
            if isinstance(node, BufferLoad) and buffer not in readable:
                loaded[buffer] = None
        elif isinstance(node, Block):
            own.update(node.alloc_buffers)
            matched.update({match.buffer: match.source.buffer for match in node.match_buffers})
        elif isinstance(node, (AllocBuffer, DeclBuffer)):
            own.add(node.buffer)
    return tuple(b for b in stored if b not in own), tuple(b for b in loaded if b not in own)


def undeclared_accesses(
    realize: BlockRealize,
) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """`hidden_accesses` of a block, and the buffers that its bindings and its predicate load:
    T.reads is about the body."""
    stored, loaded = hidden_accesses(realize.block)
    declared = {region.buffer for region in realize.block.reads}
    bound = [buffer for buffer in bound_reads(realize) if buffer not in declared]
    return stored, tuple(dict.fromkeys((*loaded, *bound)))
