"""Loop nests that hold one block: where they stand, and new ones, for copies of buffers and for
parts of other blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mlcweb.analysis.access_regions import with_access_regions
from mlcweb.arith import Analyzer
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.analysis.regions import and_unproved
from mlcweb.schedule.analysis.units import computes_header, stands_in
from mlcweb.schedule.errors import LoopError
from mlcweb.schedule.state import (
    BlockPlace,
    LoopPlace,
    ScheduleState,
    block_realizes_below,
    substatements,
    with_substatements,
)
from mlcweb.tir.arithmetic import const, is_const_int, logical_and
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.expr import BufferLoad, PointerType, PrimExpr, Var
from mlcweb.tir.stmt import (
    Block,
    BlockIdentity,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    Stmt,
    in_order,
    sequence,
)
from mlcweb.tir.substitute import substitute


def only_block_in_loops(place: BlockPlace, primitive: str) -> Stmt:
    """The outermost of the loops around a block, or its realize where there are none.

    A LoopError where one of the loops holds other statements too.
    """
    loops, own = place.loops, place.own_loops
    if len(own) < len(loops):
        loop = loops[-len(own) - 1]
        raise LoopError(
            f'The loop "{loop.loop_var.name}" around {place.title} holds other statements '
            f"too, which {primitive} would have to repeat or to drop",
            [loop, place.realize],
            "a loop nest that holds the block alone",
        )
    return loops[0] if loops else place.realize


def nest_of(place: BlockPlace, primitive: str) -> Stmt:
    """The loop nest of a block, directly in the block around it."""
    nest = only_block_in_loops(place, primitive)
    scope = next(p for p in reversed(place.parents) if isinstance(p, Block))
    if not any(statement is nest for statement in statements_of(scope)):
        raise LoopError(
            f'The loop nest of {place.title} is not directly in block "{scope.name_hint}": other '
            "statements enclose it",
            [place.realize],
            "a loop nest that no branch or other statement encloses",
        )
    return nest


def statements_of(container: For | Block | DeclBuffer) -> tuple[Stmt, ...]:
    """The statements in the body of a loop, block or declaration, in order."""
    return in_order(container.body)


def position_in(container: For | Block, place: BlockPlace) -> int:
    """Which statement of a loop or block a unit is, or is in."""
    return next(n for n, s in enumerate(statements_of(container)) if stands_in(place, s))


def only_block_below(state: ScheduleState, target: LoopPlace, advice: str) -> BlockPlace:
    """The block below a loop; a LoopError where there are others, or none."""
    below = state.child_blocks(target)
    if len(below) != 1:
        names = ", ".join(f'"{place.block.name_hint}"' for place in below) or "none"
        raise LoopError(
            f'The loop "{target.loop.loop_var.name}" must have one block below it, not '
            f"{len(below)}: {names}",
            [target.loop],
            advice,
        )
    return below[0]


def with_inserted(
    state: ScheduleState,
    container: For | Block,
    position: int,
    added: Sequence[Stmt],
    removed: int = 0,
) -> ScheduleState:
    """The state with `added` before a statement of a loop or block, or in place of some from there
    on; where the buffers that they use are declared. The container may have been rewritten since.
    """
    place = state.place_of(container)
    return state.with_fields(place, body=_body_with(place.node, position, added, removed))


def _body_with(
    container: For | Block, position: int, added: Sequence[Stmt], removed: int = 0
) -> Stmt:
    old = statements_of(container)
    inside: list[Stmt] = _before(added, old[position + removed :])
    for statement in reversed(old[:position]):
        if isinstance(statement, DeclBuffer) and _access(added, statement.buffer):
            inside = [replace(statement, body=sequence(*statements_of(statement), *inside))]
        else:
            inside.insert(0, statement)
    return sequence(*inside)


def _before(added: Sequence[Stmt], statements: Sequence[Stmt]) -> list[Stmt]:
    """`added` before some statements, but after the declarations of the buffers that they use."""
    for n, declaration in enumerate(statements):
        if isinstance(declaration, DeclBuffer) and _access(added, declaration.buffer):
            inside = _before(added, statements_of(declaration))
            rest = statements[n + 1 :]
            return [*statements[:n], replace(declaration, body=sequence(*inside)), *rest]
    return [*added, *statements]


def _access(statements: Sequence[Stmt], buffer: Buffer) -> bool:
    return any(getattr(node, "buffer", None) is buffer for s in statements for node in walk(s))


def with_allocated(state: ScheduleState, scope: BlockPlace, *buffers: Buffer) -> ScheduleState:
    """The state in which a block, which may have been rewritten since, allocates `buffers` too."""
    place = state.block(scope.block.identity)
    return state.with_fields(place, alloc_buffers=(*place.block.alloc_buffers, *buffers))


def with_stages(
    state: ScheduleState,
    scope: BlockPlace,
    container: For | Block,
    position: int,
    stages: Sequence[Stmt],
    *buffers: Buffer,
) -> tuple[ScheduleState, list[BlockIdentity]]:
    """The state with new blocks before a statement of a scope, or of a loop in it, which allocates
    the `buffers` that they need, and the blocks."""
    blocks = [realize.block.identity for stage in stages for realize in block_realizes_below(stage)]
    place = state.place_of(container)
    body = _body_with(place.node, position, stages)
    if isinstance(place, BlockPlace):  # It is the scope.
        allocated = (*place.block.alloc_buffers, *buffers)
        return state.with_fields(place, body=body, alloc_buffers=allocated), blocks
    return with_allocated(state.with_fields(place, body=body), scope, *buffers), blocks


def in_loops(body: Stmt, loops: Sequence[For]) -> Stmt:
    """A statement in loops, outermost first, in place of what these hold."""
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def in_fresh_loops(body: Stmt, loops: Sequence[For], suffix: str = "") -> Stmt:
    """`in_loops` in copies of the loops, which have variables of their own."""
    fresh: dict[Var, Var] = {
        loop.loop_var: Var(loop.loop_var.name + suffix, loop.loop_var.dtype) for loop in loops
    }
    copies = [replace(loop, loop_var=fresh[loop.loop_var]) for loop in loops]
    return substitute(in_loops(body, copies), fresh)


def loops_from(place: BlockPlace, loop: For) -> tuple[For, ...]:
    """The loops around a block from one of them on; a LoopError where that is not around it."""
    loops = place.loops
    if not any(around is loop for around in loops):
        raise LoopError(
            f'The loop "{loop.loop_var.name}" is not around the {place.title}',
            [loop, place.realize],
            "one of sch.get_loops(block)",
        )
    return loops[next(n for n, around in enumerate(loops) if around is loop) :]


def loop_nest(loops: Sequence[Var], extents: Sequence[PrimExpr], body: Stmt) -> Stmt:
    """Serial loops around a statement."""
    for var, extent in reversed(list(zip(loops, extents, strict=True))):
        body = For(var, const(0, var.dtype), extent, ForKind.SERIAL, body)
    return body


def with_predicate(statement: Stmt, predicate: PrimExpr) -> Stmt:
    """The statement with `predicate` added to the outermost blocks in it, and around whatever is
    not a block."""
    if isinstance(statement, BlockRealize):
        conditions = [statement.predicate, predicate]
        if any(isinstance(node, BufferLoad) for node in walk(statement.predicate)):
            # The loops may now leave the buffer that is read there.
            conditions.reverse()
        return replace(statement, predicate=logical_and(*conditions))
    if not substatements(statement) or computes_header(statement):
        return IfThenElse(predicate, statement)
    changes = {below: with_predicate(below, predicate) for below in substatements(statement)}
    return with_substatements(statement, changes)


Access = tuple[Buffer, Sequence[PrimExpr]]
"""An element of a buffer, by its indices."""


def stage(
    name: str,
    loops: Mapping[Var, PrimExpr],
    iterators: Iterable[tuple[IterVar, PrimExpr]],
    body: Stmt,
    predicate: PrimExpr | None = None,
) -> Stmt:
    """A block in loops of its own, which are given with their extents. Each of its iterators comes
    with what it is bound to; it declares what its body accesses."""
    bound = dict(iterators)
    block = with_access_regions(Block(tuple(bound), (), (), name, body))
    predicate = const(True) if predicate is None else predicate
    realize = BlockRealize(tuple(bound.values()), predicate, block)
    return loop_nest(list(loops), list(loops.values()), realize)


def part_of_block(
    block: Block, kept: Sequence[IterVar], name: str, body: Stmt, suffix: str = ""
) -> Block:
    """A block of its own for a part of what another one does, with iterators like those that are
    `kept`. It declares what the other writes, and what its body reads."""
    fresh = {i.var: Var(i.var.name + suffix, i.var.dtype) for i in kept}
    iter_vars = tuple(replace(i, var=fresh[i.var]) for i in kept)
    writes = tuple(substitute(region, fresh) for region in block.writes)
    part = Block(iter_vars, (), (), name, substitute(body, fresh), span=block.span)
    return replace(with_access_regions(part), writes=writes)


def copy_of(
    buffer: Buffer, storage_scope: str, shape: Sequence[PrimExpr], name: str = ""
) -> Buffer:
    """A buffer of a shape in a storage scope, named after the one that it is a copy of."""
    name = name or f"{buffer.name}_{storage_scope}"
    return replace(
        buffer,
        data=Var(name, "handle", PointerType(buffer.dtype, storage_scope)),
        shape=tuple(shape),
        strides=(),
        elem_offset=const(0, buffer.elem_offset.dtype),
        name=name,
    )


def copying_store(original: Access, copy: Access, reads: bool) -> BufferStore:
    """A store of an element of a buffer to its copy (`reads`), or back."""
    (source, at), (target, to) = (original, copy) if reads else (copy, original)
    return BufferStore(target, BufferLoad(source, tuple(at)), tuple(to))


def copy_stage(
    buffer: Buffer,
    cache: Buffer,
    region: Sequence[Range],
    origin: Sequence[PrimExpr],
    analyzer: Analyzer,
    reads: bool,
) -> Stmt:
    """Loops around a block that copies a region from the buffer to the cache (`reads`), or back.

    Element 0 of the cache is the element `origin` of the buffer.
    """
    loops: dict[Var, PrimExpr] = {}
    iterators: dict[IterVar, PrimExpr] = {}
    outside: list[PrimExpr] = []
    inside: list[PrimExpr] = []
    for n, (dimension, start) in enumerate(zip(region, origin, strict=True)):
        loop_var, iterator = (Var(f"{name}{n}", dimension.extent.dtype) for name in ("ax", "v"))
        loops[loop_var] = dimension.extent
        analyzer.bind(loop_var, Range(const(0, loop_var.dtype), dimension.extent))
        element = dimension.min + loop_var
        domain = Range(const(0, iterator.dtype), cache.shape[n])
        iterators[IterVar(domain, iterator)] = element if is_const_int(start, 0) else loop_var
        outside.append(start + iterator)
        inside += [element >= 0, element < buffer.shape[n]]
    own = [iter_var.var for iter_var in iterators]
    store = copying_store((buffer, outside), (cache, own), reads)
    predicate = analyzer.simplify(and_unproved(const(True), inside, analyzer))
    return stage(cache.name, loops, iterators.items(), store, predicate)
