"""One sampled schedule, and what became of it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from mlcweb.ir import IRModule
from mlcweb.schedule import Trace

State = Literal["measured", "repeated", "failed"]


@dataclass(frozen=True, slots=True)
class Trial:
    """A sampled schedule. A trial whose schedule function failed has the trace and the module up to
    that point.

    Attributes:
        run_secs: seconds per call, one number for each batch; empty for a failed trial.
        reason: why a failed trial failed.
        same_as: the earlier trial that arrived at the same program or the same code, whose times
            (or whose failure) this one takes over.
        confirmed: the times come from the last rounds, in which the best were measured in turn.
        predicted: what a cost model had thought of it, where one was asked; larger is faster.
    """

    index: int
    seed: int
    trace: Trace
    module: IRModule
    run_secs: tuple[float, ...] = ()
    reason: str | None = None
    same_as: int | None = None
    confirmed: bool = False
    predicted: float | None = None

    @property
    def seconds(self) -> float | None:
        """The median of the batches; None for a failed trial."""
        return statistics.median(self.run_secs) if self.run_secs else None

    @property
    def state(self) -> State:
        if not self.run_secs:
            return "failed"
        return "measured" if self.same_as is None else "repeated"

    @property
    def decisions(self) -> list[tuple[str, Any]]:
        """What the sampling steps decided: the method's name and the decision, in order."""
        sampled = [inst for inst in self.trace.insts if inst.kind.sampling]
        return [(inst.kind.method, self.trace.get_decision(inst)) for inst in sampled]


def best_trial(trials: Iterable[Trial]) -> Trial | None:
    """The fastest trial, the first of them if several are equally fast. Where some are confirmed,
    it is one of those: times taken beside other work are no verdict."""
    timed = [(trial.seconds, trial) for trial in trials if trial.seconds is not None]
    confirmed = [pair for pair in timed if pair[1].confirmed]
    return min(confirmed or timed, key=lambda pair: pair[0], default=(0.0, None))[1]
