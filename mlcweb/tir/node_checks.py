"""What the public node classes refuse: nodes that no program can have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer


class ConstructionError(DiagnosticError, TypeError, ValueError):
    """A node cannot be made of what it is given. TVM raises an InternalError, a TypeError or a
    ValueError; which one depends on the node, and on TVM's version."""


def fault_of(node: Node) -> str:
    """Why no program can have a node, "" where one can."""
    check = _CHECKS.get(type(node))
    return check(node) if check else ""


def fault_of_constant(value: float, dtype: str) -> str:
    """Why a type has no such constant."""
    if dtypes.kind(dtype) not in ("int", "uint", "bool", "float", "bfloat"):
        return f"{dtype} has no constants"
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    if math.isfinite(value) and not low <= value <= high:
        return f"{value} is beyond {dtype}, which is from {low} to {high}"
    return ""


def _constant(of_type: Callable[[str], bool], kind: str) -> Callable[[Any], str]:
    def check(node: Any) -> str:
        if dtypes.lane_count(node.dtype) != 1 or not of_type(node.dtype):
            return f"{node.dtype} is no type of {kind}"
        return fault_of_constant(node.value, node.dtype)

    return check


def _is_integral(dtype: str) -> bool:
    return dtypes.is_integer(dtype) or dtypes.is_bool(dtype)


def _conditions(*names: str) -> Callable[[Any], str]:
    def check(node: Any) -> str:
        types = [getattr(node, name).dtype for name in names]
        return next((f"{t} is no condition" for t in types if not dtypes.is_bool(t)), "")

    return check


def _vector(name: str) -> Callable[[Any], str]:
    def check(node: Any) -> str:
        if isinstance(node.lanes, int) and node.lanes <= 1:
            return f"a vector has more than one lane, not {node.lanes}"
        element = getattr(node, name).dtype
        return (
            f"a vector is of scalars, not of {element}" if dtypes.lane_count(element) != 1 else ""
        )

    return check


def _shuffle(node: E.Shuffle) -> str:
    if not node.vectors or not node.indices:
        return "it takes vectors and indices"
    types = sorted({dtypes.element_of(vector.dtype) for vector in node.vectors})
    return f"its vectors are of one type, not of {' and '.join(types)}" if len(types) > 1 else ""


def _let(node: E.Let) -> str:
    types = node.var.dtype, node.value.dtype
    return "" if types[0] == types[1] else f"a {types[0]} cannot be a {types[1]}"


def _cast(node: E.Cast) -> str:
    old, new = node.value.dtype, node.dtype
    same = dtypes.lane_count(old) == dtypes.lane_count(new)
    return "" if same else f"{old} has not the lanes of {new}"


def _access(buffer: Buffer, indices: Sequence[E.PrimExpr]) -> str:
    if len(indices) != len(buffer.shape):
        return f'buffer "{buffer.name}" has {len(buffer.shape)} dimension(s), not {len(indices)}'
    if any(dtypes.lane_count(index.dtype) != 1 for index in indices[:-1]):
        return "only the last index may be a vector"
    return ""


def _store(node: S.BufferStore) -> str:
    element = E.BufferLoad(node.buffer, node.indices).dtype
    return _access(node.buffer, node.indices) or (
        "" if node.value.dtype == element else f"a {node.value.dtype} is stored where {element} is"
    )


def _for(node: S.For) -> str:
    types = node.min.dtype, node.extent.dtype
    return next((f"a loop is over integers, not {t}" for t in types if not _is_integral(t)), "")


def _seq(node: S.SeqStmt) -> str:
    return "" if len(node.seq) > 1 else "it is of two statements and more"


_CHECKS: dict[type[Node], Callable[[Any], str]] = {
    E.IntImm: _constant(_is_integral, "integers"),
    E.FloatImm: _constant(dtypes.is_float, "floats"),
    E.And: _conditions("a", "b"),
    E.Or: _conditions("a", "b"),
    E.Not: _conditions("a"),
    E.Select: _conditions("condition"),
    S.AssertStmt: _conditions("condition"),
    E.Ramp: _vector("base"),
    E.Broadcast: _vector("value"),
    E.Shuffle: _shuffle,
    E.Let: _let,
    E.Cast: _cast,
    E.BufferLoad: lambda node: _access(node.buffer, node.indices),
    S.BufferStore: _store,
    S.For: _for,
    S.SeqStmt: _seq,
}
