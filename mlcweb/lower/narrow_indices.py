"""Indices in fewer bits: the passes ForceNarrowIndexToInt32 and NarrowDataType.

The first makes every integer of 64 bits one of 32, and refuses a program with data of int64. The
second narrows the loops of which all index arithmetic provably fits, and leaves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import children, find_nodes, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, cast, const
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import variables_in

_WIDE = "int64"


class _Narrowing(FreshCopy):
    """A copy in which the variables that a function chooses, and what is computed of them, are of
    a narrower type."""

    def __init__(self, dtype: str, chosen: Callable[[E.Var], bool]) -> None:
        super().__init__()
        self.dtype = dtype
        self.chosen = chosen

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        if var not in self._variables and var.dtype == _WIDE and self.chosen(var):
            self._variables[var] = E.Var(var.name, self.dtype, span=var.span)
        return super().variable(var)

    @on(E.IntImm)
    def number(self, number: E.IntImm) -> E.IntImm:
        if number.dtype != _WIDE:
            return number
        if not dtypes.min_value(self.dtype) <= number.value <= dtypes.max_value(self.dtype):
            raise TVMError(f"{number.value} does not fit into {self.dtype}")
        return replace(number, dtype=self.dtype)

    @on(E.Cast)
    def conversion(self, node: E.Cast) -> E.PrimExpr:
        dtype = self.dtype if node.dtype == _WIDE else node.dtype
        return cast(dtype, self.rewrite(node.value))

    @on(E.Call)
    def call(self, node: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(node)
        if operator_name(node) == "clz" and new.args[0].dtype != node.args[0].dtype:
            return add(new, const(dtypes.bits(_WIDE) - dtypes.bits(self.dtype), node.dtype))
        if node.dtype != _WIDE:
            return new
        if any(arg.dtype == _WIDE for arg in node.args):
            return replace(new, dtype=self.dtype)
        return cast(self.dtype, new)


def narrow_all_indices(func: PrimFunc) -> PrimFunc:
    """Make int32 of all int64 in a function.

    Raises:
        TVMError: a buffer holds int64, or a number does not fit.
    """
    inside = (one for part in S.statements_in(func.body) for one in S.declared_buffers(part))
    for buffer in (*func.buffer_map.values(), *inside):
        if buffer.dtype == _WIDE:
            raise TVMError(
                f'ForceNarrowIndexToInt32: the buffer "{buffer.name}" holds int64, which is no '
                "index; use NarrowDataType(32)"
            )
    return _Narrowing("int32", lambda var: True).function(func)


def narrow_loops(func: PrimFunc, bits: int) -> PrimFunc:
    """Make the loops over int64 narrower of which all index arithmetic fits into `bits`."""
    domains = {
        node.loop_var: node.domain
        for node in find_nodes(func.body, S.For)
        if node.loop_var.dtype == _WIDE
    }
    dtype = f"int{bits}"
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    bound_of = Analyzer(domains).const_int_bound

    def fits(expression: E.PrimExpr) -> bool:
        parts = find_nodes(expression, E.PrimExpr)
        bounds = [bound_of(part) for part in parts if part.dtype == _WIDE]
        return all(low <= bound.min_value and bound.max_value <= high for bound in bounds)

    expressions = list(_wide_expressions(func.body))
    chosen = {var for var, dom in domains.items() if fits(dom.min) and fits(dom.extent)}
    while True:
        spoilt = {
            var
            for one in expressions
            for var in variables_in(one)
            if var in chosen and not (fits(one) and _integers(one) <= chosen)
        }
        if not spoilt:
            break
        chosen -= spoilt
    return func.with_body(_LoopNarrowing(dtype, chosen, fits).rewrite(func.body))


def _wide_expressions(node: Node) -> Iterator[E.PrimExpr]:
    """The largest expressions of int64."""
    if isinstance(node, E.PrimExpr) and node.dtype == _WIDE:
        yield node
        inside = find_nodes(node, E.BufferLoad, E.Cast)
        for part in inside:
            for child in children(part):
                yield from _wide_expressions(child)
        return
    for child in children(node):
        yield from _wide_expressions(child)


def _integers(expression: E.PrimExpr) -> set[E.Var]:
    return {var for var in variables_in(expression) if var.dtype == _WIDE}


class _LoopNarrowing(_Narrowing):
    """Narrows chosen loops; what has to stay wide is cast from the narrow value."""

    def __init__(self, dtype: str, chosen: set[E.Var], fits: Callable[[E.PrimExpr], bool]) -> None:
        super().__init__(dtype, chosen.__contains__)
        self.loops = chosen
        self.fits = fits

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        return super().variable(var) if var in self.loops else var

    def narrow(self, node: E.PrimExpr) -> E.PrimExpr:
        """In an index or a comparison: narrow where it fits."""
        if node.dtype != _WIDE or not _integers(node) <= self.loops or not self.fits(node):
            return self.rewrite(node)
        return _WithVariables(self).rewrite(node)

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, E.PrimExpr) and node.dtype == _WIDE:
            if _integers(node) & self.loops:
                return cast(_WIDE, self.narrow(node))
            return self.rewrite_children(node) if not isinstance(node, (E.Var, E.IntImm)) else node
        return super().rewrite(node)

    @on(E.Cast)
    def conversion(self, node: E.Cast) -> E.PrimExpr:
        return cast(node.dtype, self.narrow(node.value))

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: Any) -> Any:
        indices = tuple(self.narrow(index) for index in node.indices)
        if isinstance(node, S.BufferStore):
            return replace(node, value=self.rewrite(node.value), indices=indices)
        return replace(node, indices=indices)

    @on(E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE)
    def comparison(self, node: Any) -> Any:
        a, b = self.narrow(node.a), self.narrow(node.b)
        if a.dtype != b.dtype:
            a, b = cast(node.a.dtype, a), cast(node.b.dtype, b)
        return replace(node, a=a, b=b)

    @on(S.For)
    def loop(self, node: S.For) -> S.For:
        if node.loop_var not in self.loops:
            return self.rewrite_children(node)
        low, extent = (cast(self.dtype, self.narrow(part)) for part in (node.min, node.extent))
        thread = node.thread_binding
        if thread is not None:
            dom = thread.dom and Range(const(0, self.dtype), extent)
            thread = replace(thread, dom=dom, var=E.Var(thread.var.name, self.dtype))
        return replace(
            node,
            loop_var=self.variable(node.loop_var),
            min=low,
            extent=extent,
            thread_binding=thread,
            body=self.rewrite(node.body),
        )

    @on(E.Let, S.LetStmt, S.AllocBuffer, S.DeclBuffer)
    def definition(self, node: Any) -> Any:
        return self.rewrite_children(node)


class _WithVariables(_Narrowing):
    """Narrows an expression by the variables of another."""

    def __init__(self, other: _Narrowing) -> None:
        super().__init__(other.dtype, other.chosen)
        self._variables = other._variables
