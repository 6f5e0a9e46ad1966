"""Scalars that change: names that a script assigns again in a loop or a branch.

Such a name stands for a local buffer of one element. Any other keeps its value, also where it is
assigned again in the same indented block: then the rest of the block sees another value.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlcweb.script.constructs import Declaration
from mlcweb.script.namespace.types import make_buffer
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.stmt import AllocBuffer, store_to

if TYPE_CHECKING:
    from mlcweb.script.parser.statements import StatementParser


def changing_names(body: Sequence[ast.stmt], around: Sequence[str] = ()) -> set[str]:
    """The names that are assigned again in a deeper block, or by `x += …`. `around` are those that
    have a value before the statements."""
    changes: set[str] = set()
    _read(body, set(), set(around), changes)
    return changes


def _read(body: Sequence[ast.stmt], outer: set[str], own: set[str], changes: set[str]) -> None:
    """Go through a block; `outer` has names from outside of it, and `own` those that are the
    block's."""

    def assigned(target: ast.expr) -> None:
        names = _names_in(target)
        changes.update(names & outer - own)
        own.update(names)

    for node in body:
        if isinstance(node, ast.Assign):
            assigned(node.targets[0])
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            assigned(node.target)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            changes.add(node.target.id)
        elif isinstance(node, ast.For) and _meta(node.iter):
            _read(node.body, outer, own, changes)  # as if written out
        elif isinstance(node, (ast.For, ast.While, ast.With, ast.If)):
            inside = outer | own | _names_in(node.target if isinstance(node, ast.For) else None)
            for part in (node.body, getattr(node, "orelse", [])):
                _read(part, inside, set(), changes)


def _names_in(target: ast.expr | None) -> set[str]:
    """The names that get a value where a target is assigned to."""
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, ast.Starred):
        return _names_in(target.value)
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else ()
    return {name for part in parts for name in _names_in(part)}


def _meta(values: ast.expr) -> bool:
    """Whether Python goes through the values of a loop while the script is read."""
    if not isinstance(values, ast.Call):
        return False
    name = getattr(values.func, "attr", getattr(values.func, "id", ""))
    return name == "meta_var" or any(map(_meta, values.args))


def begin(self: StatementParser, name: str, value: E.PrimExpr, node: Any) -> None:
    """A scalar that changes, from its first value on."""
    declaration = Declaration(make_buffer((1,), value.dtype, scope="local"), AllocBuffer)
    buffer = self.define(name, declaration, node)
    load = E.BufferLoad(buffer, (arithmetic.const(0),), span=self.span(node))
    self.scalars[load] = buffer
    self.scopes.bind(name, load, f'the scalar "{name}"')
    change(self, load, value, node)


def change(self: StatementParser, load: E.BufferLoad, value: E.PrimExpr, node: Any) -> None:
    """Another value of a scalar."""
    value = self.stored(value, load.buffer.dtype, load.buffer, node)
    self.emit(store_to(load, value, self.span(node)))


def assign(self: StatementParser, name: str, value: Any, node: Any) -> bool:
    """Carry out `name = value` where it begins or changes a scalar; False where it does not."""
    if not isinstance(value, (bool, int, float, E.PrimExpr)):
        return False
    if isinstance(value, E.Var) and not value.name:  # a declaration, as of n = T.int32()
        return False
    current = self.scopes.find(name)
    if isinstance(current, E.BufferLoad) and current in self.scalars:
        change(self, current, arithmetic.convert(value), node)
        return True
    if name not in self.changing:
        return False
    if isinstance(current, (int, float, E.PrimExpr)) and self.scopes.is_from_outside(name):
        what = self.scopes.origin(name) or "a number"
        dtype = arithmetic.convert(current).dtype
        raise self.error(
            f'"{name}" is {what}, which keeps its value. What changes in a loop or a branch is '
            f"declared before it by another name, or with its type: `{name}: T.{dtype} = …`",
            node,
        )
    begin(self, name, arithmetic.convert(value), node)
    return True
