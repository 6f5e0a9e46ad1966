"""The pass that computes common values of neighbouring statements once.

Within a run of stores, a value that is loaded or computed again with nothing in between that
changes it gets a name. Unrolled loops are full of such values: each row of a tile loads the same
vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from mlcweb.ir.visitor import Mutator, Replacement, on
from mlcweb.lower.optimize.accesses import aliasing
from mlcweb.lower.optimize.hoist import is_worth_a_name, name_of, sure_operands
from mlcweb.lower.optimize.indices import Indices
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.statement_simplifier import resequenced
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.contents import accesses_in
from mlcweb.tir.function import PrimFunc

MAX_RUN_LENGTH = 32
"""So many stores are looked at together."""

NAMES_PER_REGISTER = 2
"""They get at most so many names for each register: more values would not stay in registers, even
if they are not used all at once, and each name is a statement around the rest."""


def common_subexpr_elim(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """Give names to values that neighbouring statements have in common."""
    return func.with_body(_Sharing(func, NAMES_PER_REGISTER * machine.registers).rewrite(func.body))


class _Sharing(Mutator):
    """Goes through runs of stores, with what they have in common."""

    def __init__(self, func: PrimFunc, max_names: int) -> None:
        self.may_alias = aliasing(func)
        self.max_names = max_names
        self.indices = Indices()

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> S.Stmt:
        done: list[S.Stmt] = []
        for is_run, parts in groupby(statement.seq, lambda part: isinstance(part, S.BufferStore)):
            if not is_run:
                done += map(self.rewrite, parts)
                continue
            stores = [part for part in parts if isinstance(part, S.BufferStore)]
            for start in range(0, len(stores), MAX_RUN_LENGTH):
                done.append(_Run(self, stores[start : start + MAX_RUN_LENGTH]).result())
        return resequenced(statement, done)

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> S.Stmt:
        return _Run(self, [store]).result()


class _Run:
    """Stores one after another. The version of a buffer counts the stores that may have changed it;
    a value is known by its expression and the versions of the buffers that it reads."""

    def __init__(self, sharing: _Sharing, stores: list[S.BufferStore]) -> None:
        self.sharing = sharing
        self.stores = stores
        self.versions: dict[Buffer, int] = {}
        self.uses: dict[Any, int] = {}
        self.names: dict[Any, E.Var] = {}

    def result(self) -> S.Stmt:
        """The stores, after the definitions of what they share."""
        self.in_order(lambda store: self.count(store.value))
        if all(count == 1 for count in self.uses.values()):
            return S.sequence(*self.stores)
        self.definitions: list[tuple[E.Var, E.PrimExpr]] = []
        parts: list[tuple[list[tuple[E.Var, E.PrimExpr]], S.BufferStore]] = []

        def rebuild(store: S.BufferStore) -> None:
            self.definitions = []
            new = _with_operands(store, {store.value: self.rebuilt(store.value)})
            parts.append((self.definitions, new))

        self.in_order(rebuild)
        result: list[S.Stmt] = []
        for definitions, store in reversed(parts):
            result.insert(0, store)
            for var, value in reversed(definitions):
                result = [S.LetStmt(var, value, S.sequence(*result), span=store.span)]
        return S.sequence(*result)

    def in_order(self, visit: Any) -> None:
        """Visit the stores, each with the versions of buffers that it sees."""
        buffers = {access.buffer for store in self.stores for access in accesses_in(store)}
        self.versions = dict.fromkeys(buffers, 0)
        for store in self.stores:
            visit(store)
            for buffer in buffers:
                if self.sharing.may_alias(buffer, store.buffer):
                    self.versions[buffer] += 1

    def key(self, expression: E.PrimExpr) -> Any:
        """What a value is known by; None where it is not worth a name."""
        if isinstance(expression, (E.Var, E.IntImm, E.FloatImm)) or not (
            is_worth_a_name(expression)
        ):
            return None
        reads = accesses_in(expression)
        versions = tuple(self.versions[read.buffer] for read in reads)
        return self.sharing.indices.interned(expression), versions

    def count(self, expression: E.PrimExpr) -> None:
        """Count the values that are surely computed; parts of a known value do not count again."""
        key = self.key(expression)
        if key is not None:
            self.uses[key] = self.uses.get(key, 0) + 1
            if self.uses[key] > 1:
                return
        for operand in sure_operands(expression):
            self.count(operand)

    def rebuilt(self, expression: E.PrimExpr) -> E.PrimExpr:
        """The expression with names for shared values; new names are added to `definitions`."""
        key = self.key(expression)
        if key is None or self.uses.get(key, 0) < 2:
            return self.with_names(expression)
        if key not in self.names:
            value = self.with_names(expression)
            if len(self.names) >= self.sharing.max_names:
                return value
            self.names[key] = E.Var(name_of(expression), expression.dtype)
            self.definitions.append((self.names[key], value))
        return self.names[key]

    def with_names(self, expression: E.PrimExpr) -> E.PrimExpr:
        """The expression with its operands rebuilt."""
        new = {operand: self.rebuilt(operand) for operand in sure_operands(expression)}
        return _with_operands(expression, new) if new else expression


def _with_operands(node: Any, new: Mapping[E.PrimExpr, E.PrimExpr]) -> Any:
    return Replacement(lambda operand: new.get(operand, operand)).rewrite_children(node)
