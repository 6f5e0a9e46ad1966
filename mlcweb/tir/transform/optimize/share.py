"""The pass that computes common values of neighbouring statements once.

Within a run of statements without loops or branches, a value that is loaded or computed twice with
nothing in between that changes it gets a name. Unrolled loops are full of such values: each row of
a tile loads the same vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Mutator, children, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.transform.optimize.accesses import accesses_in, has_effects, may_alias
from mlcweb.tir.transform.optimize.indices import Indices
from mlcweb.tir.transform.optimize.rewriter import is_choice


def share(func: PrimFunc) -> PrimFunc:
    """Give names to values that neighbouring statements have in common."""
    body = _Sharing(func).rewrite(func.body)
    return func if body is func.body else replace(func, body=body)


class _Value:
    """An expression that occurs in a run of statements, and the statement that has it first."""

    __slots__ = ("expression", "first", "uses")

    def __init__(self, expression: E.PrimExpr, first: int) -> None:
        self.expression = expression
        self.first = first
        self.uses = 1


class _Sharing(Mutator):
    def __init__(self, func: PrimFunc) -> None:
        self.function = func
        self.indices = Indices()

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> S.Stmt:
        return self.statements(statement.seq)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        return self.statements((store,))

    def statements(self, statements: tuple[S.Stmt, ...]) -> S.Stmt:
        """Statements one after another: runs of stores together, everything else by itself."""
        done: list[S.Stmt] = []
        run: list[S.BufferStore] = []
        for statement in statements:
            if isinstance(statement, S.BufferStore) and not has_effects(statement):
                run.append(statement)
                continue
            if run:
                done.append(self.shared(run))
                run = []
            done.append(self.rewrite(statement))
        if run:
            done.append(self.shared(run))
        return S.sequence(*done)

    def shared(self, stores: list[S.BufferStore]) -> S.Stmt:
        """A run of stores with names for the values that they share."""
        values = self.values(stores)
        named: dict[int, list[tuple[E.Var, E.PrimExpr]]] = {}
        names: dict[object, list[tuple[int, int, E.Var]]] = {}
        del names
        versions = [value for value in values if value.uses > 1]
        if not versions:
            return S.sequence(*stores)
        return _Naming(self.indices, stores, versions, named).run()

    def values(self, stores: list[S.BufferStore]) -> list[_Value]:
        raise NotImplementedError
