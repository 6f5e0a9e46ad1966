"""Calls of macros: their statements are read where they are called."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import copy
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from mlcweb.script.namespace.macros import Macro
from mlcweb.script.parser import compile_time
from mlcweb.script.parser.environment import Scopes
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Var

if TYPE_CHECKING:
    from mlcweb.script.parser.expressions import Evaluator


class Reader(Protocol):
    """What reads statements, with an evaluator for the expressions in them."""

    evaluator: Any
    scopes: Scopes
    buffers: dict[Var, Buffer]
    """Those that the script names, by their memory."""

    def statements(self, body: Sequence[ast.stmt]) -> None: ...


def expand(
    evaluator: Evaluator,
    macro: Macro,
    args: Sequence[Any],
    options: Mapping[str, Any],
    node: ast.Call,
) -> Any:
    """Read a macro's statements; what it returns is the value of the call."""
    reader = evaluator.reader
    if reader is None:
        raise evaluator.error(f"{ast.unparse(node.func)} is a macro: only a body calls it", node)
    try:
        values = macro.arguments(tuple(args), options)
    except TypeError as error:
        raise evaluator.error(f"{ast.unparse(node.func)}: {error}", node) from None
    inner = copy(evaluator)
    inner.source = macro.source
    if macro.names is not None:
        inner.scopes = Scopes(macro.names)
    *body, last = macro.tree.body
    returned = last.value if isinstance(last, ast.Return) else None
    reader.evaluator, reader.scopes = inner, inner.scopes
    inner.scopes.push()
    try:
        for name, value in values.items():
            inner.scopes.bind(name, value, f'a parameter of "{macro.tree.name}"')
        reader.statements(body if isinstance(last, ast.Return) else macro.tree.body)
        return None if returned is None else inner.operand(returned)
    finally:
        inner.scopes.pop()
        reader.evaluator, reader.scopes = evaluator, evaluator.scopes


MAKERS = ("macro", "inline")
"""The decorators that make macros."""


def local_macro(evaluator: Evaluator, tree: ast.FunctionDef) -> Macro | None:
    """The macro that a definition inside of a function makes, if it makes one."""
    for decorator in tree.decorator_list:
        maker = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(maker).rpartition(".")[2] in MAKERS:
            break
    else:
        return None
    # Python itself finds out what the parameters take.
    parameters = ast.copy_location(ast.Lambda(tree.args, ast.Constant(None)), tree)
    head = compile_time.run(evaluator, ast.fix_missing_locations(parameters))
    return Macro(tree, evaluator.source, None, signature(head))
