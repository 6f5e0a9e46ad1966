"""Loop optimisation of lowered functions, shared by the compiled targets.

Each pass is a function from `PrimFunc` to `PrimFunc` whose result is again a lowered program that
prints and can be interpreted. Nothing here changes what is computed, to the last bit; the one
exception has to be asked for (see `vectorize`).
"""

from __future__ import annotations

from mlcweb.tir.function import PrimFunc
from mlcweb.lower.pipeline import Pass
from mlcweb.lower.optimize.hoist import hoist
from mlcweb.lower.optimize.interleave import interleave
from mlcweb.lower.optimize.promote import place_in_registers, promote_accumulators
from mlcweb.lower.optimize.rewriter import normalize
from mlcweb.lower.optimize.separate_init import separate_init
from mlcweb.lower.optimize.share import share
from mlcweb.lower.optimize.split_loops import split_loops
from mlcweb.lower.optimize.unroll import unroll
from mlcweb.lower.optimize.vectorize import vectorize

OPTIMIZATIONS: tuple[Pass, ...] = (
    normalize,
    separate_init,
    split_loops,
    vectorize,
    interleave,
    unroll,
    place_in_registers,
    promote_accumulators,
    hoist,
    share,
)
"""The passes, in order."""


def optimize(func: PrimFunc) -> PrimFunc:
    """A lowered function after all loop optimisations."""
    for run in OPTIMIZATIONS:
        func = run(func)
    return func


__all__ = ["OPTIMIZATIONS", "optimize"]
