"""Loop optimisation of lowered functions, shared by the compiled targets.

Each pass is a function from `PrimFunc` to `PrimFunc` whose result is again a lowered program that
prints and can be interpreted. Nothing here changes what is computed, to the last bit; the one
exception has to be asked for (see `vectorize`). What depends on the machine is told by a
`MachineModel`, which the code generator makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from mlcweb.tir.function import PrimFunc
from mlcweb.lower.pipeline import Pass, run_passes
from mlcweb.lower.optimize.hoist import hoist
from mlcweb.lower.optimize.interleave import interleave
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.promote import place_in_registers, promote_accumulators
from mlcweb.lower.optimize.rewriter import normalize
from mlcweb.lower.optimize.separate_init import separate_init
from mlcweb.lower.optimize.share import share
from mlcweb.lower.optimize.split_loops import split_loops
from mlcweb.lower.optimize.unroll import unroll
from mlcweb.lower.optimize.vectorize import vectorize


def optimizations(machine: MachineModel) -> tuple[Pass, ...]:
    """The passes for a machine, in order."""

    def told(run: Callable[[PrimFunc, MachineModel], PrimFunc]) -> Pass:
        @wraps(run)
        def run_for_machine(func: PrimFunc) -> PrimFunc:
            return run(func, machine)

        return run_for_machine

    return (
        normalize,
        separate_init,
        split_loops,
        told(vectorize),
        told(interleave),
        told(unroll),
        told(place_in_registers),
        told(promote_accumulators),
        told(hoist),
        told(share),
    )


def optimize(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """A lowered function after all loop optimisations for a machine."""
    return run_passes(func, optimizations(machine))


__all__ = ["MachineModel", "optimizations", "optimize"]
