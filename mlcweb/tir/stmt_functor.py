"""`tvm.tir.stmt_functor`: going through programs, and rewriting them, by functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from mlcweb.ir.dialect import also_named
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import Mutator, children
from mlcweb.ir.visitor import post_order_visit as _post_order_visit
from mlcweb.tir.arithmetic import convert
from mlcweb.tir.buffer import Buffer, BufferRegion
from mlcweb.tir.expr import Var
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute_everywhere

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]


@also_named(node="stmt")
def post_order_visit(stmt: Node, fvisit: Callable[[Any], Any]) -> None:
    """Call `fvisit` on each statement and expression of `stmt`, children first."""
    _post_order_visit(stmt, fvisit)


@also_named(node="stmt")
def pre_order_visit(stmt: Node, fvisit: Callable[[Any], object]) -> None:
    """Call `fvisit` on each statement and expression of `stmt`, parents first. What is below a node
    for which it gives False is left out."""
    pending = [stmt]
    while pending:
        node = pending.pop()
        if fvisit(node) is not False:
            pending += reversed(children(node))


def substitute(node: Any, vmap: Mapping[Var, Any]) -> Any:
    """`node` with variables replaced by expressions or numbers, also in the shapes of buffers that
    it accesses or allocates; nothing is simplified."""
    return substitute_everywhere(node, {var: convert(value) for var, value in vmap.items()})


def renew_defs(func: PrimFunc) -> PrimFunc:
    """A copy of a function with variables, buffers and blocks of its own."""
    return FreshCopy().function(func)


class _Transform(Mutator):
    """Applies one function before, another after what is below a node."""

    def __init__(
        self,
        preorder: Callable[[Any], Any] | None,
        postorder: Callable[[Any], Any] | None,
        only: Collection[str] | None,
    ) -> None:
        self.preorder = preorder
        self.postorder = postorder
        self.only = only

    def _concerns(self, node: Node) -> bool:
        cls = type(node)
        if isinstance(node, (Buffer, BufferRegion)):
            return False
        return self.only is None or cls.__name__ in self.only

    def rewrite(self, node: Any) -> Any:
        if not self._concerns(node):
            return self.rewrite_children(node)
        if self.preorder is not None:
            new = self.preorder(node)
            if new is not None:
                return new
        below = self.rewrite_children(node)
        new = None if self.postorder is None else self.postorder(below)
        return below if new is None else new


def ir_transform(
    stmt: Any,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Collection[str] | None = None,
) -> Any:
    """A program rewritten by functions.

    Args:
        stmt: the statement.
        preorder: called before what is below a node; what it gives, unless None, takes the place of
            the node, and nothing below is gone through.
        postorder: called with the node after what is below it; None keeps the node.
        only_enable: the classes to call them on, by name, such as "tir.For"; by default all.
    """
    names = None if only_enable is None else {name.rpartition(".")[2] for name in only_enable}
    return _Transform(preorder, postorder, names).rewrite(stmt)
