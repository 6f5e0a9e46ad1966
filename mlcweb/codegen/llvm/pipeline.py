"""The passes from TensorIR to loops that LLVM code is selected from."""

from __future__ import annotations

from functools import lru_cache

from mlcweb.codegen.llvm.machine import Processor, machine_model
from mlcweb.codegen.processor.checks import Check
from mlcweb.codegen.processor.pipeline import lower_for_machine
from mlcweb.lower.expand_instructions import expand_instructions
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.narrow_floats import emulate_narrow_floats
from mlcweb.lower.optimize import optimizations
from mlcweb.tir.function import PrimFunc


@lru_cache(maxsize=64)
def _optimizations(processor: Processor) -> tuple[LoweringPass, ...]:
    return optimizations(machine_model(processor))


@lru_cache(maxsize=64)
def _emulation(processor: Processor) -> LoweringPass:
    return emulate_narrow_floats(*processor.emulated)


@lru_cache(maxsize=64)
def _expansion(processor: Processor) -> LoweringPass:
    return expand_instructions(processor.instructions, has_words=True)


def lower_for_llvm(
    func: PrimFunc,
    processor: Processor,
    bounds_check: bool,
    checks: list[Check],
    distinct: bool | None = None,
) -> PrimFunc:
    """The loops that code is selected from; `lower_for_machine` says what the arguments are."""
    passes, expansion = _optimizations(processor), _expansion(processor)
    emulation = _emulation(processor)
    return lower_for_machine(func, passes, bounds_check, checks, expansion, emulation, distinct)
