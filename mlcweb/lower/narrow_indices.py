"""Indices in fewer bits: the passes ForceNarrowIndexToInt32 and NarrowDataType.

The first makes every integer of 64 bits one of 32, and refuses a program with data of int64. The
second narrows the loops, threads and names of which all index arithmetic provably fits, and leaves
the others.
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
from mlcweb.tir.substitute import reads_memory


def _is_wide(dtype: str, narrow: str) -> bool:
    """Whether a type is one of integers with more bits than another."""
    return dtypes.kind(dtype) == "int" and dtypes.bits(dtype) > dtypes.bits(narrow)


class _Narrowing(FreshCopy):
    """A copy in which the variables that a function chooses, and what is computed of them, are of
    a narrower type."""

    def __init__(self, dtype: str, chosen: Callable[[E.Var], bool]) -> None:
        super().__init__()
        self.dtype = dtype
        self.chosen = chosen

    def is_wide(self, node: E.PrimExpr) -> bool:
        return _is_wide(node.dtype, self.dtype)

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        if var not in self._variables and self.is_wide(var) and self.chosen(var):
            self._variables[var] = E.Var(var.name, self.dtype, span=var.span)
        return super().variable(var)

    @on(E.IntImm)
    def number(self, number: E.IntImm) -> E.IntImm:
        if not self.is_wide(number):
            return number
        if not dtypes.min_value(self.dtype) <= number.value <= dtypes.max_value(self.dtype):
            raise TVMError(f"{number.value} does not fit into {self.dtype}")
        return replace(number, dtype=self.dtype)

    @on(E.Cast)
    def conversion(self, node: E.Cast) -> E.PrimExpr:
        dtype = self.dtype if self.is_wide(node) else node.dtype
        return cast(dtype, self.rewrite(node.value))

    @on(E.Call)
    def call(self, node: E.Call) -> E.PrimExpr:
        new = self.rewrite_children(node)
        if operator_name(node) == "clz" and new.args[0].dtype != node.args[0].dtype:
            bits = dtypes.bits(node.args[0].dtype) - dtypes.bits(new.args[0].dtype)
            return add(new, const(bits, node.dtype))
        if not self.is_wide(node):
            return new
        if any(map(self.is_wide, node.args)):
            return replace(new, dtype=self.dtype)
        return cast(self.dtype, new)


def narrow_all_indices(func: PrimFunc) -> PrimFunc:
    """Make int32 of all int64 in a function.

    Raises:
        TVMError: a buffer holds int64, or a number does not fit.
    """
    inside = (one for part in S.statements_in(func.body) for one in S.declared_buffers(part))
    for buffer in (*func.buffer_map.values(), *inside):
        if buffer.dtype == "int64":
            raise TVMError(
                f'ForceNarrowIndexToInt32: the buffer "{buffer.name}" holds int64, which is no '
                "index; use NarrowDataType(32)"
            )
    return _Narrowing("int32", lambda var: True).function(func)


def narrow_loops(func: PrimFunc, bits: int) -> PrimFunc:
    """Make the variables narrower of which all index arithmetic fits into `bits`: those of loops
    and threads, and names of what is computed of them."""
    dtype = f"int{bits}"
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    analyzer = Analyzer()
    chosen: set[E.Var] = set()
    names: dict[E.Var, E.PrimExpr] = {}

    def is_wide(expression: E.PrimExpr) -> bool:
        return _is_wide(expression.dtype, dtype)

    def fits(expression: E.PrimExpr) -> bool:
        if expression in names:
            return True  # where its value does
        parts = find_nodes(expression, E.PrimExpr)
        bounds = [analyzer.const_int_bound(part) for part in parts if is_wide(part)]
        return all(low <= bound.min_value and bound.max_value <= high for bound in bounds)

    for node in find_nodes(func.body, S.For, S.AttrStmt, S.LetStmt):
        if isinstance(node, S.LetStmt):
            if is_wide(node.var) and not reads_memory(node.value):
                names[node.var] = node.value
        elif (domain := _domain(node)) is not None and is_wide(domain[0]):
            analyzer.bind(*domain)
            if fits(domain[1].min) and fits(domain[1].extent):
                chosen.add(domain[0])
    chosen |= names.keys()
    expressions = list(_wide_expressions(func.body, is_wide))
    while True:
        wide = [one for one in expressions if not (fits(one) and _integers(one, is_wide) <= chosen)]
        spoilt = {var for one in wide for var in _integers(one, is_wide)} - names.keys()
        spoilt |= {var for var, value in names.items() if value in wide}
        if not spoilt & chosen:
            break
        chosen -= spoilt
    return func.with_body(_LoopNarrowing(dtype, chosen, fits).rewrite(func.body))


def _domain(node: S.For | S.AttrStmt) -> tuple[E.Var, Range] | None:
    """The variable of a loop or of launched threads, and its values."""
    if isinstance(node, S.For):
        return node.loop_var, node.domain
    if S.is_launch(node):
        return node.node.var, Range(const(0, node.value.dtype), node.value)
    return None


def _wide_expressions(node: Node, is_wide: Callable[[E.PrimExpr], bool]) -> Iterator[E.PrimExpr]:
    """The largest expressions of a wide type."""
    inside: list[Any] = [node]
    if isinstance(node, E.PrimExpr) and is_wide(node):
        yield node
        inside = list(find_nodes(node, E.BufferLoad, E.Cast))
    for part in inside:
        for child in children(part):
            yield from _wide_expressions(child, is_wide)


def _integers(expression: E.PrimExpr, is_wide: Callable[[E.PrimExpr], bool]) -> set[E.Var]:
    """The variables of a wide type in an expression, but for those in indices and conversions."""
    if isinstance(expression, E.Var):
        return {expression} if is_wide(expression) else set()
    if isinstance(expression, (E.BufferLoad, E.Cast)):
        return set()
    parts = (part for part in children(expression) if isinstance(part, E.PrimExpr))
    return {var for part in parts for var in _integers(part, is_wide)}


class _LoopNarrowing(_Narrowing):
    """Narrows chosen loops; what has to stay wide is cast from the narrow value."""

    def __init__(self, dtype: str, chosen: set[E.Var], fits: Callable[[E.PrimExpr], bool]) -> None:
        super().__init__(dtype, chosen.__contains__)
        self.loops = chosen
        self.fits = fits

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        return super().variable(var) if var in self.loops else var

    def is_narrow(self, node: E.PrimExpr) -> bool:
        return _integers(node, self.is_wide) <= self.loops and self.fits(node)

    def narrow(self, node: E.PrimExpr) -> E.PrimExpr:
        """In an index or a comparison: narrow where it fits."""
        if self.is_wide(node) and self.is_narrow(node):
            return _WithVariables(self).rewrite(node)
        return self.rewrite(node)

    def rewrite(self, node: Any) -> Any:
        reads = isinstance(node, (E.BufferLoad, E.Cast))
        if reads or not isinstance(node, E.PrimExpr) or not self.is_wide(node):
            return super().rewrite(node)
        if not _integers(node, self.is_wide) & self.loops or not self.is_narrow(node):
            return self.rewrite_children(node) if not isinstance(node, (E.Var, E.IntImm)) else node
        return cast(node.dtype, self.narrow(node))

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

    @on(S.AttrStmt)
    def attribute(self, node: S.AttrStmt) -> S.AttrStmt:
        domain = _domain(node)
        if domain is None or domain[0] not in self.loops:
            return self.rewrite_children(node)
        axis, extent = node.node, cast(self.dtype, self.narrow(node.value))
        dom = axis.dom and Range(const(0, self.dtype), extent)
        axis = replace(axis, dom=dom, var=self.variable(axis.var))
        return replace(node, node=axis, value=extent, body=self.rewrite(node.body))

    @on(S.LetStmt)
    def let(self, node: S.LetStmt) -> S.LetStmt:
        if node.var not in self.loops:
            return self.rewrite_children(node)
        value = cast(self.dtype, self.narrow(node.value))
        return replace(node, var=self.variable(node.var), value=value, body=self.rewrite(node.body))

    @on(E.Let, S.AllocBuffer, S.DeclBuffer)
    def definition(self, node: Any) -> Any:
        return self.rewrite_children(node)


class _WithVariables(_Narrowing):
    """Narrows an expression by the variables of another."""

    def __init__(self, other: _Narrowing) -> None:
        super().__init__(other.dtype, other.chosen)
        self._variables = other._variables

    @on(Buffer)
    def buffer(self, buffer: Buffer) -> Buffer:
        return buffer
