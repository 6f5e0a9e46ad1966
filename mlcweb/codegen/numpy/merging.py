"""Index expressions as iterators of their own.

Where two iterators occur only together, always as ``vi_outer * 16 + vi_inner``, that sum is the
better axis: it runs through a plain range, and what it indexes is a slice.
"""

from __future__ import annotations

from dataclasses import replace as with_fields

from mlcweb.arith import same_expression
from mlcweb.codegen.numpy.leaves import Leaf
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.substitute import substitute, variables_in


def with_merged_indices(leaf: Leaf) -> Leaf | None:
    """The same store with new iterators for its index expressions; None where nothing is gained or
    an iterator occurs in different expressions."""
    merger = _Merger()
    try:
        statement = merger.rewrite(leaf.statement)
    except _Mixed:
        return None
    if not merger.merged:
        return None
    new = {var: substitute(index, leaf.bindings) for index, var in merger.merged}
    return with_fields(leaf, statement=statement, bindings={**leaf.bindings, **new})


class _Mixed(Exception):
    """An iterator occurs in two ways."""


class _Merger(Mutator):
    def __init__(self) -> None:
        self.merged: list[tuple[E.PrimExpr, E.Var]] = []
        self.place_of: dict[E.Var, E.Var] = {}

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        self.claim(var, var)
        return var

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        changes = {"value": self.rewrite(node.value)} if isinstance(node, S.BufferStore) else {}
        return replace(node, indices=tuple(self.index(i) for i in node.indices), **changes)

    def index(self, index: E.PrimExpr) -> E.PrimExpr:
        variables = variables_in(index)
        if isinstance(index, E.Var) or not variables:
            return self.rewrite(index)
        merged_var = next((new for old, new in self.merged if same_expression(old, index)), None)
        if merged_var is None:
            name = "_".join(sorted(var.name for var in variables))
            merged_var = E.Var(name, index.dtype)
            self.merged.append((index, merged_var))
        for var in variables:
            self.claim(var, merged_var)
        return merged_var

    def claim(self, var: E.Var, place: E.Var) -> None:
        """Say where an iterator occurs; it may be only one place."""
        if self.place_of.setdefault(var, place) is not place:
            raise _Mixed(var)
