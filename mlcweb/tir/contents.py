"""What is in a statement or expression. A node does not change, so it is looked through once, and
keeps what was found, whichever passes ask for it."""

from __future__ import annotations

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
    if type(node) in _LEAVES:
        return ()
    below: tuple[Access, ...] | None = getattr(node, "accesses_below", None)
    if below is None:
        accesses: list[Access] = []
        for child in node.children():
            if type(child) not in _LEAVES:
                accesses += accesses_in(child)
        below = node.accesses_below = tuple(accesses)
    return (node, *below) if isinstance(node, (BufferLoad, BufferStore)) else below


def buffers_written(node: Node) -> list[Buffer]:
    """The buffers that a statement stores to, each once."""
    return list({item.buffer: None for item in accesses_in(node) if isinstance(item, BufferStore)})


def calls_in(node: Node) -> tuple[Call, ...]:
    """The calls in a statement or expression, itself included, outer ones first."""
    if type(node) in _LEAVES:
        return ()
    below: tuple[Call, ...] | None = getattr(node, "calls_below", None)
    if below is None:
        calls: list[Call] = []
        for child in node.children():
            if type(child) not in _LEAVES:
                calls += calls_in(child)
        below = node.calls_below = tuple(calls)
    return (node, *below) if isinstance(node, Call) else below


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
