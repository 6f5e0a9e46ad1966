"""Which buffers a piece of a function reads and writes, and which of them may share memory."""

from __future__ import annotations

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import walk
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc

Access = E.BufferLoad | S.BufferStore

REGISTER_SCOPE = "register"
"""The storage scope of buffers that code generators keep in registers: each access names constant
elements, and accesses to overlapping elements have the same extent or are single elements of it."""


def accesses_in(node: Node) -> list[Access]:
    """The loads and stores in a statement or expression."""
    return [item for item in walk(node) if isinstance(item, (E.BufferLoad, S.BufferStore))]


def may_alias(a: Buffer, b: Buffer, func: PrimFunc) -> bool:
    """Whether two buffers may share memory: the same data, or two parameters of a function that is
    not declared free of aliases."""
    if a.data is b.data:
        return True
    if func.attrs.get("tir.noalias"):
        return False
    parameters = {buffer.data for buffer in func.parameter_buffers}
    return a.data in parameters and b.data in parameters


def written_buffers(node: Node) -> list[Buffer]:
    """The buffers that a statement stores to, each once."""
    return list({item.buffer: None for item in walk(node) if isinstance(item, S.BufferStore)})


def has_effects(node: Node) -> bool:
    """Whether a statement calls anything that may do more than compute its value."""
    return any(
        isinstance(item, E.Call) and not getattr(item.op, "pure", False) for item in walk(node)
    )
