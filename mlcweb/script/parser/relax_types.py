"""Annotations of graph functions, where strings name symbolic extents: `R.Tensor(("n", 4))`."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax.struct_info import StructInfo
from mlcweb.script.namespace.relax import to_struct_info
from mlcweb.script.parser.expressions import BUILTINS, Evaluator
from mlcweb.script.parser.functions import unquoted
from mlcweb.tir.expr import Var as PrimVar

_UNKNOWN = object()


def annotation(node: ast.expr, evaluator: Evaluator) -> StructInfo:
    """The struct info that an annotation says."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = unquoted(node.value, node)
    value = evaluator.value(_Extents(evaluator).visit(node))
    try:
        return to_struct_info(value)
    except DiagnosticError as error:
        raise evaluator.error(error.message, node) from None


class _Extents(ast.NodeTransformer):
    """Reads the strings in shapes as expressions; names that are new become symbolic extents."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def _elements(self, node: Any) -> Any:
        node = ast.copy_location(type(node)([self._read(e) for e in node.elts], node.ctx), node)
        return self.generic_visit(node)

    visit_Tuple = _elements
    visit_List = _elements

    def visit_keyword(self, node: ast.keyword) -> Any:
        if node.arg == "value":
            new = ast.keyword(node.arg, self._read(node.value))
            return ast.copy_location(new, node)
        return self.generic_visit(node)

    def _read(self, node: ast.expr) -> ast.expr:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            self._type_variables(node)
            return node
        expression = unquoted(node.value, node)
        for part in ast.walk(expression):
            if isinstance(part, ast.Name) and part.id not in ("T", "min", "max"):
                self._define(part.id, node)
        return expression

    def _type_variables(self, node: ast.expr) -> None:
        """Python's type variables, by which TVM writes extents since 2026, become extents, and so
        do names that mean nothing else, as TVM's first scripts of graphs wrote them."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                value = self.evaluator.scopes.find(part.id, _UNKNOWN)
                if isinstance(value, TypeVar) or (value is _UNKNOWN and part.id not in BUILTINS):
                    self._define(part.id, part)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """`_` stood for what is not known."""
        if node.id == "_" and self.evaluator.scopes.find("_", _UNKNOWN) is _UNKNOWN:
            return ast.copy_location(ast.Constant(None), node)
        return node

    def _define(self, name: str, node: ast.expr) -> None:
        scopes = self.evaluator.scopes
        if not (scopes.is_script_name(name) and isinstance(scopes.find(name), PrimVar)):
            span = self.evaluator.span(node)
            scopes.bind(name, PrimVar(name, "int64", span=span), "a symbolic extent")


def declared_extents(tree: ast.FunctionDef, evaluator: Evaluator) -> None:
    """Bind what the body declares by `n = T.int64()` before the parameters are read, which may
    name it."""
    names: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name() as name], value=ast.Call() as value):
                _declared(name, value, names)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=False):
                    _declared(target, value, names)
    used = _names_in_signature(tree)
    for name, dtype in names.items():
        if name in used and not isinstance(evaluator.scopes.find(name), PrimVar):
            evaluator.scopes.bind(name, PrimVar(name, dtype), "a symbolic extent")


def _declared(target: Any, value: Any, names: dict[str, str]) -> None:
    match target, value:
        case (
            ast.Name(id=name),
            ast.Call(func=ast.Attribute(value=ast.Name(id="T"), attr=dtype), args=[], keywords=[]),
        ) if dtype in ("int32", "int64"):
            names[name] = dtype


def _names_in_signature(tree: ast.FunctionDef) -> set[str]:
    names: set[str] = set()
    annotations = [argument.annotation for argument in tree.args.args]
    for node in (*annotations, tree.returns):
        for part in ast.walk(node) if node is not None else ():
            if isinstance(part, ast.Name):
                names.add(part.id)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                names.update(_identifiers(part.value))
    return names


def _identifiers(text: str) -> set[str]:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return set()
    return {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
