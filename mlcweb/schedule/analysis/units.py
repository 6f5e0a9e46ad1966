"""The units of a scope: its blocks, and its statements outside of blocks, in program order.

A scope is a block's body, where loops, sequences and branches hold blocks, and now and then a bare
store. Primitives reason about one vocabulary alone: each statement outside of blocks (and each
condition, bound or `let` value that reads memory) is seen as an opaque block without iterators,
whose reads and writes are inferred. What decides whether or how often a unit runs, other than the
loops that drive it and predicates, are its *guards*: branches, `while`, `let`, and loops that may
have no iteration.

Accesses that no block declares are what it uses all the same, and other buffers in its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mlcweb.analysis import block_access_regions
from mlcweb.analysis.access_regions import same_range
from mlcweb.analysis.effects import may_be_empty, uses_addresses
from mlcweb.arith import Analyzer, same_expression
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.schedule.errors import DataflowError
from mlcweb.schedule.state import BlockPlace, Place, ScheduleState, executed_substatements
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.expr import BufferLoad, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    declared_buffers,
    find_statements,
)
from mlcweb.tir.substitute import reads_memory, substitute, uses

_HEADERS: dict[type, tuple[str, ...]] = {
    AssertStmt: ("condition",),
    AttrStmt: ("value",),
    For: ("min", "extent"),
    IfThenElse: ("condition",),
    LetStmt: ("value",),
    While: ("condition",),
}
"""The expressions that a statement with a body computes itself."""


@dataclass(slots=True, unsafe_hash=True)
class RawPlace(BlockPlace):
    """A statement outside of blocks, seen as an opaque block. Its `realize` stands nowhere in the
    program; `statement` does. For a header it is the statement that computes the header."""

    raw: Stmt

    @property
    def statement(self) -> Stmt:
        return self.raw

    @property
    def title(self) -> str:
        return f'statement "{self.block.name_hint}" outside of blocks'


@dataclass(slots=True, unsafe_hash=True)
class CompletedPlace(BlockPlace):
    """A block that is seen declaring all that it does. Its `realize` stands nowhere in the program;
    `statement` does."""

    declared: BlockRealize

    @property
    def statement(self) -> Stmt:
        return self.declared


Guard = tuple[Stmt, Stmt]
"""A branch, `while`, `let`, view or loop around a unit, and which of its bodies the unit is in."""


def units_below(state: ScheduleState, around: Place) -> tuple[BlockPlace, ...]:
    """The outermost blocks, and the statements outside of them, below a block or loop."""
    above = (*around.parents, around.statement)
    if isinstance(around, BlockPlace):
        above = (*above, around.block)
    units: list[BlockPlace] = []

    def raw(statement: Stmt, body: Stmt, parents: tuple[Stmt, ...]) -> None:
        units.append(_raw_place(state, around.function, statement, body, parents))

    def visit(statement: Stmt, parents: tuple[Stmt, ...]) -> None:
        if isinstance(statement, BlockRealize):
            units.append(state.index.blocks[statement.block.identity])
            return
        below = executed_substatements(statement)
        nothing = isinstance(statement, Evaluate) and isinstance(statement.value, IntImm)
        if not below and not nothing:
            raw(statement, statement, parents)
        headers = _headers(statement)
        for header in headers:
            raw(statement, Evaluate(header), parents)
        inner = (*parents, statement)
        for part in below:
            visit(part, inner)
        if isinstance(statement, While):  # The body runs before the condition, too.
            for header in headers:
                raw(statement, Evaluate(header), parents)

    for below in executed_substatements(around.node):
        visit(below, above)
    return tuple(units)


def computes_header(statement: Stmt) -> bool:
    """Whether a statement computes something of memory, or changes how often its body runs, before
    the blocks in it run: it is guarded as a whole."""
    return isinstance(statement, While) or bool(_headers(statement))


def _headers(statement: Stmt) -> list[PrimExpr]:
    """What a statement reads of memory before its body runs."""
    values = [getattr(statement, name) for name in _HEADERS.get(type(statement), ())]
    return [value for value in values if type(value) is not IntImm and reads_memory(value)]


def _raw_place(
    state: ScheduleState, function: str, statement: Stmt, body: Stmt, parents: tuple[Stmt, ...]
) -> RawPlace:
    name = repr(statement).strip().splitlines()[0].rstrip(":")
    visible = _visible_buffers(state, function, parents)
    reads, writes = block_access_regions(Block((), (), (), name, body), visible).possible
    block = Block((), reads, writes, name, body)
    return RawPlace(function, BlockRealize((), const(True), block), parents, statement)


def _visible_buffers(
    state: ScheduleState, function: str, parents: Sequence[Stmt]
) -> dict[Var, Buffer]:
    """The buffers that are known where a statement stands, by data variable."""
    buffers = list(state.function(function).buffer_map.values())
    for parent in parents:
        buffers += declared_buffers(parent)
    return {buffer.data: buffer for buffer in reversed(buffers)}


def completed(state: ScheduleState, place: BlockPlace) -> BlockPlace:
    """A unit as one that declares all that it accesses, blocks in it too: what it declares, and of
    buffers of which it declares less than its body accesses, what the body does."""
    if isinstance(place, RawPlace) or not _declares_less(place.block):
        return place
    visible = _visible_buffers(state, place.function, place.parents)
    block = _Completion(visible).rewrite(place.block)
    stored, _ = hidden_accesses(block)
    if stored:
        raise DataflowError(
            f'The {place.title} does not declare what it writes (for one, "{stored[0].name}"), and '
            "it writes it through another buffer in the same memory, so that it is not known "
            "whether its iterations depend on each other",
            [place.realize],
            "T.reads and T.writes that say what the block does",
        )
    realize = replace(place.realize, block=block)
    return CompletedPlace(place.function, realize, place.parents, place.realize)


class _Completion(Mutator):
    def __init__(self, buffers: dict[Var, Buffer]) -> None:
        self.buffers = buffers

    @on(Block)
    def block(self, block: Block) -> Block:
        """What blocks inside declare counts for those around them, so they come first."""
        new = self.rewrite_children(block)
        if not _declares_less(block):
            return new
        done = block_access_regions(new, self.buffers).possible
        reads, writes = (
            (*declared, *(region for region in regions if _leave_out(new, declared, region)))
            for declared, regions in zip((new.reads, new.writes), done, strict=True)
        )
        return replace(new, reads=reads, writes=writes)


@lru_cache(maxsize=4096)
def _declares_less(block: Block) -> bool:
    """Whether a block, or one in it, accesses elements that it is known not to declare."""
    if any(hidden_accesses(block)):
        return True
    done = block_access_regions(block)
    return any(
        _leave_out(block, declared, region)
        for declared, regions in ((block.reads, done.reads), (block.writes, done.writes))
        for region in regions
    ) or any(_declares_less(inner) for inner in find_statements(block.body, Block))


def _leave_out(block: Block, declared: Sequence[BufferRegion], region: BufferRegion) -> bool:
    """Whether what a block declares is known to leave out elements of a region that its body
    accesses: where its iterators all begin, or all end. A side of the whole buffer's may be one
    that is not known better, and so may all sides be of what is accessed by an address."""
    boxes = [other.region for other in declared if other.buffer is region.buffer]
    if not boxes or uses_addresses(block):
        return not boxes
    if any(all(map(same_range, box, region.region)) for box in boxes):
        return False
    analyzer = Analyzer()
    corners = (
        {var: domain.min for var, domain in block.domains.items()},
        {var: domain.min + domain.extent - 1 for var, domain in block.domains.items()},
    )

    def is_out(box: Sequence[Range], corner: dict[Var, PrimExpr]) -> bool:
        return any(
            analyzer.can_disprove(substitute(inside, corner))
            for outer, inner, extent in zip(box, region.region, region.buffer.shape, strict=True)
            if not same_range(outer, inner) and not same_expression(inner.extent, extent)
            for inside in (
                outer.min <= inner.min,
                inner.min + inner.extent <= outer.min + outer.extent,
            )
        )

    return any(all(is_out(box, corner) for box in boxes) for corner in corners)


def blocks_among(units: Iterable[BlockPlace]) -> tuple[BlockPlace, ...]:
    """The units that are blocks of the program."""
    return tuple(unit for unit in units if not isinstance(unit, RawPlace))


def let_variables(place: BlockPlace, outer: For | None) -> set[Var]:
    """The variables that `let` defines around a unit, inside of a loop (or of its scope)."""
    variables: set[Var] = set()
    for parent in reversed(place.parents):
        if parent is outer or isinstance(parent, Block):
            break
        if isinstance(parent, LetStmt):
            variables.add(parent.var)
    return variables


def check_all_blocks(units: Iterable[BlockPlace], buffer: Buffer, what: str) -> None:
    """Raise DataflowError where a statement outside of blocks uses a buffer."""
    for unit in units:
        if isinstance(unit, RawPlace):
            raise DataflowError(
                f'The {unit.title} uses "{buffer.name}", and {what}',
                [unit.statement],
                "the statement in a block of its own",
            )


def stands_in(place: BlockPlace, statement: Stmt) -> bool:
    """Whether a unit is a statement, or below it."""
    return place.statement is statement or any(p is statement for p in place.parents)


def guards(place: Place, outer: For | None = None) -> list[Guard]:
    """What decides whether and how often a unit or loop runs, or defines what it uses, up to its
    scope or to inside of the loop `outer`, innermost first."""
    around: list[Guard] = []
    below = place.statement
    for parent in reversed(place.parents):
        if parent is outer or isinstance(parent, Block):
            break
        if _decides(parent, place) or _is_needed(parent, place):
            around.append((parent, below))
        below = parent
    return around


def _decides(statement: Stmt, place: Place) -> bool:
    """Whether a statement decides alone how often a unit or loop runs: a branch, a `while`, or a
    loop that perhaps has no iteration and drives nothing of the unit. (What the other loops leave
    out, the regions tell.)"""
    if isinstance(statement, For):
        unit = place.statement
        return may_be_empty(statement.extent, unit) and not uses(unit, statement.loop_var)
    return isinstance(statement, (IfThenElse, While))


def _is_needed(definition: Stmt, place: Place) -> bool:
    """Whether a statement defines a variable or buffer that a unit uses."""
    if isinstance(definition, LetStmt):
        return any(node is definition.var for node in walk(place.statement))
    if isinstance(definition, (AllocBuffer, DeclBuffer)):
        buffer = definition.buffer
        return any(
            node is buffer.data or getattr(node, "buffer", None) is buffer
            for node in walk(place.statement)
        )
    return False


def check_within_guards(place: BlockPlace, other: Place, what: str) -> None:
    """Raise DataflowError unless whatever guards a unit is around `other`, too: what the unit does
    would then be done at `other`, where the guards have not been asked."""
    _check_all_around(place, guards(place), other, what)


def check_same_guards(place: BlockPlace, other: Place, what: str) -> None:
    """Raise DataflowError unless a unit and `other` run under the same conditions."""
    check_within_guards(place, other, what)
    deciding = [guard for guard in guards(other) if isinstance(guard[0], (IfThenElse, While, For))]
    _check_all_around(place, deciding, place, what)


def check_unguarded(place: BlockPlace, outer: For | None, what: str) -> None:
    """Raise DataflowError where something guards a unit between a loop (or its scope) and it."""
    for guard in guards(place, outer):
        raise _guarded(place, guard, what)


def _check_all_around(place: BlockPlace, needed: Sequence[Guard], other: Place, what: str) -> None:
    path = [*other.parents, other.statement]
    around = {(id(parent), id(below)) for parent, below in pairwise(path)}
    for guard in needed:
        if (id(guard[0]), id(guard[1])) not in around:
            raise _guarded(place, guard, what)


def _guarded(place: BlockPlace, guard: Guard, what: str) -> DataflowError:
    text = repr(guard[0]).strip().splitlines()[0]
    return DataflowError(
        f'The {place.title} depends on the statement "{text}", and {what}',
        [place.statement, guard[0]],
        "a predicate of the block (T.where) instead of the statement around it, or blocks that the "
        "same statement encloses",
    )


@lru_cache(maxsize=4096)
def bound_reads(realize: BlockRealize) -> tuple[Buffer, ...]:
    """The buffers that a block's bindings and its predicate load from. T.reads is about the body,
    so that they are reads that no block declares."""
    return tuple(
        node.buffer
        for value in (*realize.iter_values, realize.predicate)
        if type(value) is not Var and reads_memory(value)
        for node in find_nodes(value, BufferLoad)
    )


def in_the_same_memory(
    state: ScheduleState, place: BlockPlace, buffers: Iterable[Buffer]
) -> dict[Buffer, None]:
    """Other buffers in the memory of some, as T.decl_buffer declares them: what is done to one is
    done to all, and no region says to which elements."""
    if place.function not in state.index.views:
        return {}
    views = state.cached(("views", place.function), lambda: _views(state, place.function))
    return {
        view: None
        for buffer in buffers
        for view in views.get(buffer.data, ())
        if view is not buffer
    }


def _views(state: ScheduleState, function: str) -> dict[Var, tuple[Buffer, ...]]:
    """The buffers of each memory that has more than one, by the variable of its address."""
    body = state.function(function).body
    shared = {part.buffer.data for part in find_statements(body, DeclBuffer)}
    views: dict[Var, dict[Buffer, None]] = {data: {} for data in shared}
    if shared:
        for node in find_nodes(body, *_ACCESSES):
            if node.buffer.data in shared:
                views[node.buffer.data][node.buffer] = None
    return {data: tuple(buffers) for data, buffers in views.items() if len(buffers) > 1}


_ACCESSES = (BufferLoad, BufferStore, BufferRegion)
"""What uses a buffer; a region, where the block calls the buffer by another name."""

_LEAVES = frozenset((Var, IntImm))


def _nodes_but_leaves(block: Block) -> Iterator[Node]:
    """The nodes of a block but for variables and integers, which are most of its regions."""
    yield block
    ranges = [side for region in (*block.reads, *block.writes) for side in region.region]
    ranges += [iter_var.domain for iter_var in block.iter_vars]
    sides = [side for domain in ranges for side in (domain.min, domain.extent)]
    parts = (*sides, block.body, block.init, *block.match_buffers)
    for part in parts:
        if part is not None and type(part) not in _LEAVES:
            for node in walk(part):
                if type(node) not in _LEAVES:
                    yield node


@lru_cache(maxsize=4096)
def hidden_accesses(block: Block) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """The buffers from outside of which a block, or a block in it, stores or loads elements without
    declaring it. A reduction loads what it declares to write alone."""
    written = {region.buffer for region in block.writes}
    readable = {region.buffer for region in block.reads}
    reduces = False
    own: set[Buffer] = set()
    views: set[Buffer] = set()
    matched: dict[Buffer, Buffer] = {}
    stored: dict[Buffer, None] = {}
    loaded: dict[Buffer, None] = {}
    for node in _nodes_but_leaves(block):
        if isinstance(node, (BufferStore, BufferLoad)):
            buffer = node.buffer
            while buffer in matched:
                buffer = matched[buffer]
            if isinstance(node, BufferStore) and buffer not in written:
                stored[buffer] = None
            if isinstance(node, BufferLoad) and buffer not in readable:
                loaded[buffer] = None
        elif isinstance(node, Block):
            reduces = reduces or node.init is not None
            own.update(node.alloc_buffers)
            matched.update({match.buffer: match.source.buffer for match in node.match_buffers})
        elif isinstance(node, AllocBuffer):
            own.add(node.buffer)
        elif isinstance(node, DeclBuffer):
            views.add(node.buffer)
    memory = {buffer.data for buffer in (*own, *written, *readable)}
    own.update(view for view in views if view.data in memory)
    declared = own | written if reduces else own
    return tuple(b for b in stored if b not in own), tuple(b for b in loaded if b not in declared)


def undeclared_accesses(realize: BlockRealize) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """`hidden_accesses` of a block, and the buffers that its bindings and its predicate load:
    T.reads is about the body."""
    stored, loaded = hidden_accesses(realize.block)
    declared = {region.buffer for region in realize.block.reads}
    bound = [buffer for buffer in bound_reads(realize) if buffer not in declared]
    return stored, tuple(dict.fromkeys((*loaded, *bound)))
