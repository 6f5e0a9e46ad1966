"""What a script uses while it is read: values that are no variables, and macros."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import Signature, signature
from types import FunctionType
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.script.constructs import MetaVar


@dataclass(frozen=True, slots=True)
class Macro:
    """Statements with parameters, which the parser reads where they are called."""

    tree: ast.FunctionDef
    source: Any
    names: Mapping[str, Any] | None
    """What the names in it mean; None for those of the place where it is called."""
    signature: Signature
    first: tuple[Any, ...] = ()
    """Arguments before those of a call: the object of a method."""

    def __get__(self, instance: Any, owner: type | None = None) -> Macro:
        return self if instance is None else replace(self, first=(instance,))

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise DiagnosticError(
            f'"{self.tree.name}" is a macro, which only a script calls: its statements are read '
            "there"
        )

    def arguments(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """What a call gives each parameter; a TypeError where they do not fit."""
        bound = self.signature.bind(*self.first, *args, **options)
        bound.apply_defaults()
        return bound.arguments


def macro(function: FunctionType | None = None, *, hygienic: bool = True) -> Any:
    """Make a macro of a Python function: `@T.macro`. Where it is not `hygienic`, its names mean
    what they do where it is called.

    Raises:
        ValueError: something is given that is no function.
    """
    if function is None:
        return lambda function: _macro(function, hygienic, 2)
    if not isinstance(function, FunctionType):
        raise ValueError(f"@T.macro takes hygienic=True or False, not {function!r}")
    return _macro(function, hygienic, 2)


def _macro(function: FunctionType, hygienic: bool, depth: int) -> Macro:
    from mlcweb.script.parser.environment import names_around
    from mlcweb.script.parser.source import source_of_function

    tree, source = source_of_function(function)
    names = names_around(sys._getframe(depth), [function]) if hygienic else None
    return Macro(tree, source, names, signature(function))


def inline(function: FunctionType) -> Macro:
    """Make a macro of a Python function whose names mean what they do around it: `@T.inline`."""
    return _macro(function, True, 2)


def meta_var(value: Any) -> MetaVar:
    """A value for the time while the script is read: a name that is assigned it is no variable."""
    return MetaVar(value)


def static_assert(x: Any, message: str = "") -> None:
    """A check while the script is read."""
    if not x:
        raise DiagnosticError(f"T.static_assert: {message or 'the condition is false'}")
