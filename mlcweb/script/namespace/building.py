"""What `T` does where Python runs its calls: in functions that a script calls, and in
`with IRBuilder():`, a call adds to what is being built.

def clear(A, n):
    for i in range(n):
        with T.If(A[i] < 0), T.Then():
            T.buffer_store(A, 0, [i])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NoReturn

from mlcweb.ir.errors import DiagnosticError
from mlcweb.script.ir_builder.base import IRBuilder
from mlcweb.script.namespace.blocks import AxisNamespace


def building(name: str, describe: Callable[..., Any]) -> Callable[..., Any]:
    """`T.name` for calls of Python: it builds where a builder is open, and else gives the
    description that a script carries out."""

    def call(*args: Any, **options: Any) -> Any:
        if not IRBuilder.is_in_scope():
            return describe(*args, **options)
        from mlcweb.script.ir_builder import tir

        return getattr(tir, name)(*args, **options)

    return update_wrapper(call, describe)


class BuildingAxes(AxisNamespace):
    """`T.axis` for calls of Python."""

    def __getattribute__(self, name: str) -> Any:
        if not IRBuilder.is_in_scope() or name.startswith("_"):
            return super().__getattribute__(name)
        from mlcweb.script.ir_builder import tir

        return getattr(tir.axis, name)


def described(function: Any) -> Any:
    """What a script carries out for a name of `T`, however it came by it."""
    return getattr(function, "__wrapped__", function)


def only_built(name: str, instead: str) -> Callable[..., NoReturn]:
    """`T.name` in the text of a script, which has statements of Python for it."""

    def call(*args: Any, **options: Any) -> NoReturn:
        raise DiagnosticError(
            f"T.{name} is for functions that a script calls; in its own text write {instead}"
        )

    return call
