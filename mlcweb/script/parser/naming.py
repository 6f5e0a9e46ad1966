"""Giving names and places to what a script builds before it says what it is called."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.node import replace
from mlcweb.ir.span import Span
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer


def name_buffer(buffer: Buffer, name: str) -> Buffer:
    """The buffer with a name, which its own variables take as well."""
    changes: dict[str, Any] = {"name": name}
    if not buffer.data.name:
        changes["data"] = replace(buffer.data, name=name)
    if isinstance(buffer.elem_offset, E.Var) and buffer.elem_offset.name == "_elem_offset":
        changes["elem_offset"] = replace(buffer.elem_offset, name=f"{name}_elem_offset")
    return replace(buffer, **changes)


def place_statement(statement: S.Stmt, span: Span) -> S.Stmt:
    """A statement built by a call of the script, with the place of the call."""
    cls: Any = type(statement)
    values = {name: getattr(statement, name) for name in cls.role_of_field}
    return cls(**values, span=span)
