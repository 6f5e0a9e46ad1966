"""Random search: sample a schedule, measure the program, keep the record; nothing learns.

The loop knows nothing of how programs are built and timed: `measure` is any function from a module
to seconds, here in this process (`CheckedTimer`), in a pool of processes, or in another worker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mlcweb.ir import IRModule, structural_equal, structural_hash
from mlcweb.tir.schedule import Schedule, Trace

Measure = Callable[[IRModule], float]
"""Builds a program, checks what it computes, and returns its time in seconds; raises otherwise."""

ScheduleFunction = Callable[[Schedule], Any]
"""Transforms the schedule that it is given. What it returns is used if it is a schedule."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One sampled schedule, and what became of it.

    `seconds` is None for a failed trial, `reason` for all others. A repeated trial arrived at the
    same program as the earlier trial `same_as`, and takes over its time (or its failure). A trial
    whose schedule function failed has the trace and the module up to that point.
    """

    index: int
    seed: int
    state: Literal["measured", "repeated", "failed"]
    seconds: float | None
    reason: str | None
    same_as: int | None
    trace: Trace
    module: IRModule

    @property
    def decisions(self) -> list[tuple[str, Any]]:
        """What the sampling steps decided: the method's name and the decision, in order."""
        sampled = [inst for inst in self.trace.insts if inst.kind.sampling]
        return [(inst.kind.method, self.trace.get_decision(inst)) for inst in sampled]


def random_search(
    module: IRModule, schedule_function: ScheduleFunction, *, measure: Measure, seed: int = 0
) -> Iterator[Trial]:
    """Trials without end, one per step of the iterator; the caller decides when to stop.

    Args:
        module: the program to schedule.
        schedule_function: applied to a schedule of `module` with a seed of its own in each trial.
        measure: called once per distinct program. Every exception that it raises (but for
            KeyboardInterrupt and its like) makes a failed trial with the exception as its reason.
        seed: the same seed samples the same schedules.
    """
    seeds = random.Random(seed)
    # Hash to earlier trials of different programs: a search sees few programs many times.
    known: dict[int, list[Trial]] = {}
    index = 0
    while True:
        trial_seed = seeds.randrange(1, 2**31 - 1)
        trial = _sample(module, schedule_function, index, trial_seed)
        if trial.state != "failed":
            same_hash = known.setdefault(structural_hash(trial.module), [])
            earlier = next((t for t in same_hash if structural_equal(t.module, trial.module)), None)
            trial = _measured(trial, measure) if earlier is None else _repeated(trial, earlier)
            if earlier is None:
                same_hash.append(trial)
        yield trial
        index += 1


def best_trial(trials: Iterable[Trial]) -> Trial | None:
    """The fastest trial; the first of them if several are equally fast."""
    timed = [trial for trial in trials if trial.seconds is not None]
    return min(timed, key=lambda trial: trial.seconds or 0.0, default=None)


def _sample(module: IRModule, function: ScheduleFunction, index: int, seed: int) -> Trial:
    schedule = Schedule(module, seed=seed)
    state: Literal["measured", "failed"] = "measured"
    reason = None
    try:
        result = function(schedule)
        if isinstance(result, Schedule):
            schedule = result
    except Exception as error:
        state, reason = "failed", _reason(error)
    return Trial(index, seed, state, None, reason, None, schedule.trace.copy(), schedule.mod)


def _measured(trial: Trial, measure: Measure) -> Trial:
    state: Literal["measured", "failed"] = "measured"
    seconds, reason = None, None
    try:
        seconds = measure(trial.module)
    except Exception as error:
        state, reason = "failed", _reason(error)
    return Trial(trial.index, trial.seed, state, seconds, reason, None, trial.trace, trial.module)


def _repeated(trial: Trial, earlier: Trial) -> Trial:
    state: Literal["repeated", "failed"] = "failed" if earlier.seconds is None else "repeated"
    return Trial(
        trial.index,
        trial.seed,
        state,
        earlier.seconds,
        earlier.reason,
        earlier.index,
        trial.trace,
        trial.module,
    )


def _reason(error: Exception) -> str:
    # A ScheduleError's text holds the whole program; its reason alone is what a table has room for.
    text = str(getattr(error, "reason", "") or error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
