"""What a search tells of itself: its start, each trial, each round, what was confirmed, its end."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mlcweb.ir import IRModule
from mlcweb.schedule import Trace

if TYPE_CHECKING:
    from mlcweb.meta_schedule.database.tuning_record import TuningRecord

State = Literal["measured", "recalled", "repeated", "failed"]


@dataclass(frozen=True, slots=True)
class Started:
    """The unscheduled program was run and timed; what it computes is what trials must compute.

    Attributes:
        baseline: its seconds per call, one number for each batch.
        workers: programs measured at one time.
        flops: operations of a call; 0 where they cannot be counted.
    """

    baseline: tuple[float, ...]
    workers: int
    flops: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One schedule, and what became of it. A trial whose schedule function failed has the trace and
    the module up to that point. `index` tells the order in which trials were sampled.

    Attributes:
        seed: of the schedule, where a function was called with it.
        run_secs: seconds per call, one number for each batch; empty for a failed trial.
        reason: why a failed trial failed.
        same_as: the earlier trial that arrived at the same program or the same code, whose times
            (or whose failure) this one takes over.
        recalled: the times come from an earlier search.
        confirmed: the times come from the last rounds, in which the best were measured in turn.
        predicted: what a cost model had thought of it, where one was asked; larger is faster.
            Predictions are comparable within a round.
        shash: the structural hash of the program, once it is known.
        record: what databases keep of it; None where there is nothing to keep.
    """

    index: int
    seed: int
    trace: Trace
    module: IRModule
    run_secs: tuple[float, ...] = ()
    reason: str | None = None
    same_as: int | None = None
    recalled: bool = False
    confirmed: bool = False
    predicted: float | None = None
    round: int = 0
    shash: int | None = None
    record: TuningRecord | None = None

    @property
    def seconds(self) -> float | None:
        """The median of the batches; None for a failed trial."""
        return statistics.median(self.run_secs) if self.run_secs else None

    @property
    def state(self) -> State:
        if not self.run_secs:
            return "failed"
        if self.same_as is not None:
            return "repeated"
        return "recalled" if self.recalled else "measured"

    @property
    def decisions(self) -> list[tuple[str, Any]]:
        """What the sampling steps decided: the method's name and the decision, in order."""
        sampled = [inst for inst in self.trace.insts if inst.kind.sampling]
        return [(inst.kind.method, self.trace.get_decision(inst)) for inst in sampled]


@dataclass(frozen=True, slots=True)
class Begun:
    """A round runs that was built and begun as a whole: nothing is to be done but to wait for it.

    Attributes:
        number: counted from 0.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Round:
    """A round is over, and the strategy has learnt from it.

    Attributes:
        number: counted from 0.
        best: seconds of the fastest program, of earlier searches as well; infinite before any ran.
    """

    number: int
    best: float


@dataclass(frozen=True, slots=True)
class Confirmed:
    """One of the best was measured again, in turn with the others: these times decide."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Ended:
    """There are no more events.

    Attributes:
        trials: how many there were, those of earlier searches not counted.
    """

    trials: int


Event = Started | Begun | Trial | Round | Confirmed | Ended


def best_trial(trials: Iterable[Trial]) -> Trial | None:
    """The fastest trial, the first of them if several are equally fast. Where some are confirmed,
    it is one of those: times taken beside other work are no verdict."""
    timed = [(trial.seconds, trial) for trial in trials if trial.seconds is not None]
    confirmed = [pair for pair in timed if pair[1].confirmed]
    return min(confirmed or timed, key=lambda pair: pair[0], default=(0.0, None))[1]
