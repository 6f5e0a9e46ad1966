"""What selecting the instructions of a function comes to on any processor."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, TypeGuard

from mlcweb.codegen.processor.checks import Check
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import walk
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.operators import DIVISIONS


class UnsupportedError(TVMError):
    """A program uses something for which a target has no instructions (yet)."""


CHEAP = 12
"""Values of up to so many nodes are computed and dropped rather than jumped over."""


def is_cheap(expression: E.PrimExpr) -> bool:
    """Whether a value may be computed although it is not needed: it cannot fail, and is small."""
    count = 0
    nodes: Iterator[Any] = walk(expression)
    for node in nodes:
        count += 1
        if type(node) in DIVISIONS and not dtypes.is_float(node.dtype):
            if not is_positive(node.b):
                return False
        if isinstance(node, E.BufferLoad) and node.buffer.scope() != REGISTER_SCOPE:
            return False
        if isinstance(node, (E.Call, E.Let)):
            return False
    return count <= CHEAP


def is_positive(divisor: E.PrimExpr) -> bool:
    """Whether a divisor is a constant above zero."""
    return isinstance(divisor, E.IntImm) and divisor.value > 0


def is_unsigned(dtype: str) -> bool:
    """Whether numbers of a type are compared and widened without a sign."""
    return dtypes.kind(dtype) in ("uint", "bool", "handle")


def is_contiguous(index: E.PrimExpr) -> bool:
    """Whether an index names elements next to each other."""
    return isinstance(index, E.Ramp) and is_const_int(index.stride, 1)


def is_every_other(index: E.PrimExpr) -> TypeGuard[E.Ramp]:
    """Whether an index names every second element."""
    return isinstance(index, E.Ramp) and is_const_int(index.stride, 2)


def every_other(lanes: int) -> list[tuple[int, int]]:
    """Every second element in two vectors, the first of which begins at the first element and the
    second of which ends at the last, so that neither reaches further: the vector, and the lane."""
    elements = range(0, 2 * lanes, 2)
    return [(0, n) if n < lanes else (1, n - lanes + 1) for n in elements]


def allocated_bytes(allocation: S.AllocBuffer) -> int:
    """The size of a local buffer; an UnsupportedError where it is not constant."""
    buffer = allocation.buffer
    shape = constant_shape(buffer)
    if shape is None:
        raise UnsupportedError(
            f'The local buffer "{buffer.name}" has a size that is not constant', allocation.span
        )
    return prod(shape) * dtypes.size_in_bytes(buffer.dtype)


def check_of(statement: S.AssertStmt) -> Check:
    """What an assertion checks."""
    message = statement.message
    text = message.value if isinstance(message, E.StringImm) else str(message)
    return Check(message=text, span=statement.span, error_kind=statement.error_kind)
