"""Walking and rewriting TensorIR by subclassing, with TVM's method names.

A subclass defines methods for the nodes it cares about: `visit_for_`, `visit_buffer_load_`, …
What it does not define walks through. Inside, `visit_stmt` and `visit_expr` find the method of a
node, and the methods of the base class (`super().visit_for_(op)`) visit what is below one.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, TypeVar

from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import Mutator, children
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.operators import NODE_OPERATORS
from mlcweb.tir.reduction import Reduce

Class = TypeVar("Class", bound=type)

_STATEMENTS = (
    S.AttrStmt, S.IfThenElse, S.LetStmt, S.For, S.While, S.AllocBuffer, S.DeclBuffer,
    S.BufferStore, S.AssertStmt, S.SeqStmt, S.Evaluate, S.Block, S.BlockRealize,
)  # fmt: skip
_EXPRESSIONS = (
    *NODE_OPERATORS, E.Var, E.BufferLoad, E.Let, E.Call, Reduce, E.Ramp, E.Broadcast, E.Shuffle,
    E.IntImm, E.FloatImm, E.StringImm,
)  # fmt: skip


def _method_name(cls: type[Node]) -> str:
    """`IfThenElse` → `visit_if_then_else_`, `EQ` → `visit_eq_`."""
    return f"visit_{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', cls.__name__).lower()}_"


METHODS: dict[type, str] = {cls: _method_name(cls) for cls in (*_STATEMENTS, *_EXPRESSIONS)} | {
    S.AllocBuffer: "visit_allocate_",
}
"""A class of nodes -> the method that visits it."""


def visitor(cls: Class) -> Class:
    """Marks a subclass of `PyStmtExprVisitor`, as TVM asks for."""
    return checked_subclass(cls, PyStmtExprVisitor)


def mutator(cls: Class) -> Class:
    """Marks a subclass of `PyStmtExprMutator`, as TVM asks for."""
    return checked_subclass(cls, PyStmtExprMutator)


def checked_subclass(cls: Class, base: type) -> Class:
    """A class, which is one of a base; a TypeError for others."""
    if not issubclass(cls, base):
        raise TypeError(f"{cls.__name__} must be a subclass of {base.__name__}")
    return cls


class _Functor:
    """Finds the method of a node; `below` is what the methods of the base class do."""

    methods: ClassVar[dict[type, str]] = METHODS

    def __init_subclass__(cls) -> None:
        if _Functor in cls.__bases__:
            for name in METHODS.values():
                setattr(cls, name, lambda self, op: self.below(op))

    def visit_stmt(self, stmt: Any) -> Any:
        """Visit a statement by the method of its class."""
        return self._visit(stmt)

    def visit_expr(self, expr: Any) -> Any:
        """Visit an expression by the method of its class."""
        return self._visit(expr)

    def below(self, node: Any) -> Any:
        raise NotImplementedError

    def _visit(self, node: Any) -> Any:
        name = METHODS.get(type(node))
        return self.below(node) if name is None else getattr(self, name)(node)

    def _through(self, node: Any) -> Any:
        """Visit a child; what is neither a statement nor an expression has no method."""
        if isinstance(node, S.Stmt):
            return self.visit_stmt(node)
        return self.visit_expr(node) if isinstance(node, E.PrimExpr) else self.below(node)


class PyStmtExprVisitor(_Functor):
    """Walks through a program. Methods return nothing."""

    def below(self, node: Any) -> None:
        if not isinstance(node, Buffer):
            try:
                for child in children(node):
                    self._through(child)
            except TOO_DEEP:
                raise nests_too_deep("walked") from None


class PyStmtExprMutator(_Functor):
    """Rewrites a program: each method returns what takes the place of its node. What does not
    change is returned as the same object."""

    def below(self, node: Any) -> Any:
        return _Children(self).rewrite_children(node) if not isinstance(node, Buffer) else node


class _Children(Mutator):
    """Has what is below a node rewritten by the methods of a functor."""

    def __init__(self, functor: PyStmtExprMutator) -> None:
        self.functor = functor

    def rewrite(self, node: Any) -> Any:
        return self.functor._through(node)
