"""Copies to shared memory in two steps, through registers: `manifest_shared_memory_local_stage`.

In a software pipeline the loads from global memory can then run long before the stores, with what
is computed between them.
"""

from __future__ import annotations

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.pipeline_annotations import LOCAL_STAGE
from mlcweb.lower.statement_simplifier import resequenced
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, subtract
from mlcweb.tir.buffer import decl_buffer
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc


def manifest_local_stage(func: PrimFunc) -> PrimFunc:
    """The function, whose blocks are dissolved, with two nests of loops for each one that holds a
    marked store: to registers, and from there."""
    return func.with_body(_Stages().rewrite(func.body))


class _Stages(Mutator):
    @on(S.SeqStmt)
    def statements(self, statement: S.SeqStmt) -> S.Stmt:
        parts: list[S.Stmt] = []
        for part in statement.seq:
            path = _path_to_mark(part)
            parts.append(self.rewrite(part) if path is None else _two_steps(path))
        return resequenced(statement, parts)


def _path_to_mark(statement: S.Stmt) -> list[S.Stmt] | None:
    """The statements around a marked one, each the only one in the one before, and the mark."""
    path: list[S.Stmt] = []
    while isinstance(statement, (S.For, S.LetStmt, S.AttrStmt, S.IfThenElse)):
        path.append(statement)
        if isinstance(statement, S.AttrStmt) and statement.attr_key == LOCAL_STAGE:
            return path
        if isinstance(statement, S.IfThenElse):
            if statement.else_case is not None:
                return None
            statement = statement.then_case
        else:
            statement = statement.body
    return None


def _two_steps(path: list[S.Stmt]) -> S.Stmt:
    mark = path[-1]
    store = mark.body  # type: ignore[attr-defined]
    around = list(path[:-1])
    while isinstance(store, (S.AttrStmt, S.LetStmt)):
        around.append(store)
        store = store.body
    loops = [part for part in around if isinstance(part, S.For)]
    extents = [loop.extent for loop in loops]
    if not isinstance(store, S.BufferStore) or not all(isinstance(e, E.IntImm) for e in extents):
        raise TVMError(
            f'"{LOCAL_STAGE}" is of a block that stores one element in loops of constant extents, '
            "by way of registers; leave it out here",
            mark.span,
        )
    shape = extents or [const(1)]
    name = f"{store.buffer.name}_local"
    registers = decl_buffer(shape, store.buffer.dtype, name, scope="local")
    indices = tuple(subtract(loop.loop_var, loop.min) for loop in loops) or (const(0),)
    load = S.BufferStore(registers, store.value, indices, span=store.span)
    put = replace(store, value=E.BufferLoad(registers, indices))
    steps = (_inside(around, load), fresh_statement(_inside(around, put)))
    return S.AllocBuffer(registers, S.sequence(*steps))


def _inside(around: list[S.Stmt], body: S.Stmt) -> S.Stmt:
    for part in reversed(around):
        field = "then_case" if isinstance(part, S.IfThenElse) else "body"
        body = replace(part, **{field: body})
    return body
