"""Replaying a trace step by step, with other decisions where the reader chose some.

What a step did follows from the values of its random variables before and after it, so both are
kept while the replay goes on: later steps may do away with the loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.playground.protocol.trace import Changes
from mlcweb.playground.trace_origins import Origins
from mlcweb.schedule import Schedule, Trace
from mlcweb.schedule.errors import REPLAY_ERRORS, ScheduleError
from mlcweb.schedule.instruction import BlockRV, Instruction, LoopRV, map_inputs
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState


class ReplayError(TVMError):
    """A step of a trace cannot be done; `step` tells which, counted from 1."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(reason)
        self.step = step


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """A step that was carried out.

    `inputs` and `outputs` are the values of the inputs before the step, and of the outputs after: a
    place of a loop or block, or else the value itself; None for a loop or block that is none.
    """

    instruction: Instruction
    decision: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    before: ScheduleState
    after: ScheduleState
    origins: Origins

    @property
    def changed(self) -> bool:
        """Whether the program is another one than before; most steps look something up."""
        return self.before.module is not self.after.module


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace on the program that it starts from: the steps that could be done, and why the next
    one could not, if not all could."""

    schedule: Schedule
    start: ScheduleState
    first_origins: Origins
    steps: tuple[ReplayedStep, ...]
    failure: ReplayError | None

    @property
    def modules(self) -> list[IRModule]:
        """The program before the first step and after each."""
        return [self.start.module, *(step.after.module for step in self.steps)]


def replay(trace: Trace, original: IRModule, changes: Changes | None = None) -> Replay:
    """Replay as many steps of a trace as can be done."""
    schedule = Schedule(original)
    start = schedule.state
    origins = first = Origins.of_program(start)
    replayed: dict[Any, Any] = {}
    steps: list[ReplayedStep] = []
    failure: ReplayError | None = None
    for number, inst in enumerate(trace.insts, 1):
        before = schedule.state
        values, decision = _chosen(inst, trace, number, changes or {}, replayed)
        inputs = tuple(_meaning(schedule, value) for value in values)
        try:
            results = schedule.replay(inst.kind, values, inst.attrs, decision)
        except REPLAY_ERRORS as error:
            failure = ReplayError(number, reason_of(error))
            break
        replayed.update(zip(inst.outputs, results, strict=True))
        done = schedule.trace.insts[-1]
        outputs = tuple(_meaning(schedule, value) for value in results)
        if schedule.state is not before:
            origins = origins.after(
                number, inst.kind.method, inputs, outputs, before, schedule.state
            )
        steps.append(
            ReplayedStep(
                done,
                schedule.trace.get_decision(done),
                inputs,
                outputs,
                before,
                schedule.state,
                origins,
            )
        )
    return Replay(schedule, start, first, tuple(steps), failure)


def literal_factors(inst: Instruction) -> list[int | None] | None:
    """The factors of a split that are written as numbers (None: what is left); None where the
    instruction is something else, or takes its factors from another step."""
    if inst.kind.method != "split":
        return None
    factors = inst.arguments()["factors"]
    numbers = [getattr(factor, "value", factor) for factor in factors]
    return numbers if all(n is None or isinstance(n, int) for n in numbers) else None


def reason_of(error: BaseException) -> str:
    """Why something was refused, without the listing of the program around it."""
    if isinstance(error, ScheduleError):
        return error.reason
    return str(error) or type(error).__name__


def _chosen(
    inst: Instruction, trace: Trace, number: int, changes: Changes, replayed: Mapping[Any, Any]
) -> tuple[list[Any], Any]:
    """The inputs and the decision to replay an instruction with."""
    inputs = map_inputs(inst.inputs, replayed)
    if number not in changes:
        return inputs, trace.get_decision(inst)
    if literal_factors(inst) is not None:
        return [inputs[0], *changes[number]], None
    return inputs, changes[number]


def _meaning(schedule: Schedule, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_meaning(schedule, item) for item in value)
    if not isinstance(value, BlockRV | LoopRV):
        try:
            return value if value is None else schedule.get(value)
        except (ValueError, TypeError, AttributeError):
            return value
    try:
        return _place(schedule.state, schedule.get(value))
    except REPLAY_ERRORS:
        return None  # it was removed, or is the root, or means inlining


def _place(state: ScheduleState, node: Any) -> BlockPlace | LoopPlace:
    return state.block(node.identity) if hasattr(node, "identity") else state.loop(node.loop_var)
