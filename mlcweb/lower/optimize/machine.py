"""What loop optimisation is told of the machine for which it optimises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlcweb.tir import dtype as dtypes
from mlcweb.tir.operators import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineModel:
    """The vectors, registers and operators of a machine; the code generator of a target makes one.

    Attributes:
        vector_bytes: The size of a vector.
        min_vector_bytes: The size of the shortest vectors that a loop with few iterations becomes.
        registers: How many vectors or scalars a loop may keep in registers.
        register_bytes: A local buffer up to this size is meant to live in registers.
        vector_sums: Long accumulations go on in so many vectors, since each step of one waits for
            the one before.
        jammed_vectors: The sums of neighbouring iterations go on side by side in so many vectors.
        scalar_sums: As many scalar sums of neighbouring iterations go on side by side.
        shifts_alike: Whether all lanes of a vector are shifted by the same amount.
        computed_in_float64: Functions computed in float64 for float32, too: they take its room.
        computed_in_float32: Element types that the machine lacks. Their numbers take the room of
            float32 in registers, and have its operators.
        split_operations: By so many operations, or by half, may a function grow where loops are
            split at conditions. The compiler behind takes its time for each of them.
        unrolled_operations: By so many operations, or by half, where a pragma allows to unroll.
        pair_products: The instruction, by its name in LLVM, that multiplies two vectors of int16
            and adds neighbours, in int32; "" where there is none, or the code generator finds it.
        has_vector_operator: Whether vectors with operands of an element type have an operator.
        has_vector_cast: Whether vectors are converted from one element type to another.
    """

    vector_bytes: int
    min_vector_bytes: int
    registers: int
    register_bytes: int
    vector_sums: int
    jammed_vectors: int
    scalar_sums: int
    shifts_alike: bool = False
    computed_in_float64: frozenset[str] = frozenset()
    computed_in_float32: frozenset[str] = frozenset()
    split_operations: int = 450
    unrolled_operations: int = 2500
    pair_products: str = ""
    has_vector_operator: Callable[[Key, str], bool] = lambda operator, dtype: True
    has_vector_cast: Callable[[str, str], bool] = lambda source, target: True

    def emulates(self, dtype: str) -> bool:
        """Whether numbers of a type are computed in float32."""
        return dtypes.element_of(dtype) in self.computed_in_float32

    def size_of(self, dtype: str) -> int:
        """The bytes that an element takes in registers."""
        element = "float32" if self.emulates(dtype) else dtypes.element_of(dtype)
        return dtypes.size_in_bytes(element)

    def vectors_have(self, operator: Key, dtype: str) -> bool:
        """Whether vectors with operands of an element type have an operator, if only by that of
        float32."""
        return self.has_vector_operator(operator, "float32" if self.emulates(dtype) else dtype)
