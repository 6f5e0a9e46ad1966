"""The passes from TensorIR to loops that WebAssembly is selected from."""

from __future__ import annotations

from mlcweb.codegen.processor.checks import Check
from mlcweb.codegen.processor.pipeline import lower_for_machine
from mlcweb.codegen.wasm.machine import MACHINE
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.lower.expand_instructions import expand_instructions
from mlcweb.lower.narrow_floats import emulate_narrow_floats
from mlcweb.lower.narrow_formats import FLOAT16, WITHOUT_NUMPY
from mlcweb.lower.optimize import optimizations
from mlcweb.lower.pipeline import Observer
from mlcweb.tir.function import PrimFunc

EXPANSION = expand_instructions({"simd128"})
EMULATION = emulate_narrow_floats(*WITHOUT_NUMPY, FLOAT16)
OPTIMIZATIONS = optimizations(MACHINE)


def lower_for_wasm(
    func: PrimFunc,
    options: Options,
    checks: list[Check],
    distinct: bool | None = None,
    observe: Observer | None = None,
) -> PrimFunc:
    """The loops that code is selected from; `lower_for_machine` says what the arguments are."""
    return lower_for_machine(
        func, OPTIMIZATIONS, options.bounds_check, checks, EXPANSION, EMULATION, distinct, observe
    )
