"""Other bounds of unrolling."""

from __future__ import annotations

import random

from mlcweb.meta_schedule.mutator.annotation_source import sampled_for
from mlcweb.meta_schedule.mutator.mutator import Mutator
from mlcweb.meta_schedule.schedule_rule.parallel_vectorize_unroll import (
    UNROLL_EXPLICIT,
    UNROLL_IMPLICIT,
)  # fmt: skip
from mlcweb.schedule import Trace
from mlcweb.tir.arithmetic import constant_value


class MutateUnroll(Mutator):
    """Chooses another of the bounds of unrolling, with their probabilities."""

    def apply(self, trace: Trace, rng: random.Random) -> Trace | None:
        found = sampled_for(trace, (UNROLL_EXPLICIT, UNROLL_IMPLICIT))
        if not found:
            return None
        inst = rng.choice(found)
        weights = [float(constant_value(p) or 0.0) for p in inst.attrs[1]]
        weights[trace.get_decision(inst)] = 0.0
        if not any(weights):
            return None
        decision = rng.choices(range(len(weights)), weights)[0]
        return trace.with_decision(inst, decision, True)
