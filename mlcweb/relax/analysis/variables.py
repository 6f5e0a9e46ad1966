"""Which variables an expression defines and uses. Lists are in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children, walk
from mlcweb.ir.visitor import post_order_visit as _post_order
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.struct_info import StructInfo
from mlcweb.tir.expr import Var as PrimVar


def post_order_visit(expr: Node, fvisit: Callable[[E.Value], None]) -> None:
    """Call `fvisit` on every expression inside of `expr` and on itself, parts first."""

    def visit(node: Node) -> None:
        if isinstance(node, (E.Expr, GlobalVar)):
            fvisit(node)

    _post_order(expr, visit)


def _definitions(expr: Node) -> Iterator[E.Var]:
    for node in walk(expr):
        if isinstance(node, (E.VarBinding, E.MatchCast)):
            yield node.var
        elif isinstance(node, E.Function):
            yield from node.params


def _uses(expr: Node) -> Iterator[E.Var]:
    return (node for node in walk(expr) if isinstance(node, E.Var))


def bound_vars(expr: E.Expr) -> list[E.Var]:
    """The variables that are defined inside of an expression: parameters and bindings."""
    return list(dict.fromkeys(_definitions(expr)))


def used_vars(expr: Node) -> list[E.Var]:
    """The variables that are used inside of an expression."""
    return list(dict.fromkeys(_uses(expr)))


def free_vars(expr: Node) -> list[E.Var]:
    """The variables that are used inside of an expression and defined outside."""
    bound = set(_definitions(expr))
    return [var for var in used_vars(expr) if var not in bound]


def all_vars(expr: Node) -> list[E.Var]:
    """All variables of an expression."""
    return list(dict.fromkeys([*_definitions(expr), *_uses(expr)]))


def all_global_vars(expr: E.Expr) -> list[GlobalVar]:
    """The functions of the module that an expression names."""
    return list(dict.fromkeys(node for node in walk(expr) if isinstance(node, GlobalVar)))


def symbolic_vars_used(expr: Node) -> list[PrimVar]:
    """The symbolic extents in values and struct infos inside of an expression."""
    used: dict[PrimVar, None] = {}

    def visit(node: Node) -> None:
        if isinstance(node, PrimVar):
            used[node] = None
        elif isinstance(node, E.Function):
            for param in node.params:
                of_info(param.struct_info)
        elif isinstance(node, (E.VarBinding, E.MatchCast)):
            of_info(node.var.struct_info)
            if isinstance(node, E.MatchCast):
                of_info(node.struct_info)
        for child in children(node):
            visit(child)

    def of_info(info: StructInfo) -> None:
        if info is not None:
            used.update(dict.fromkeys(dims.prim_vars(info)))

    visit(expr)
    return list(used)


def defined_symbolic_vars(func: E.Function) -> list[PrimVar]:
    """The symbolic extents that a function's parameters and match_casts determine."""
    from mlcweb.relax.analysis.struct_info import definable_tir_vars_in_struct_info as definable

    defined: dict[PrimVar, None] = {}
    for node in walk(func):
        if isinstance(node, E.Function):
            for param in node.params:
                if param.struct_info is not None:
                    defined.update(dict.fromkeys(definable(param.struct_info)))
        elif isinstance(node, E.MatchCast):
            defined.update(dict.fromkeys(definable(node.struct_info)))
    return list(defined)


def free_symbolic_vars(func: E.Function) -> list[PrimVar]:
    """The symbolic extents that a function uses and does not determine."""
    defined = set(defined_symbolic_vars(func))
    return [var for var in symbolic_vars_used(func) if var not in defined]
