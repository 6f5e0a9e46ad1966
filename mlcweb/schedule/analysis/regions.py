"""Regions of buffers that blocks touch, seen from a loop around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from mlcweb.analysis.threads import thread_tag
from mlcweb.arith import Analyzer, IntSet, bounding_box, eval_range
from mlcweb.arith.analyzer import conjunction, conjuncts
from mlcweb.arith.equality import same_expression
from mlcweb.arith.int_set import EVERYTHING
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children, find_nodes, walk
from mlcweb.schedule.analysis.scopes import Scope, is_trivially_true
from mlcweb.schedule.analysis.units import let_variables
from mlcweb.schedule.errors import ArgumentError
from mlcweb.schedule.state import BlockPlace, domains_of
from mlcweb.tir.arithmetic import logical_and
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from mlcweb.tir.dtype import lanes
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    Stmt,
    find_statements,
)
from mlcweb.tir.substitute import substitute, uses_any, variables_in


def threads_sharing(place: BlockPlace, outer: For, storage_scope: str) -> dict[Var, Range]:
    """The domains of the thread loops at or around `outer` whose threads all see one copy of a
    buffer in `storage_scope`: what they access together is accessed at once."""
    memory = storage_scope.split(".")[0]
    domains: dict[Var, Range] = {}
    for parent in place.parents:
        tag = thread_tag(parent)
        if (memory == "shared" and tag) or (memory == "warp" and tag == "threadIdx.x"):
            domains.update(domains_of(parent))
        if parent is outer:
            break
    return domains


def bound_ranges(realize: BlockRealize, region: BufferRegion) -> tuple[Range, ...]:
    """The ranges of a region that a block declares, in terms of the loops around the block."""
    return substitute(region, realize.bindings).region


def relaxed(
    region: Sequence[Range], domains: Mapping[Var, Range], analyzer: Analyzer
) -> list[IntSet]:
    """A box that holds the region for all values of the variables of `domains`."""
    return [eval_range(dimension, domains, analyzer) for dimension in region]


def touched(
    realize: BlockRealize, region: BufferRegion, domains: Mapping[Var, Range], analyzer: Analyzer
) -> list[IntSet]:
    """A box that holds what a block declares by a region, for all values of some variables."""
    return relaxed(bound_ranges(realize, region), domains, analyzer)


def accessed(
    realize: BlockRealize, region: BufferRegion, domains: Mapping[Var, Range], analyzer: Analyzer
) -> list[IntSet]:
    """A box that holds what a block accesses by a region where its predicate holds, for all values
    of some variables; exact where it can be."""
    sides = bound_ranges(realize, region)
    return bounding_box(sides, domains, realize.predicate, analyzer)


def access_guard(block: Block, buffer: Buffer) -> PrimExpr:
    """The conditions on a block's iterators that hold wherever the block accesses a buffer: those
    of `if` and of the predicates of nested blocks that are around all accesses."""
    parts = [block.body] if block.init is None else [block.init, block.body]
    first, *others = [guard for part in parts for guard in _guards(part, buffer, [])] or [[]]
    return conjunction(
        condition
        for condition in first
        if variables_in(condition) <= block.domains.keys()
        and not any(isinstance(node, BufferLoad) for node in walk(condition))
        and all(any(same_expression(condition, c) for c in guard) for guard in others)
    )


def _guards(node: Node, buffer: Buffer, around: list[PrimExpr]) -> Iterator[list[PrimExpr]]:
    """For each statement that accesses a buffer inside of a node the conditions around it."""
    if not isinstance(node, (Stmt, Block)):
        if any(_names(part, buffer) for part in walk(node)):
            yield around
        return
    if _names(node, buffer):
        yield around
    guarded: Node | None = None
    inside = around
    if isinstance(node, BlockRealize):
        guarded, inside = node.block, [*around, *conjuncts(node.predicate)]
    elif isinstance(node, IfThenElse):
        guarded, inside = node.then_case, [*around, *conjuncts(node.condition)]
    for child in children(node):
        yield from _guards(child, buffer, inside if child is guarded else around)


def _names(node: Node, buffer: Buffer) -> bool:
    """Whether a node accesses a buffer, or uses its memory."""
    if isinstance(node, MatchBufferRegion):
        node = node.source
    is_access = isinstance(node, (BufferLoad, BufferStore, BufferRegion))
    return node is buffer.data or (is_access and node.buffer is buffer)


def and_unproved(
    predicate: PrimExpr, conditions: Iterable[PrimExpr], analyzer: Analyzer
) -> PrimExpr:
    """A predicate, and those conditions that are not known to hold."""
    needed = (condition for condition in conditions if not analyzer.can_prove(condition))
    return reduce(logical_and, needed, predicate)


def known_sides(
    box: Sequence[IntSet], place: BlockPlace, outer: For | None, blocks: Scope
) -> list[IntSet]:
    """The box that a unit accesses in the loop `outer`, with those sides infinite that cannot be
    computed elsewhere: an index that is loaded from memory, where a predicate guards the load or
    where the memory is written in the same scope; and one of a variable that `let` defines there.
    """
    local = let_variables(place, outer)
    return [
        EVERYTHING
        if _is_loaded(side, place.realize.predicate, blocks)
        or any(end is not None and uses_any(end, local) for end in side)
        else side
        for side in box
    ]


def _is_loaded(side: IntSet, predicate: PrimExpr, blocks: Scope) -> bool:
    loads = [node for end in side if end is not None for node in find_nodes(end, BufferLoad)]
    guarded = bool(loads) and not is_trivially_true(predicate)
    return guarded or any(
        load.buffer in blocks.writers or load.buffer in blocks.undeclared_writers for load in loads
    )


def use_of_memory(node: Node, buffer: Buffer) -> str | None:
    """How a statement uses a buffer other than by its elements; None where it does not."""
    for part in walk(node):
        if isinstance(part, MatchBufferRegion) and part.source.buffer is buffer:
            return f'a region of it is matched as buffer "{part.buffer.name}"'
        if part is buffer.data:
            return "its address is used"
        if isinstance(part, (BufferLoad, BufferStore)) and part.buffer is buffer:
            if any(lanes(index.dtype) > 1 for index in part.indices):
                return "vectors of its elements are accessed"
    return None


def check_no_declared_view(place: BlockPlace, around: Stmt, buffer: Buffer) -> None:
    """Raise ArgumentError where T.decl_buffer declares a buffer in the memory of `buffer`."""
    for node in find_statements(around, DeclBuffer):
        if node.buffer.data is buffer.data:
            view = "is declared as a view" if node.buffer is buffer else "has a declared view"
            raise ArgumentError(
                f'The buffer "{buffer.name}" {view}: its memory is that of other buffers, too',
                [place.realize],
                "a buffer without T.decl_buffer",
            )


def loads_of(node: Node, buffer: Buffer) -> list[BufferLoad]:
    """The loads from `buffer` in a statement or expression."""
    return [n for n in find_nodes(node, BufferLoad) if n.buffer is buffer]


def regions_of(regions: Iterable[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    """The regions that are of `buffer`."""
    return [region for region in regions if region.buffer is buffer]
