"""Loop nests that hold one block, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.schedule.errors import LoopError
from mlcweb.schedule.state import (
    BlockPlace,
    ScheduleState,
    loops_above,
    substatements,
    with_substatements,
)
from mlcweb.schedule.units import computes_header
from mlcweb.tir.arithmetic import const, logical_and
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, PrimExpr, Var
from mlcweb.tir.stmt import (
    Block,
    BlockRealize,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Stmt,
    sequence,
)


def only_block_in(place: BlockPlace, loops: Sequence[For], primitive: str) -> Stmt:
    """The outermost of `loops`, which are around a block, or its realize where there are none.

    A LoopError where one of the loops holds other statements too.
    """
    inner: Stmt = place.realize
    for loop in reversed(loops):
        if loop.body is not inner:
            raise LoopError(
                f'The loop "{loop.loop_var.name}" around block "{place.block.name_hint}" holds '
                f"other statements too, which {primitive} would have to repeat or to drop",
                [loop, place.realize],
                "a loop nest that holds the block alone",
            )
        inner = loop
    return inner


def nest_of(place: BlockPlace, primitive: str) -> Stmt:
    """The loop nest of a block, directly in the block around it."""
    nest = only_block_in(place, loops_above(place), primitive)
    scope = next(p for p in reversed(place.parents) if isinstance(p, Block))
    if not any(statement is nest for statement in statements_of(scope)):
        raise LoopError(
            f'The loop nest of block "{place.block.name_hint}" is not directly in block '
            f'"{scope.name_hint}": other statements enclose it',
            [place.realize],
            "a loop nest that no branch or other statement encloses",
        )
    return nest


def statements_of(block: Block) -> tuple[Stmt, ...]:
    """The statements of a block's body, in order."""
    return block.body.seq if isinstance(block.body, SeqStmt) else (block.body,)


def with_statements(
    state: ScheduleState,
    scope: BlockPlace,
    statements: Sequence[Stmt],
    buffers: Sequence[Buffer],
) -> ScheduleState:
    """The state with another body of a block, which allocates `buffers` besides."""
    block = scope.block
    changed = replace(
        block, body=sequence(*statements), alloc_buffers=(*block.alloc_buffers, *buffers)
    )
    return state.replaced(scope.function, {block: changed})


def loop_nest(loops: Sequence[Var], extents: Sequence[PrimExpr], body: Stmt) -> Stmt:
    """Serial loops around a statement."""
    nest = body
    for var, extent in reversed(list(zip(loops, extents, strict=True))):
        nest = For(var, const(0, var.dtype), extent, ForKind.SERIAL, nest)
    return nest


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
