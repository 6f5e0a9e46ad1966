"""WebAssembly's vectors, as loop optimisation asks for them."""

from __future__ import annotations

from mlcweb.codegen.processor.math import COMPUTED_IN_FLOAT64
from mlcweb.codegen.wasm.operators import has_vector_operator
from mlcweb.codegen.wasm.select_types import VECTOR_BYTES
from mlcweb.lower.narrow_formats import FLOAT16, WITHOUT_NUMPY
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.tir import dtype as dtypes


def has_vector_cast(source: str, target: str) -> bool:
    """Whether vectors can be converted between two types."""
    if dtypes.is_float(source) or dtypes.is_float(target):
        integer = source if dtypes.is_float(target) else target
        return dtypes.is_float(integer) or dtypes.bits(integer) <= 32
    return True


MACHINE = MachineModel(
    vector_bytes=VECTOR_BYTES,
    min_vector_bytes=VECTOR_BYTES,
    registers=24,
    register_bytes=20 * VECTOR_BYTES,
    vector_sums=4,
    jammed_vectors=1,  # the page shows what tiles bring: those of its programs are their own
    scalar_sums=4,
    shifts_alike=True,
    computed_in_float32=frozenset(format.name for format in (*WITHOUT_NUMPY, FLOAT16)),
    computed_in_float64=COMPUTED_IN_FLOAT64,
    pair_products="llvm.wasm.dot",
    has_vector_operator=has_vector_operator,
    has_vector_cast=has_vector_cast,
)
"""Engines have 16 vector registers on most processors, and put up with a few more values than that.
"""
