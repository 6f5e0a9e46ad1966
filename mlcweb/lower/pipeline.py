"""The lowering of a function from TensorIR to flat loops: which passes run, and in which order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from mlcweb.analysis.threads import exchanges_data
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import FunctionalPass, PassContext, PassInfo, register_option
from mlcweb.lower.compact_buffers import compact_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.place_allocations import place_allocations
from mlcweb.lower.serialize_threads import serialize_threads
from mlcweb.lower.simplify import simplify
from mlcweb.tir.function import PrimFunc

Pass = Callable[[PrimFunc], PrimFunc]

TO_SERIAL_LOOPS: tuple[Pass, ...] = (
    lower_init_block,
    convert_blocks_to_loops,
    serialize_threads,
)

PASSES: tuple[Pass, ...] = (
    *TO_SERIAL_LOOPS,
    place_allocations,
    compact_buffers,
    flatten_buffers,
    simplify,
)


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass did, and how many seconds it took."""

    name: str
    before: PrimFunc
    after: PrimFunc
    seconds: float

    @property
    def changed(self) -> bool:
        return self.after is not self.before


def record_lowering(func: PrimFunc, passes: Sequence[Pass] = PASSES) -> list[PassRecord]:
    """Run passes one after another and keep what each started from and made."""
    records = []
    for run in passes:
        start = time.perf_counter()
        after = run(func)
        seconds = time.perf_counter() - start
        records.append(PassRecord(run.__name__, func, after, seconds))
        func = after
    return records


ADDED_PASSES = register_option("tir.add_lower_pass", list)
"""Passes of a program's own: pairs of a phase and a pass. Those of phase 0 run before a function is
lowered, the others after it."""


def lower(func: PrimFunc) -> PrimFunc:
    """The function as flat loops: no blocks, buffers of one dimension, allocations in place.

    The kinds and annotations of loops are kept.
    """
    added = PassContext.current().config.get(ADDED_PASSES, ())
    for phase, run in added:
        func = func if phase else run(IRModule({"main": func}))["main"]
    func = run_passes(func, PASSES)
    for phase, run in sorted(added, key=itemgetter(0)):
        func = run(IRModule({"main": func}))["main"] if phase else func
    return func


def without_threads(func: PrimFunc) -> PrimFunc:
    """The function, with serial loops and no blocks if its threads exchange data: for those who
    else take TensorIR as it is, and run loops over threads as any other."""
    return run_passes(func, (*TO_SERIAL_LOOPS, simplify)) if exchanges_data(func) else func


def run_passes(func: PrimFunc, passes: Sequence[Pass]) -> PrimFunc:
    """The function after some passes, of which the instruments of the `PassContext` hear."""
    if not PassContext.current().instruments:
        for run in passes:
            func = run(func)
        return func
    module = IRModule({"main": func})
    for run in passes:
        step = PrimFuncPass(lambda func, mod, ctx, run=run: run(func), PassInfo(0, run.__name__))
        module = step(module)
    return module["main"]


class PrimFuncPass(FunctionalPass):
    """A pass made of `transform(func, mod, ctx) -> func`, run on each function of TensorIR."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[Any, Any] = {
            var: self.transform(func, mod, ctx) if isinstance(func, PrimFunc) else func
            for var, func in mod.functions.items()
        }
        return IRModule(functions, mod.attrs)
