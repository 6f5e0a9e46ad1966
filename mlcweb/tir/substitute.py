"""Replacing variables by expressions, and buffers by buffers, throughout a tree."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import cached_property
from typing import Any, TypeVar

from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import Mutator, children, on, walk
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.expr import BinaryExpr, BufferLoad, Call, ComparisonExpr, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import AllocBuffer, Block, BufferStore, DeclBuffer

NodeType = TypeVar("NodeType", bound=Node)


class BufferMutator(Mutator):
    """Rewrites programs in which buffers become others, as `changed` says, wherever they are
    accessed, declared, allocated or matched."""

    @cached_property
    def buffers(self) -> dict[Buffer, Buffer]:
        """What buffers have become."""
        return {}

    def changed(self, buffer: Buffer) -> Buffer:
        """What becomes of a buffer, for which this is asked once."""
        raise NotImplementedError

    def buffer(self, buffer: Buffer) -> Buffer:
        """What a buffer becomes."""
        if buffer not in self.buffers:
            self.buffers[buffer] = self.changed(buffer)
        return self.buffers[buffer]

    @on(BufferLoad, BufferStore, BufferRegion, MatchBufferRegion, AllocBuffer, DeclBuffer)
    def access(self, node: Any) -> Any:
        new, buffer = self.rewrite_children(node), self.buffer(node.buffer)
        return new if buffer is node.buffer else replace(new, buffer=buffer)

    @on(Block)
    def block(self, block: Block) -> Block:
        new, buffers = self.rewrite_children(block), tuple(map(self.buffer, block.alloc_buffers))
        return new if buffers == block.alloc_buffers else replace(new, alloc_buffers=buffers)


class _Substitution(Mutator):
    def __init__(self, variables: Mapping[Var, PrimExpr], buffers: Mapping[Buffer, Buffer]) -> None:
        self.variables = variables
        self.buffers = buffers

    @on(Var)
    def variable(self, var: Var) -> PrimExpr:
        return self.variables.get(var, var)

    @on(BufferLoad, BufferStore, BufferRegion)
    def access(self, node: BufferLoad | BufferStore | BufferRegion) -> Node:
        new = self.rewrite_children(node)
        buffer = self.buffers.get(node.buffer)
        return new if buffer is None else replace(new, buffer=buffer)


def substitute(
    node: NodeType,
    variables: Mapping[Var, PrimExpr],
    buffers: Mapping[Buffer, Buffer] | None = None,
) -> NodeType:
    """`node` with variables (and buffers of accesses) replaced; nothing is simplified."""
    return _Substitution(variables, buffers or {}).rewrite(node)


class SubstitutionEverywhere(BufferMutator):
    """Replaces variables in the shapes and layouts of buffers, too."""

    def __init__(self, variables: Mapping[Var, PrimExpr]) -> None:
        self.variables = variables

    def changed(self, buffer: Buffer) -> Buffer:
        return self.rewrite_children(buffer)

    @on(Var)
    def variable(self, var: Var) -> PrimExpr:
        return self.variables.get(var, var)


def substitute_everywhere(node: NodeType, variables: Mapping[Var, PrimExpr]) -> NodeType:
    """`node` with variables replaced, in the shapes and layouts of its buffers as well."""
    return SubstitutionEverywhere(variables).rewrite(node)


def variables_in(*nodes: Node) -> set[Var]:
    """The variables that occur in nodes, definitions not counted."""
    variables: set[Var] = set()
    pending: list[Node] = [*nodes]
    for node in pending:  # which grows
        if isinstance(node, Var):
            variables.add(node)
        elif isinstance(node, (BinaryExpr, ComparisonExpr)):
            pending += (node.a, node.b)
        elif node.child_fields:
            pending += children(node)
    return variables


def uses(node: Node, var: Var) -> bool:
    """Whether a variable occurs in a node."""
    if isinstance(node, Var):
        return node is var
    pending: list[Node] = [node]
    for part in pending:  # which grows
        if part is var:
            return True
        if isinstance(part, (BinaryExpr, ComparisonExpr)):
            pending += (part.a, part.b)
        elif part.child_fields:
            pending += children(part)
    return False


def uses_any(node: Node, variables: Container[Var]) -> bool:
    """Whether one of some variables occurs in a node."""
    return any(isinstance(part, Var) and part in variables for part in walk(node))


_LEAVES = frozenset((Var, IntImm))


def reads_memory(expression: PrimExpr, constant: Callable[[Buffer], bool] | None = None) -> bool:
    """Whether a value may change when a statement runs: it loads from a buffer (but of one that is
    `constant`), or calls what may have an effect. Such a value is not the same before and after a
    store."""
    pending: list[Node] = [expression]
    for node in pending:  # which grows
        cls = type(node)
        if cls in _LEAVES:
            continue
        if isinstance(node, BufferLoad):
            if constant is None or not constant(node.buffer):
                return True
            pending += node.indices
            continue
        if isinstance(node, (BinaryExpr, ComparisonExpr)):
            pending += (node.a, node.b)
            continue
        if isinstance(node, Call) and not (isinstance(node.op, Op) and node.op.pure):
            return True
        pending += children(node)
    return False
