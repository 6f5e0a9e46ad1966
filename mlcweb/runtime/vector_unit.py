"""The vectors of the processor that a target makes code for, as schedules are told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlcweb.runtime.build import options_of
from mlcweb.runtime.target import Target
from mlcweb.tir import dtype as dtypes


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """Vectors of so many bytes, and how many of them fit into registers."""

    vector_bytes: int
    registers: int

    def lanes(self, dtype: str = "float32") -> int:
        """The elements of a vector."""
        return max(1, self.vector_bytes // dtypes.size_in_bytes(dtype))


WASM = VectorUnit(vector_bytes=16, registers=16)
"""Vectors of WebAssembly, and the registers that engines have for them on most processors."""


def vector_unit(target: Target | None) -> VectorUnit:
    """The vectors of a target, by default the best for this machine. Targets whose code has none
    are told of WebAssembly's.

    Raises:
        TVMError: LLVM knows no processor of the target's name.
    """
    chosen = target or Target("cpu")
    if chosen.code_generator != "llvm":
        return WASM
    from mlcweb.runtime.host.llvm_target import options_of as llvm_options

    config: dict[str, Any] = options_of(chosen)
    processor = llvm_options(config).processor
    return VectorUnit(processor.vector_bytes, processor.registers)


def instruction_sets(target: Target) -> frozenset[str]:
    """LLVM's names of those sets of instructions that a target names, by its processor (`mcpu`) or
    itself (`mattr`), as far as schedules ask for them; none for a target that names neither.

    Raises:
        TVMError: LLVM knows no processor of the target's name.
    """
    attrs = target.attrs
    names = attrs.get("mattr", ())
    own = {
        name.removeprefix("+")
        for name in (names.split(",") if isinstance(names, str) else map(str, names))
        if name.startswith("+")
    }
    if target.code_generator == "llvm" and attrs.get("mcpu"):
        from mlcweb.runtime.host.llvm_target import options_of as llvm_options

        own |= llvm_options(options_of(target)).processor.instructions
    return frozenset(own)
