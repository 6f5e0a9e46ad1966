"""The passes from TensorIR to loops that the code of a processor is selected from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlcweb.codegen.external import for_arrays
from mlcweb.codegen.processor.calls import calls_in_expressions
from mlcweb.codegen.processor.checks import Check, check_accesses
from mlcweb.codegen.processor.domain_checks import CHECK_DOMAINS
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.narrow_floats import has_narrow_floats
from mlcweb.lower.optimize.accesses import of_distinct_arrays, of_overlapping_arrays
from mlcweb.lower.optimize.rewriter import normalize
from mlcweb.lower.pipeline import TO_FLAT_LOOPS, TO_SERIAL_LOOPS, Observer, run_pipeline
from mlcweb.tir.function import PrimFunc

CALLED_WITH_ARRAYS = LoweringPass(for_arrays, "SetLayoutsOfArrays", needed=True)
OF_DISTINCT = LoweringPass(of_distinct_arrays, "AssumeNoAlias")
OF_OVERLAPPING = LoweringPass(of_overlapping_arrays, "AssumeAlias", needed=True)


def lower_for_machine(
    func: PrimFunc,
    optimizations: Sequence[LoweringPass],
    bounds_check: bool,
    checks: list[Check],
    expansion: LoweringPass,
    emulation: LoweringPass,
    distinct: bool | None = None,
    observe: Observer | None = None,
) -> PrimFunc:
    """The loops that the code of a processor is selected from.

    Args:
        optimizations: the passes for that processor.
        bounds_check: whether the code checks accesses, and axes of blocks.
        checks: receives what the code will check, where the options ask for that.
        expansion: what replaces instructions that the processor lacks.
        emulation: what replaces narrow types that it lacks, once it is known what stays in
            registers.
        distinct: for functions that are called with arrays: whether those share no memory. None for
            micro-kernels, called with pointers, which share what the function says.
        observe: hears of each pass.
    """
    entry = [expansion]
    if distinct is not None:
        entry += [CALLED_WITH_ARRAYS, OF_DISTINCT if distinct else OF_OVERLAPPING]
    emulations = (emulation,) if has_narrow_floats(func) else ()
    if bounds_check:
        checking = partial(check_accesses, checks=checks)
        checked = LoweringPass(checking, "InstrumentBoundCheckers", needed=True)
        # Nothing is left out or moved, so that what is wrong is found where it stands.
        lowering = *entry, CHECK_DOMAINS, *TO_SERIAL_LOOPS
        generation = checked, flatten_buffers, *emulations
        return run_pipeline(func, lowering, generation, observe=observe)
    # Optimisation takes expressions as free of effects.
    pure = not calls_in_expressions(func)
    lowering = *entry, *TO_SERIAL_LOOPS, *TO_FLAT_LOOPS
    generation = *(optimizations if pure else (normalize,)), *emulations
    return run_pipeline(func, lowering, generation, observe=observe)
