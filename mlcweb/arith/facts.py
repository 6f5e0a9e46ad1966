"""What rules ask of the analyzer that applies them: what it knows, and what it concludes of that.

An analyzer is made of the rules, so that these are told of it by this type alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from mlcweb.arith.digits import Sum
from mlcweb.arith.equality import Interning
from mlcweb.arith.interval import ConstIntBound
from mlcweb.ir.node import Node
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import PrimExpr, Var

if TYPE_CHECKING:
    from mlcweb.arith.modular import ModularSet


class Facts(Protocol):
    """An `Analyzer`, which says what its attributes and methods are."""

    interned: Interning
    bound_of_variable: dict[Var, ConstIntBound]
    modular_set_of_variable: dict[Var, ModularSet]
    symbolic_domains: dict[Var, Range]
    constraints: list[PrimExpr]
    rewritten: dict[Node, PrimExpr]
    canonical_values: dict[Node, Sum | PrimExpr]
    chains_inequalities: bool
    applies_branches: bool
    compares_products: bool

    def const_int_bound(self, expr: PrimExpr) -> ConstIntBound: ...
    def modular_set(self, expr: PrimExpr) -> ModularSet: ...
    def value_of(self, variable: Var) -> PrimExpr: ...
    def known_value(self, variable: Var) -> PrimExpr: ...
    def simplify(self, expr: PrimExpr) -> PrimExpr: ...
    def rewrite(self, expression: PrimExpr) -> PrimExpr: ...
    def canonical(self, expression: PrimExpr) -> PrimExpr: ...
    def canonical_sum(self, expression: PrimExpr) -> Sum: ...
    def is_within(self, expression: PrimExpr, low: int, high: int) -> bool: ...
    def is_less(self, a: PrimExpr, b: PrimExpr) -> bool: ...
    def can_prove(self, expr: PrimExpr | bool) -> bool: ...
    def can_prove_equal(self, lhs: PrimExpr | int, rhs: PrimExpr | int) -> bool: ...
    def constraint(self, condition: PrimExpr | bool) -> AbstractContextManager[None]: ...
    def bind(self, var: Var, expr: PrimExpr) -> None: ...
    def clone(self) -> Facts: ...
