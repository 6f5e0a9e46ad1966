"""Other places where blocks are computed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.mutator.mutator import Mutator
from mlcweb.schedule import Instruction, Schedule, ScheduleError, Trace
from mlcweb.schedule.primitives.sampling import locations
from mlcweb.tir.stmt import Block

if TYPE_CHECKING:
    from mlcweb.meta_schedule.tune_context import TuneContext


class MutateComputeLocation(Mutator):
    """Chooses another location for one of the blocks with a sampled location."""

    mod: IRModule | None = None

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self.mod = context.mod

    def apply(self, trace: Trace, rng: random.Random) -> Trace | None:
        """See `Mutator.apply`. A ValueError where the mutator knows of no task."""
        if self.mod is None:
            raise ValueError("MutateComputeLocation needs a TuneContext with a module")
        if not any(inst.kind.name == "SampleComputeLocation" for inst in trace.insts):
            return None
        candidates = _other_locations(trace, self.mod)
        if not candidates:
            return None
        inst, decisions = rng.choice(candidates)
        return trace.with_decision(inst, rng.choice(decisions), True)


def _other_locations(trace: Trace, mod: IRModule) -> list[tuple[Instruction, list[int]]]:
    """The sampling steps that could decide otherwise, with what they could decide: known only in
    the state of the program at that step."""
    sch = Schedule(mod, error_render_level="none")
    found: list[tuple[Instruction, list[int]]] = []
    sampling = iter([inst for inst in trace.insts if inst.kind.sampling])

    def note(_: Instruction, inputs: Any, attrs: Any, decision: Any) -> Any:
        inst = next(sampling)
        if inst.kind.name == "SampleComputeLocation":
            block = sch.get(inputs[0])
            assert isinstance(block, Block)
            numbers = [number for number, _ in locations(sch.state, block.identity)]
            others = [number for number in numbers if number != decision]
            if others:
                found.append((inst, others))
        return decision

    try:
        trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=note)
    except ScheduleError:
        return []
    return found
