"""What rules are told of the processor."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.runtime.target import Target
from mlcweb.runtime.vector_unit import vector_unit

COMPILED = ("wasm", "llvm")
"""The code generators whose code is worth a schedule."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Sums that are made together: `rows` by `vectors` of `lanes` elements each."""

    rows: int
    vectors: int
    lanes: int


def is_compiled(target: Target) -> bool:
    """Whether a target runs compiled code of a processor."""
    return target.code_generator in COMPILED


def register_tile(target: Target, dtype: str) -> RegisterTile:
    """The largest tile that leaves registers for operands: two vectors of one, and one or two
    elements of the other."""
    unit = vector_unit(target)
    # WebAssembly has no operand that is an element in all lanes: each takes a register.
    operands = 8 if target.code_generator == "wasm" else 4
    return RegisterTile(rows=(unit.registers - operands) // 2, vectors=2, lanes=unit.lanes(dtype))
