"""Other bounds of parallel loops."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from operator import mul
from typing import TYPE_CHECKING, Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.mutator.mutator import Mutator
from mlcweb.meta_schedule.schedule_rule.block_facts import SPATIAL, extent_of, is_root
from mlcweb.meta_schedule.schedule_rule.parallel_vectorize_unroll import PARALLEL
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace
from mlcweb.schedule.iteration_order import loop_type
from mlcweb.tir.stmt import For

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


@dataclass(eq=False)
class MutateParallel(Mutator):
    """Changes how many iterations run in parallel, to a number at which other loops are fused.

    Args:
        max_jobs_per_core: the most parallel iterations for each core.
    """

    max_jobs_per_core: int
    cores: int = 1
    mod: IRModule | None = None

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        target: Any = context.target
        self.cores = int(target.attrs.get("num-cores", 1)) if target is not None else 1
        self.mod = context.mod

    def apply(self, trace: Trace, rng: random.Random) -> Trace | None:
        """See `Mutator.apply`. A ValueError where the mutator knows of no task."""
        if self.mod is None:
            raise ValueError("MutateParallel needs a TuneContext with a module")
        notes = [i for i in trace.insts if i.kind.name == "Annotate" and i.attrs[0] == PARALLEL]
        if not notes:
            return None
        inst = rng.choice(notes)
        block, present = inst.inputs
        most = self.max_jobs_per_core * self.cores
        bounds = [n for n in _bounds(trace, self.mod) if n <= most and n != present]
        if not bounds:
            return None
        return _with_step(trace, inst, replace(inst, inputs=(block, rng.choice(bounds))))


def _bounds(trace: Trace, mod: IRModule) -> list[int]:
    """The numbers of iterations that the outer loops of each block have, fused."""
    sch = Schedule(mod, error_render_level="none")
    try:
        trace.apply_to_schedule(sch, remove_postproc=True)
    except ScheduleError:
        return []
    found = {1}
    for place in sch.state.index.blocks.values():
        if not is_root(place):
            outer = takewhile(_is_fusible, place.loops)
            found.update(accumulate((extent_of(loop) or 1 for loop in outer), mul))
    return sorted(found)


def _is_fusible(loop: For) -> bool:
    return loop_type(loop) == SPATIAL and extent_of(loop) is not None


def _with_step(trace: Trace, old: Instruction, new: Instruction) -> Trace:
    """The trace without post-processing, and with one step replaced."""
    kept = trace.simplified(remove_postproc=True)
    return Trace([new if inst is old else inst for inst in kept.insts], kept.decisions)
