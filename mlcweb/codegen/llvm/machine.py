"""The processors that code is made for, and what loop optimisation is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mlcweb.codegen.llvm.operators import has_vector_operator
from mlcweb.codegen.processor.math import COMPUTED_IN_FLOAT64
from mlcweb.lower.narrow_formats import FLOAT16, WITHOUT_NUMPY, NarrowFormat
from mlcweb.lower.optimize.machine import MachineModel


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor by LLVM's names, and the facts about it that shape the loops.

    Attributes:
        triple: The kind of machine: processor family, maker, system.
        cpu: The model; "" for any of its family.
        features: What is switched on and off besides: "+avx2,-fma".
        vector_bytes: The size of its vectors.
        registers: How many vectors fit into registers.
        fuses: Whether it has an instruction for a product and a sum.
        has_half: Whether it converts 16-bit floats.
        instructions: The features that it has of those that
            `mlcweb/lower/expand_instructions.py` knows.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    fuses: bool
    has_half: bool
    instructions: frozenset[str] = frozenset()

    @property
    def emulated(self) -> tuple[NarrowFormat, ...]:
        """The float types that it computes in float32."""
        return WITHOUT_NUMPY if self.has_half else (*WITHOUT_NUMPY, FLOAT16)


@lru_cache(maxsize=64)
def machine_model(processor: Processor) -> MachineModel:
    """What loop optimisation is told of a processor."""
    length, registers = processor.vector_bytes, processor.registers
    return MachineModel(
        vector_bytes=length,
        min_vector_bytes=min(length, 16),
        registers=registers,
        register_bytes=registers * length,
        vector_sums=4,
        jammed_vectors=8,
        scalar_sums=8,
        split_operations=250,
        unrolled_operations=1200,
        computed_in_float32=frozenset(format.name for format in processor.emulated),
        computed_in_float64=COMPUTED_IN_FLOAT64,
        has_vector_operator=has_vector_operator,
    )
