"""Classes of TVM that are others here: `isinstance` of them says what programs mean."""

from abc import ABCMeta
from collections.abc import Mapping
from typing import Any

from mlcweb.ir.array import Array
from mlcweb.ir.node import Node
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.runtime.ndarray import NDArray
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Range as NodeOfRange
from mlcweb.tir.constructors import constructor, make_range
from mlcweb.tir.expr import PrimExpr, Var

Map = dict
String = str
ShapeTuple = tuple

Range: Any = constructor(NodeOfRange, make_range)
"""Integers from `begin` to before `end`, or from 0 to before `begin`: makes the node of
TensorIR, which has `min` and `extent`."""


CmpExpr = ABCMeta("CmpExpr", (), {"__doc__": "Comparisons of two values."})
LogicalExpr = ABCMeta("LogicalExpr", (), {"__doc__": "`and`, `or` and `not` of conditions."})
BinaryOpExpr = ABCMeta("BinaryOpExpr", (), {"__doc__": "Arithmetic on two values of one type."})
for _base, _classes in {
    CmpExpr: (E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE),
    LogicalExpr: (E.And, E.Or, E.Not),
    BinaryOpExpr: (
        E.Add, E.Sub, E.Mul, E.Div, E.Mod, E.FloorDiv, E.FloorMod, E.Min, E.Max,
    ),
}.items():  # fmt: skip
    for _class in _classes:
        _base.register(_class)


class ObjectConvertible:
    """What stands for an expression, which `asobject()` gives."""

    def asobject(self) -> PrimExpr:
        raise NotImplementedError(f"{type(self).__name__} has no asobject()")


def py_str(value: bytes) -> str:
    """The text of bytes."""
    return value.decode()


def convert(value: Any, span: Any = None) -> Any:
    """Lists as arrays, dictionaries of what they hold converted, `a == b` as the expression;
    numbers, texts, nodes and functions as they are, as in TVM since 2025."""
    if isinstance(value, Mapping):
        return {key: convert(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return Array([convert(item) for item in value])
    if value is None or callable(value) or isinstance(value, (str, int, float, Node, NDArray)):
        return value
    return arithmetic.convert(value)


def is_prim_expr(value: Any) -> bool:
    """Whether a value is an expression of TensorIR."""
    return isinstance(value, PrimExpr)


def is_prim_var(value: Any) -> bool:
    """Whether a value is a variable of TensorIR."""
    return isinstance(value, Var)


def _tensor_of(ndim: int = -1, dtype: str | None = "float32", span: Any = None) -> TensorStructInfo:
    return TensorStructInfo(None, dtype, ndim=ndim, span=span)


DynTensorType: Any = constructor(TensorStructInfo, _tensor_of, "DynTensorType")
"""A tensor of so many dimensions, as it was called until 2024."""
