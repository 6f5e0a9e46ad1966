"""What is in a statement or expression. A node does not change, so it is looked through once, and
keeps what was found, whichever passes ask for it."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.node import Node
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Call, FloatImm, IntImm, StringImm, Var
from mlcweb.tir.stmt import BufferStore

Access = BufferLoad | BufferStore

_LEAVES = frozenset((Var, IntImm, FloatImm, StringImm))
_NO_VARIABLES: frozenset[Var] = frozenset()

# A node that kept a list with itself in it would be freed by the garbage collector alone.


def accesses_in(node: Node) -> tuple[Access, ...]:
    """The loads and stores in a statement or expression, itself included, outer ones first."""
    return _nodes(node, (BufferLoad, BufferStore), "accesses_below")


def buffers_written(node: Node) -> list[Buffer]:
    """The buffers that a statement stores to, each once."""
    return list({item.buffer: None for item in accesses_in(node) if isinstance(item, BufferStore)})


def calls_in(node: Node) -> tuple[Call, ...]:
    """The calls in a statement or expression, itself included, outer ones first."""
    return _nodes(node, Call, "calls_below")


def _nodes(node: Node, kinds: type | tuple[type, ...], kept_in: str) -> tuple[Any, ...]:
    """The nodes of some classes in a node, itself included, outer ones first. Those below it are
    kept in a field of it."""
    if type(node) in _LEAVES:
        return ()
    below: tuple[Any, ...] | None = getattr(node, kept_in, None)
    if below is None:
        nodes: list[Any] = []
        for child in node.children():
            if type(child) not in _LEAVES:
                nodes += _nodes(child, kinds, kept_in)
        below = tuple(nodes)
        setattr(node, kept_in, below)
    return (node, *below) if isinstance(node, kinds) else below


def variables_used(node: Node) -> frozenset[Var]:
    """The variables that occur in a statement or expression, definitions not counted."""
    if isinstance(node, Var):
        return frozenset((node,))
    variables: frozenset[Var] | None = getattr(node, "variables_used", None)
    if variables is None:
        variables = _NO_VARIABLES
        for child in node.children():
            used = variables_used(child)
            variables = used if variables <= used else variables | used
        node.variables_used = variables
    return variables
