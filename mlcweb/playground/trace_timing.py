"""How fast the program is after each step of a trace, and whether it still computes the same.

Programs are measured by the workers that measure a search's trials, so that one that hangs ends
with its worker. Each is compared with what the program before any step computes.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir import IRModule, TVMError, structural_hash
from mlcweb.playground.protocol.trace import Changes, StepOutcome, TimingStart
from mlcweb.playground.session import session
from mlcweb.playground.trace_replay import Replay, reason_of
from mlcweb.playground.trace_view import replayed, starting_program
from mlcweb.tir import PrimFunc

TIMEOUT_S = 10.0
"""Seconds that one program may take."""


@dataclass(slots=True)
class Timing:
    """Workers that know what one program computes. `outcomes` are those of programs by their
    structure."""

    function: str
    local: Any
    runner: Any
    outcomes: dict[int, StepOutcome] = field(default_factory=dict)

    def close(self) -> None:
        """End the workers."""
        self.runner.close()
        self.local.close()


async def begin(trace_id: str, changes: Changes) -> TimingStart:
    """Run and time the program that a trace starts from, and keep workers for its steps, which
    `finish` ends.

    Raises:
        TVMError: the program cannot be run on random content, or not be built; or the trace is
            of an earlier run.
    """
    from mlcweb.meta_schedule.measure.artifact import random_inputs
    from mlcweb.meta_schedule.runner import EvaluatorConfig, LocalRunner

    start = starting_program(session.trace(trace_id))
    workload = random_inputs(start, scheduled_function(replayed(trace_id, changes)))
    local = LocalRunner(TIMEOUT_S, EvaluatorConfig(repeat=5, min_repeat_ms=5.0), max_workers=1)
    timing = Timing(workload.function, local, local.open(workload))
    identifier = session.new_id("m")
    session.timings[identifier] = timing
    try:
        seconds = await timing.runner.begin(_artifact(start, timing.function))
    except Exception as error:
        finish(identifier)
        raise TVMError(
            f"the program before any step cannot be timed: {reason_of(error)}"
        ) from error
    outcome = _measured(seconds)
    timing.outcomes[structural_hash(start)] = outcome
    return TimingStart(identifier, outcome)


async def step(timing_id: str, trace_id: str, changes: Changes, step: int) -> StepOutcome:
    """Build, check and time the program after a step (0: before any)."""
    from mlcweb.meta_schedule.measure.runner import RunnerClosed

    timing = session.timings.get(timing_id)
    if timing is None:
        return StepOutcome("stopped", reason="stopped")
    module = replayed(trace_id, changes).modules[step]
    shash = structural_hash(module)
    if shash not in timing.outcomes:
        try:
            artifact = _artifact(module, timing.function)
            timing.outcomes[shash] = _measured(await timing.runner.measure(artifact))
        except RunnerClosed:
            return StepOutcome("stopped", reason="stopped")
        except Exception as error:
            timing.outcomes[shash] = StepOutcome("failed", reason=reason_of(error))
    return timing.outcomes[shash]


def finish(timing_id: str) -> None:
    """End the workers that time a trace."""
    timing = session.timings.pop(timing_id, None)
    if timing is not None:
        timing.close()


def scheduled_function(done: Replay) -> str | None:
    """The function that a trace works on: the first that it changes; None where it changes none,
    or where there is but one."""
    before, after = done.modules[0], done.modules[-1]
    names = [v.name_hint for v, f in before.functions.items() if isinstance(f, PrimFunc)]
    changed = [name for name in names if before[name] is not after[name]]
    return changed[0] if changed and len(names) > 1 else None


def _artifact(module: IRModule, function: str) -> Any:
    from mlcweb.meta_schedule.measure.artifact import build_artifact

    return build_artifact(module, function)


def _measured(seconds: tuple[float, ...]) -> StepOutcome:
    return StepOutcome("measured", statistics.median(seconds), list(seconds))
