"""Integers of 64 bits in a language whose integers have 32: which kernels compute the same there.

Sums, differences and products of the low 32 bits are the low 32 bits of the result, so that it is
the last value alone that has to fit: an index always does, since no array of such a GPU has 2**31
elements. What compares, divides or converts needs operands that fit themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import Visitor, find_nodes, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const
from mlcweb.tir.operators import key_of, operands_of

_WIDE = "int64"
_LOW, _HIGH = dtypes.min_value("int32"), dtypes.max_value("int32")

_MODULAR = (E.Add, E.Sub, E.Mul, "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
"""Operators whose low bits depend on the low bits of their operands alone."""


def is_wide(kernel: DeviceKernel) -> bool:
    """Whether a kernel computes with integers of 64 bits."""
    variables = (*kernel.scalars, *kernel.indices)
    expressions = find_nodes(kernel.body, E.PrimExpr)
    return any(node.dtype == _WIDE for node in (*variables, *expressions))


def check_integers_fit(
    kernel: DeviceKernel, language: str, scalars: Mapping[E.Var, int | float | bool]
) -> None:
    """Refuse a kernel whose integers of 64 bits do not all fit into 32, for values of its scalars.

    Raises:
        TVMError: names an integer that may not fit, and what it may come to.
    """
    for var, value in scalars.items():
        if var.dtype == _WIDE and not _LOW <= value <= _HIGH:
            raise TVMError(_refusal(var, f"is {value}", language), var.span)
    analyzer = Analyzer()
    for var, value in scalars.items():
        if dtypes.is_integer(var.dtype):
            analyzer.bind(var, const(int(value), var.dtype))
    for var, domain in kernel.domains.items():
        analyzer.bind(var, domain)
    _Check(analyzer, language).visit(kernel.body)


def _refusal(expression: E.PrimExpr, why: str, language: str) -> str:
    return (
        f'"{expression}" is int64 and {why}, beyond the 32 bits that integers of {language} have; '
        "compute it in int32, or tile it so that it stays small"
    )


class _Check(Visitor):
    def __init__(self, analyzer: Analyzer, language: str) -> None:
        self.analyzer = analyzer
        self.language = language

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        if loop.loop_var.dtype == _WIDE:
            self.value(loop.min)
            self.value(self.analyzer.simplify(loop.min + loop.extent))
        self.analyzer.bind(loop.loop_var, loop.domain)
        self.visit_children(loop)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> None:
        self.value(let.value)
        if dtypes.is_integer(let.var.dtype):
            self.analyzer.bind(let.var, let.value)
        self.visit(let.body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        with self.analyzer.constraint(branch.condition):
            self.visit(branch.then_case)
        if branch.else_case is not None:
            self.visit(branch.else_case)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: Any) -> None:
        for index in node.indices:
            self.low_bits(index)
        if isinstance(node, S.BufferStore):
            self.value(node.value)

    def visit(self, node: Any) -> None:
        if isinstance(node, E.PrimExpr) and type(node) is not E.BufferLoad:
            self.value(node)
        else:
            super().visit(node)

    def value(self, expression: E.PrimExpr) -> None:
        """An expression whose value is needed, not only its low bits."""
        if expression.dtype == _WIDE:
            bound = self.analyzer.const_int_bound(expression)
            if bound.min_value < _LOW or bound.max_value > _HIGH:
                ends = f"may be {bound.min_value} to {bound.max_value}"
                raise TVMError(_refusal(expression, ends, self.language), expression.span)
        self.low_bits(expression)

    def low_bits(self, expression: E.PrimExpr) -> None:
        """An expression whose low bits are needed."""
        key, operands = key_of(expression), operands_of(expression)
        if isinstance(expression, E.BufferLoad):
            self.access(expression)
        elif isinstance(expression, E.Cast):
            narrows = dtypes.is_integer(expression.dtype) and dtypes.bits(expression.dtype) <= 32
            (self.low_bits if narrows else self.value)(expression.value)
        elif isinstance(expression, E.IntImm) and expression.dtype == _WIDE:
            if not _LOW <= expression.value <= _HIGH:
                raise TVMError(_refusal(expression, "is", self.language), expression.span)
        elif isinstance(expression, E.Let):
            self.value(expression.value)
            self.analyzer.bind(expression.var, expression.value)
            self.low_bits(expression.body)
        elif key in (E.Select, "if_then_else"):
            self.value(operands[0])
            for part in operands[1:]:
                self.low_bits(part)
        else:
            if key in ("shift_left", "shift_right") and expression.dtype == _WIDE:
                self.shift(operands[1])
            self.counted(key, expression, operands)
            inner = self.low_bits if key in _MODULAR else self.value
            for part in operands:
                inner(part)

    def counted(self, key: Any, expression: E.PrimExpr, operands: list[Any]) -> None:
        """What counts bits, of which there are 64."""
        if key == "clz" and operands[0].dtype == _WIDE:
            raise TVMError(_refusal(expression, "counts 64 bits", self.language), expression.span)
        if key == "popcount" and self.analyzer.const_int_bound(operands[0]).min_value < 0:
            if expression.dtype == _WIDE:
                why = "may be negative, where it has more bits"
                raise TVMError(_refusal(operands[0], why, self.language), expression.span)

    def shift(self, amount: E.PrimExpr) -> None:
        if self.analyzer.const_int_bound(amount).max_value > 31:
            raise TVMError(_refusal(amount, "may shift by more than 31", self.language))
