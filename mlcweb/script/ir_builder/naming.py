"""Giving names and places to what a script builds before it says what it is called, and words to it
for messages."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mlcweb.ir.node import replace
from mlcweb.ir.span import Span
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion


def name_buffer(buffer: Buffer, name: str) -> Buffer:
    """The buffer with a name, which its own variables take as well."""
    changes: dict[str, Any] = {"name": name}
    if not buffer.data.name:
        changes["data"] = replace(buffer.data, name=name)
    if isinstance(buffer.elem_offset, E.Var) and buffer.elem_offset.name == "_elem_offset":
        changes["elem_offset"] = replace(buffer.elem_offset, name=f"{name}_elem_offset")
    return replace(buffer, **changes)


def place_statement(statement: S.Stmt, span: Span | None) -> S.Stmt:
    """A statement built by a call of the script, with the place of the call."""
    cls: Any = type(statement)
    values = {name: getattr(statement, name) for name in cls.role_of_field}
    return cls(**values, span=span)


def describe(value: Any) -> str:
    """What a value is, for messages."""
    if isinstance(value, Buffer):
        return f'the buffer "{value.name}"' if value.name else "a buffer"
    if isinstance(value, BufferRegion):
        return f"the region {value}"
    if isinstance(value, E.PrimExpr):
        return f"the {value.dtype} expression {value}"
    if isinstance(value, ModuleType):
        # Scripts know the operators of graphs as R.
        operators = value.__name__.removeprefix("mlcweb.relax.op.")
        return f"the module {operators}" if operators == value.__name__ else f"R.{operators}"
    return arithmetic.describe(value)


def rename(value: Any, name: str) -> Any:
    """Give a name to what is being built, and return it. Nothing else knows it yet: this is the one
    place where a node changes after it was made."""
    if isinstance(value, Buffer):
        for own in (value.data, value.elem_offset):
            if isinstance(own, E.Var) and own.name.startswith(value.name or "_"):
                rest = own.name.removeprefix(value.name)
                object.__setattr__(own, "name", name + rest)
        if not value.data.name:
            object.__setattr__(value.data, "name", name)
    field = "name_hint" if hasattr(value, "name_hint") else "name"
    if hasattr(value, field):
        object.__setattr__(value, field, name)
    return value
