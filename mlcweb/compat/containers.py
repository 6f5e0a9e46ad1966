"""Classes of TVM that are others here: `isinstance` of them says what programs mean."""

from collections.abc import Mapping
from typing import Any

from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir import arithmetic
from mlcweb.tir.buffer import Range as NodeOfRange
from mlcweb.tir.constructors import constructor, make_range
from mlcweb.tir.expr import PrimExpr, Var

Array = tuple
Map = dict
String = str
ShapeTuple = tuple

Range: Any = constructor(NodeOfRange, make_range)
"""Integers from `begin` to before `end`, or from 0 to before `begin`: makes the node of
TensorIR, which has `min` and `extent`."""


def convert(value: Any, span: Any = None) -> Any:
    """Functions as they are, lists as tuples, numbers and texts as constants, and dictionaries of
    these."""
    if isinstance(value, Mapping):
        return {key: convert(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(convert(item) for item in value)
    return value if callable(value) else arithmetic.convert(value)


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
