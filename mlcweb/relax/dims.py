"""Extents and shapes: equality, simplification, substitution, and how messages write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, NodeType, children, on, walk
from mlcweb.relax.struct_info import FuncStructInfo, StructInfo, TensorStructInfo
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.substitute import substitute


def simplify(value: PrimExpr) -> PrimExpr:
    return value if isinstance(value, (IntImm, PrimVar)) else Analyzer().simplify(value)


def equal(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two extents are surely equal."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return a is b or Analyzer().can_prove_equal(a, b)


def differ(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two extents surely differ."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value != b.value
    if a is b:
        return False
    difference = Analyzer().simplify(a - b)
    return isinstance(difference, IntImm) and difference.value != 0


def same_shape(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(map(equal, a, b))


def same_tensors(a: object, b: object) -> bool:
    """Whether two struct infos are tensors of surely the same shape and element type."""
    if not isinstance(a, TensorStructInfo) or not isinstance(b, TensorStructInfo):
        return False
    if a.dtype != b.dtype or a.values is None or b.values is None:
        return False
    return same_shape(a.values, b.values)


def product(values: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements of a shape."""
    result: PrimExpr = IntImm("int64", 1)
    for value in values:
        result = result * value
    return simplify(result)


_INT64 = re.compile(r"T\.int64\((-?\d+)\)")


def extent_text(text: str) -> str:
    """The text of an extent, in which integers are int64 without saying so."""
    return _INT64.sub(r"\1", text)


def shape_text(values: Sequence[object] | None, ndim: int = -1) -> str:
    """A shape for messages: `(n, 4)`, or its number of dimensions where that is all."""
    if values is None:
        return "of an unknown shape" if ndim < 0 else f"of {ndim} dimension(s)"
    inside = ", ".join(extent_text(str(value)) for value in values)
    return f"({inside},)" if len(values) == 1 else f"({inside})"


class _Renewal(Mutator):
    """Substitutes in extents and simplifies those that change."""

    def __init__(self, values: Mapping[PrimVar, PrimExpr]) -> None:
        self.values = values

    def rewrite(self, node: NodeType) -> NodeType:
        if isinstance(node, PrimExpr):
            new = substitute(node, self.values)
            return node if new is node else simplify(new)
        return super().rewrite(node)

    @on(FuncStructInfo)
    def function(self, info: FuncStructInfo) -> FuncStructInfo:
        if info.params is None:
            return self.rewrite_children(info)
        params = self.rewrite_tuple(info.params)
        return replace(info, params=params, ret=self.rewrite(info.ret))


def substitute_extents(node: NodeType, values: Mapping[PrimVar, PrimExpr]) -> NodeType:
    """A struct info (or shape) with symbolic extents replaced, and simplified where that changes
    them."""
    return _Renewal(values).rewrite(node) if values else node


def prim_vars(node: Node) -> Iterator[PrimVar]:
    """The symbolic extents in a struct info or expression, in the order of the text."""
    for part in _everything(node):
        if isinstance(part, PrimVar):
            yield part


def _everything(node: Node) -> Iterator[Node]:
    if isinstance(node, FuncStructInfo):
        for part in (*(node.params or ()), node.ret):
            yield from _everything(part)
    elif isinstance(node, StructInfo):
        for child in children(node):
            yield from _everything(child)
    else:
        yield from walk(node)
