"""The pass `tvm.tir.transform.CommonSubexprElim`: what a program computes of the same variables in
several places is computed once, before the first of them, and has a name. (What the pipeline shares
between stores is in `mlcweb.lower.optimize.common_subexpr_elim`.)

A place is a path of scopes: for each the number of the scope and that of a statement in it. Bodies
of loops and branches are scopes; what follows a `let` or an allocation belongs to its scope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlcweb.arith.equality import Interning
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, children, on, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.lower.statement_simplifier import NOTHING
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import may_trap
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.fresh_copy import convert_ssa
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import NODE_OPERATORS, operator_name
from mlcweb.tir.reduction import Reduce

Place = tuple[tuple[int, int], ...]
Definitions = Mapping[tuple[int, int], Sequence[tuple[E.Var, E.PrimExpr]]]

_LEAVES = (E.Var, E.IntImm, E.FloatImm, E.StringImm)
_OPENING = (S.LetStmt, S.AllocBuffer, S.DeclBuffer, S.AssertStmt)
"""Statements whose bodies are the rest of the scope."""


@lowering_pass("CommonSubexprElim", "CommonSubexprElimTIR")
def common_subexpr_elim(func: PrimFunc) -> PrimFunc:
    """Name what is computed more than once and reads no memory, the largest expressions first."""
    func = convert_ssa(func)
    occurrences = _Occurrences()
    occurrences.statements.scope(func.body)
    chosen = occurrences.chosen()
    if not chosen:
        return func
    names = {value: E.Var(f"cse_v{n}", value.dtype) for n, (value, _) in enumerate(chosen, start=1)}
    naming = _Naming(names, occurrences.interned)
    definitions: dict[tuple[int, int], list[tuple[E.Var, E.PrimExpr]]] = {}
    for value, place in sorted(chosen, key=lambda item: _size(item[0])):
        definition = names[value], naming.rewrite_children(value)
        definitions.setdefault(place[-1], []).append(definition)
    return func.with_body(_Statements(naming.rewrite, definitions).scope(func.body))


class _Statements(Mutator):
    """Goes through the statements of all scopes in order. `value` says what becomes of the
    expressions in them, `definitions` what is defined before a statement."""

    def __init__(self, value: Callable[[E.PrimExpr], E.PrimExpr], definitions: Definitions) -> None:
        self.value = value
        self.definitions = definitions
        self.place: Place = ()
        self.scopes = 0

    def scope(self, body: S.Stmt) -> S.Stmt:
        """The statements of a scope, each with the path of its place in `place`."""
        number, around = self.scopes, self.place
        self.scopes += 1
        pending: list[Any] = [body]
        index = 0
        done: list[tuple[Any, bool]] = []
        while pending:
            statement = pending.pop()
            if isinstance(statement, S.SeqStmt):
                pending.extend(reversed(statement.seq))
                continue
            self.place = (*around, (number, index))
            for var, value in self.definitions.get((number, index), ()):
                done.append((S.LetStmt(var, value, NOTHING), True))
            opens = isinstance(statement, _OPENING) and not pending
            if opens:
                pending.append(statement.body)
                done.append((self.expressions(statement), True))
            else:
                done.append((self.rewrite(statement), False))
            index += 1
        self.place = around
        rest: list[S.Stmt] = []
        for statement, opens in reversed(done):
            rest = [replace(statement, body=S.sequence(*rest))] if opens else [statement, *rest]
        return S.sequence(*rest)

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Buffer):
            return node
        return self.value(node) if isinstance(node, E.PrimExpr) else super().rewrite(node)

    def expressions(self, statement: Any) -> Any:
        """A statement with its own expressions rewritten, not what is in it."""
        fields = {name: getattr(statement, name) for name in statement.child_fields}
        new = {name: self.value(f) for name, f in fields.items() if isinstance(f, E.PrimExpr)}
        return replace(statement, **new)

    @on(S.For, S.While, S.IfThenElse, S.AttrStmt, S.Block, *_OPENING)
    def nest(self, statement: Any) -> Any:
        new = self.expressions(statement)
        # What an init and a body share has no place: not in one of them, nor outside of the block.
        fields = {n: getattr(statement, n) for n in statement.child_fields if n != "init"}
        bodies = {name: self.scope(f) for name, f in fields.items() if isinstance(f, S.Stmt)}
        return replace(new, **bodies)


@dataclass(eq=False)
class _Occurrence:
    """Where a value is computed, and what is computed for it; `sure` says that no condition of an
    expression stands before it, `counts` that it is no part of a value that has a name."""

    place: Place
    sure: bool
    parts: list[_Occurrence]
    counts: bool = field(default=True)

    def all_parts(self) -> list[_Occurrence]:
        return [one for part in self.parts for one in (part, *part.all_parts())]


class _Occurrences:
    """The values that a program computes, as written, and where."""

    def __init__(self) -> None:
        self.interned = Interning()
        self.of: dict[E.PrimExpr, list[_Occurrence]] = {}
        self.statements = _Statements(self.count, {})

    def count(self, expression: E.PrimExpr) -> E.PrimExpr:
        self.parts(expression, sure=True)
        return expression

    def parts(self, expression: E.PrimExpr, sure: bool) -> tuple[list[_Occurrence], bool]:
        """The largest values in an expression, and whether it is one itself or has none."""
        if isinstance(expression, _LEAVES):
            return [], True
        occurrences: list[_Occurrence] = []
        is_value = isinstance(expression, NODE_OPERATORS)
        for operand, always in _operands(expression):
            inside, whole = self.parts(operand, sure and always)
            occurrences += inside
            is_value &= whole
        if is_value and not dtypes.is_bool(expression.dtype):
            one = _Occurrence(self.statements.place, sure, occurrences)
            self.of.setdefault(self.interned(expression), []).append(one)
            occurrences = [one]
        return occurrences, is_value

    def chosen(self) -> list[tuple[E.PrimExpr, Place]]:
        """The values that get names, and the places before which they are defined. What such a
        value is computed of counts once, where it is defined."""
        result = []
        for value in sorted(self.of, key=_size, reverse=True):
            counted = [one for one in self.of[value] if one.counts]
            if len(counted) < 2:
                continue
            place = _common([one.place for one in counted])
            if may_trap(value) and not any(one.sure and one.place == place for one in counted):
                continue
            result.append((value, place))
            first, *others = counted
            for part in first.all_parts():
                part.place = place
            for part in (part for one in others for part in one.all_parts()):
                part.counts = False
        return result


class _Naming(Mutator):
    """Puts names in place of values."""

    def __init__(self, names: Mapping[E.PrimExpr, E.Var], interned: Interning) -> None:
        self.names = names
        self.interned = interned

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, (Buffer, *_LEAVES)) or not isinstance(node, E.PrimExpr):
            return node
        name = self.names.get(self.interned(node))
        return super().rewrite(node) if name is None else name

    @on(E.Let)
    def let(self, let: E.Let) -> E.Let:
        return replace(let, value=self.rewrite(let.value))

    @on(Reduce)
    def reduction(self, node: Reduce) -> Reduce:
        return node


def _operands(expression: E.PrimExpr) -> list[tuple[E.PrimExpr, bool]]:
    """The operands that belong to the scope of an expression; whether each is always computed."""
    if isinstance(expression, E.Let):
        return [(expression.value, True)]
    if isinstance(expression, Reduce):
        return []
    parts = [part for part in children(expression) if isinstance(part, E.PrimExpr)]
    chooses = isinstance(expression, (E.And, E.Or)) or operator_name(expression) == "if_then_else"
    return [(part, n == 0 or not chooses) for n, part in enumerate(parts)]


def _size(expression: E.PrimExpr) -> int:
    return sum(1 for _ in walk(expression))


def _common(places: list[Place]) -> Place:
    """The place in the innermost scope around all places before all of them."""
    result: Place = ()
    for level in zip(*places, strict=False):
        if len({scope for scope, _ in level}) > 1:
            break
        result = (*result, min(level))
    return result
