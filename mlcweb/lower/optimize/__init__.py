"""Loop optimisation of lowered functions, shared by the compiled targets.

Each pass is a function from `PrimFunc` to `PrimFunc` whose result is again a lowered program that
prints and can be interpreted. Nothing here changes what is computed, to the last bit; the one
exception has to be asked for (see `vectorize`). What depends on the machine is told by a
`MachineModel`, which the code generator makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from mlcweb.ir.transform import register_option
from mlcweb.tir.function import PrimFunc
from mlcweb.lower.lowering_pass import LoweringPass
from mlcweb.lower.optimize.hoist import hoist
from mlcweb.lower.optimize.unroll_and_jam import unroll_and_jam
from mlcweb.lower.optimize.machine import MachineModel
from mlcweb.lower.optimize.promote import place_in_registers, promote_accumulators
from mlcweb.lower.optimize.rewriter import normalize
from mlcweb.lower.optimize.peel_init import peel_init
from mlcweb.lower.optimize.common_subexpr_elim import common_subexpr_elim
from mlcweb.lower.optimize.loop_partition import loop_partition
from mlcweb.lower.optimize.unroll import unroll
from mlcweb.lower.optimize.vectorize import vectorize

DISABLE_VECTORIZE = register_option("tir.disable_vectorize", bool)
"""Whether all loops stay scalar, those marked "vectorized" too."""

DISABLE_CSE = register_option("tir.disable_cse_tir", bool)
"""Whether common parts of expressions are computed wherever they stand."""


def optimizations(machine: MachineModel) -> tuple[LoweringPass, ...]:
    """The passes for a machine, in order."""

    def told(
        run: Callable[[PrimFunc, MachineModel], PrimFunc],
        *names: str,
        switch: str | None = None,
        removes: tuple[str, ...] = (),
    ) -> LoweringPass:
        bound = wraps(run)(lambda func: run(func, machine))
        return LoweringPass(bound, *names, switch=switch, removes=removes)

    return (
        normalize,
        peel_init,
        told(loop_partition, "LoopPartition"),
        told(
            vectorize,
            "VectorizeLoop",
            switch=DISABLE_VECTORIZE,
            removes=("vectorized loops",),
        ),
        told(unroll_and_jam, "UnrollAndJam"),
        told(unroll, "UnrollLoop"),
        told(place_in_registers, "PlaceInRegisters"),
        told(promote_accumulators, "PromoteAccumulators"),
        told(hoist, "HoistInvariants"),
        told(common_subexpr_elim, "CommonSubexprElim", "CommonSubexprElimTIR", switch=DISABLE_CSE),
    )


def optimize(func: PrimFunc, machine: MachineModel) -> PrimFunc:
    """A lowered function after all loop optimisations for a machine."""
    for run in optimizations(machine):
        func = run(func)
    return func


__all__ = ["MachineModel", "optimizations", "optimize"]
