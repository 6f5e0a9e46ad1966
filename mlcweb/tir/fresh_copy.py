"""Copies of programs with variables, buffers and blocks of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, find_nodes, on, walk
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.expr import BufferLoad, Let, Var
from mlcweb.tir.function import PrimFunc

Statement = TypeVar("Statement", bound=S.Stmt)


class FreshCopy(Mutator):
    """Copies programs; each variable and buffer, defined inside or not, becomes one new object.

    Blocks get new identities, so that a schedule can hold the copy beside the original.
    """

    def __init__(self) -> None:
        self._variables: dict[Var, Var] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def function(self, func: PrimFunc) -> PrimFunc:
        """The copy of a function."""
        return replace(
            func,
            params=tuple(map(self.variable, func.params)),
            buffer_map={self.variable(p): self.buffer(b) for p, b in func.buffer_map.items()},
            body=self.rewrite(func.body),
        )

    @on(Var)
    def variable(self, var: Var) -> Var:
        """The new variable for a variable."""
        if var not in self._variables:
            self._variables[var] = Var(var.name, var.dtype, var.type_annotation, span=var.span)
        return self._variables[var]

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        """The new buffer for a buffer."""
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(self.rewrite_children(buffer))
        return self._buffers[buffer]

    @on(BufferLoad, S.BufferStore, BufferRegion, MatchBufferRegion, S.AllocBuffer, S.DeclBuffer)
    def access(self, node: Any) -> Any:
        return replace(self.rewrite_children(node), buffer=self.buffer(node.buffer))

    @on(S.For)
    def loop(self, node: S.For) -> S.For:
        return replace(self.rewrite_children(node), loop_var=self.variable(node.loop_var))

    @on(S.IterVar, Let, S.LetStmt)
    def definition(self, node: S.IterVar | Let | S.LetStmt) -> Node:
        return replace(self.rewrite_children(node), var=self.variable(node.var))

    @on(S.AttrStmt)
    def attribute(self, node: S.AttrStmt) -> S.AttrStmt:
        """What is annotated may be the iteration over a thread's index, which is defined there."""
        new = self.rewrite_children(node)
        return replace(new, node=self.rewrite(node.node)) if isinstance(node.node, Node) else new

    @on(S.Block)
    def block(self, node: S.Block) -> S.Block:
        return replace(
            self.rewrite_children(node),
            alloc_buffers=tuple(self.buffer(buffer) for buffer in node.alloc_buffers),
            annotations=self.annotation(node.annotations),
            identity=S.BlockIdentity(),
        )

    def annotation(self, value: Any) -> Any:
        """The value of an annotation, with the new objects for those that it names."""
        if isinstance(value, Node):
            return self.rewrite(value)
        if isinstance(value, Mapping):
            return {key: self.annotation(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.annotation(item) for item in value)
        return value


def each_once(module: IRModule) -> IRModule:
    """A module in which each function is one of its own: what is there by several names is copied
    for all but the first."""
    functions = dict(module.functions)
    seen: set[int] = set()
    for var, func in functions.items():
        if isinstance(func, PrimFunc) and id(func.body) in seen:
            functions[var] = FreshCopy().function(func)
        seen.add(id(getattr(func, "body", func)))
    return module.with_functions(functions)


class _OwnCopy(FreshCopy):
    """A copy whose own variables, buffers and blocks are new; what comes from outside stays."""

    def __init__(self, defined: set[Node]) -> None:
        super().__init__()
        self.defined = defined

    @on(Var)
    def variable(self, var: Var) -> Var:
        return super().variable(var) if var in self.defined else var

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        return super().buffer(buffer) if buffer in self.defined else buffer


def fresh_statement(statement: Statement) -> Statement:
    """A copy of a statement that may stand beside it: what it defines itself is new."""
    return _OwnCopy(_defined_in(statement)).rewrite(statement)


def _defined_in(statement: S.Stmt) -> set[Node]:
    """The variables and buffers that a statement defines."""
    defined: set[Node] = set()
    for node in walk(statement):
        if isinstance(node, S.For):
            defined.add(node.loop_var)
        elif isinstance(node, (S.IterVar, Let, S.LetStmt)):
            defined.add(node.var)
        elif isinstance(node, S.AllocBuffer):
            defined.update((node.buffer, node.buffer.data))
        elif isinstance(node, S.DeclBuffer):
            defined.add(node.buffer)
        elif isinstance(node, S.Block):
            defined.update(node.alloc_buffers)
            defined.update(buffer.data for buffer in node.alloc_buffers)
            for match in node.match_buffers:
                defined.add(match.buffer)
                # What the region is in terms of is there already.
                in_region = {part for side in match.source.region for part in walk(side)}
                defined.update(
                    part for part in find_nodes(match.buffer, Var) if part not in in_region
                )
    return defined


def convert_ssa(func: PrimFunc) -> PrimFunc:
    """The function where each variable is defined once; itself where that is so. What defines a
    variable again becomes a copy with variables of its own."""
    defined = {*func.params, *(buffer.data for buffer in func.buffer_map.values())}
    return func.with_body(_SingleDefinitions(defined).rewrite(func.body))


class _SingleDefinitions(Mutator):
    """`defined` are the variables that are defined so far."""

    def __init__(self, defined: set[Var]) -> None:
        self.defined = defined

    def rewrite(self, node: Any) -> Any:
        if any(var in self.defined for var in S.defined_variables(node)):
            node = fresh_statement(node)
        self.defined.update(S.defined_variables(node))
        return super().rewrite(node)
