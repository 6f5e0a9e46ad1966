"""WebAssembly's vectors, as loop optimisation asks for them."""

from __future__ import annotations

from mlcweb.codegen.wasm.math import COMPUTED_IN_FLOAT64
from mlcweb.codegen.wasm.select_types import VECTOR_BYTES
from mlcweb.lower.optimize.machine import MachineModel, OperatorKey
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E

_VECTOR_CALLS = COMPUTED_IN_FLOAT64 | {
    "exp", "exp2", "log", "erf", "tanh", "sigmoid", "sqrt", "rsqrt", "floor", "ceil", "round",
    "nearbyint", "trunc", "fabs", "abs", "copysign", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_not", "reinterpret",
}  # fmt: skip


def has_vector_operator(operator: OperatorKey, dtype: str) -> bool:
    """Whether vectors with operands of a type have an operator."""
    if operator in (E.FloorDiv, E.FloorMod, E.Mod):
        return False
    if isinstance(operator, str):
        if operator in ("shift_left", "shift_right"):
            return True
        if operator in ("isnan", "isinf"):
            return dtype != "float16"
        return operator in _VECTOR_CALLS and dtypes.bits(dtype) != 16
    if dtypes.is_bool(dtype):
        return operator in (E.And, E.Or, E.EQ, E.NE)
    if dtypes.is_float(dtype):
        return dtypes.bits(dtype) >= 32
    if operator is E.Div:
        return False
    if operator is E.Mul:
        return dtypes.bits(dtype) > 8
    compares = operator not in (E.Add, E.Sub, E.Mul, E.EQ, E.NE)
    return not (compares and dtype == "uint64")


def has_vector_cast(source: str, target: str) -> bool:
    """Whether vectors can be converted between two types."""
    if dtypes.is_float(source) or dtypes.is_float(target):
        if "float16" in (source, target):
            return False
        integer = source if dtypes.is_float(target) else target
        return dtypes.is_float(integer) or dtypes.bits(integer) <= 32
    return True


MACHINE = MachineModel(
    vector_bytes=VECTOR_BYTES,
    min_vector_bytes=VECTOR_BYTES,
    registers=24,
    register_bytes=20 * VECTOR_BYTES,
    vector_sums=4,
    scalar_sums=2,
    shifts_alike=True,
    computed_in_float64=COMPUTED_IN_FLOAT64,
    has_vector_operator=has_vector_operator,
    has_vector_cast=has_vector_cast,
)
"""Engines have 16 vector registers on most processors, and put up with a few more values than that.
"""
