"""The decisions of a trace as controls: what each could be instead, and why some values cannot be.

A value that the sampling step itself rules out comes with its reason at once. Whether later steps
can live with a value shows only when they are replayed; `refusal` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal, NamedTuple

from mlcweb.meta_schedule.search_strategy.decisions import divisors
from mlcweb.playground.protocol.trace import Changes, TraceControl, TraceOption, TracePart
from mlcweb.playground.trace_origins import extent_text
from mlcweb.playground.trace_replay import (
    Replay,
    ReplayedStep,
    literal_factors,
    reason_of,
    replay,
)
from mlcweb.playground.trace_words import loop_path, part_names
from mlcweb.schedule import Trace
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.scopes import scope_around
from mlcweb.schedule.errors import REPLAY_ERRORS
from mlcweb.schedule.instruction import plain
from mlcweb.schedule.primitives.compute_location import LAST, compute_at
from mlcweb.schedule.primitives.sampling import locations
from mlcweb.schedule.state import BlockPlace, LoopPlace, ScheduleState
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.expr import IntImm
from mlcweb.tir.stmt import IterType

SMALL = 17
"""Whole numbers below this are always offered as factors, also those that cannot be."""


def controls(trace: Trace, done: Replay, changes: Changes) -> list[TraceControl]:
    """The decisions of a replayed trace, and the literal factors of its splits."""
    offered = []
    for number, step in enumerate(done.steps, 1):
        choice = _choice_of(step)
        if choice is None:
            continue
        inst = trace.insts[number - 1]
        recorded = plain(trace.get_decision(inst)) if inst.kind.sampling else literal_factors(inst)
        changed = number in changes and choice.decision != recorded
        offered.append(TraceControl(step=number, changed=changed, **choice._asdict()))
    return offered


def refusal(trace: Trace, done: Replay, changes: Changes, step: int, decision: Any) -> str | None:
    """Why a decision of one step cannot be: the reason for which a later step refuses; None if
    none does."""
    failure = replay(trace, done.start.module, {**changes, step: decision}).failure
    if failure is None:
        return None
    name = trace.insts[failure.step - 1].kind.method
    return f"step {failure.step}, {name}: {failure}"


class _Choice(NamedTuple):
    """What a step decides; the fields are those of a `TraceControl`."""

    kind: Literal["tile", "choice", "location", "factors"]
    label: str
    decision: Any
    parts: list[TracePart]


def _choice_of(step: ReplayedStep) -> _Choice | None:
    method = step.instruction.kind.method
    if method in ("sample_perfect_tile", "sample_partitioned_tile"):
        return _tile(step)
    if method == "sample_categorical":
        return _category(step)
    if method == "sample_compute_location":
        return _location(step)
    factors = literal_factors(step.instruction)
    return None if factors is None else _factors(step, factors)


def _constant_loop(place: Any) -> tuple[str, int] | None:
    """The name and the extent of a loop whose extent is constant; None for another."""
    if not isinstance(place, LoopPlace) or not isinstance(place.loop.extent, IntImm):
        return None
    return place.loop.loop_var.name, place.loop.extent.value


def _tile(step: ReplayedStep) -> _Choice | None:
    loop = _constant_loop(step.inputs[0])
    if loop is None:
        return None
    loop_name, extent = loop
    factors = [int(plain(factor)) for factor in step.decision]
    parts = [
        TracePart(
            name,
            str(factors[position]),
            [
                _tile_option(step, extent, factors, position, value)
                for value in _candidates(extent, factors[position])
            ],
        )
        for position, name in enumerate(part_names(loop_name, len(factors)))
    ]
    return _Choice("tile", f"tiles of {loop_name} ({extent})", factors, parts)


def _tile_option(
    step: ReplayedStep, extent: int, factors: Sequence[int], position: int, value: int
) -> TraceOption:
    """One factor set to a value; another one takes what is left, the outermost where it can."""
    new = list(factors)
    new[position] = value
    if len(new) == 1:
        reason = None if value == extent else f"{value} ≠ {extent}"
        return TraceOption(str(value), new, reason)
    rest = 1 if position == 0 else 0
    others = prod(factor for n, factor in enumerate(new) if n != rest)
    if extent % others:
        return TraceOption(str(value), new, _does_not_divide(new, rest, extent))
    new[rest] = extent // others
    return TraceOption(str(value), new, _outside_space(step, new))


def _does_not_divide(factors: Sequence[int], rest: int, extent: int) -> str:
    fixed = [f for n, f in enumerate(factors) if n != rest and f != 1] or [1]
    nearest = max(1, round(extent / prod(fixed)))
    product = "·".join(map(str, (nearest, *fixed) if rest == 0 else (*fixed, nearest)))
    return f"{product} ≠ {extent}"


def _outside_space(step: ReplayedStep, factors: Sequence[int]) -> str | None:
    """Why the sampling step would never draw these factors."""
    arguments = step.instruction.arguments()
    limit = arguments.get("max_innermost_factor", -1)
    if limit >= 1 and factors[-1] > limit:
        return f"innermost factor {factors[-1]} > max_innermost_factor {limit}"
    multiple = arguments.get("innerpart_factor", 1)
    inner = prod(factors[arguments.get("partition_pos", 0) :])
    if inner % multiple:
        return f"inner part {inner} is no multiple of innerpart_factor {multiple}"
    return None


def _factors(step: ReplayedStep, factors: Sequence[int | None]) -> _Choice | None:
    """The written factors of a split; None is what is left, and stays so."""
    loop = _constant_loop(step.inputs[0])
    if loop is None:
        return None
    loop_name, extent = loop
    extents = [place.loop.extent for place in step.outputs if isinstance(place, LoopPlace)]
    rest = factors.index(None) if None in factors else 0
    parts = []
    names = part_names(loop_name, len(factors))
    for position, (name, factor) in enumerate(zip(names, factors, strict=True)):
        shown = extent_text(extents[position]) if position < len(extents) else "?"
        options: list[TraceOption] = []
        if position != rest and factor is not None:
            options = [
                _factor_option(extent, factors, position, rest, value)
                for value in _candidates(extent, factor)
            ]
        parts.append(TracePart(name, shown, options))
    label = f"factors of {loop_name} ({extent})"
    return _Choice("factors", label, list(factors), parts)


def _factor_option(
    extent: int, factors: Sequence[int | None], position: int, rest: int, value: int
) -> TraceOption:
    new = list(factors)
    new[position] = value
    others = prod(factor for n, factor in enumerate(new) if n != rest and factor is not None)
    needed = -(-extent // others)
    if new[rest] is not None:
        new[rest] = needed
    covered = needed * others
    text = str(value) if covered == extent else f"{value} ({covered - extent} past the end skipped)"
    return TraceOption(text, new, f"{others} > {extent}" if others > extent else None)


def _category(step: ReplayedStep) -> _Choice:
    candidates, probabilities = step.instruction.attrs
    options = [
        TraceOption(f"{plain(candidate)} (p = {float(plain(p)):.3g})", n, None)
        for n, (candidate, p) in enumerate(zip(candidates, probabilities, strict=True))
    ]
    chosen = int(step.decision)
    parts = [TracePart("value", options[chosen].text, options)]
    return _Choice("choice", "choice", chosen, parts)


def _location(step: ReplayedStep) -> _Choice | None:
    block = step.inputs[0]
    if not isinstance(block, BlockPlace):
        return None
    options = _location_options(step.before, block)
    chosen = int(step.decision)
    value = next((option.text for option in options if option.decision == chosen), "?")
    parts = [TracePart("place", value, options)]
    return _Choice("location", f"place of block {block.block.name_hint}", chosen, parts)


def _location_options(state: ScheduleState, block: BlockPlace) -> list[TraceOption]:
    identity = block.block.identity
    possible = {number for number, _ in locations(state, identity)}
    inline = None if -2 in possible else "it cannot be inlined"
    options = [TraceOption("inlined", -2, inline), TraceOption("where it is", -1, None)]
    consumers = scope_around(state, block).consumers(block)
    around = consumers[0].loops if consumers else ()
    for number, loop in enumerate(around):
        place = state.loop(loop.loop_var)
        text = f"in {loop_path(place)} ({extent_text(loop.extent)})"
        reason = None if number in possible else _why_not_there(state, block, place)
        options.append(TraceOption(text, number, reason))
    return options


def _why_not_there(state: ScheduleState, block: BlockPlace, place: LoopPlace) -> str:
    loop = place.loop
    if is_const_int(loop.extent, 1):
        return "a loop of one iteration"
    try:
        compute_at(state, block.block.identity, loop.loop_var, True, LAST)
    except REPLAY_ERRORS as error:
        return reason_of(error)
    if loop_type(loop) == IterType.DATA_PARALLEL:
        return "never drawn: a spatial loop inside of a reduction"
    return "never drawn: the innermost reduction"


def _candidates(extent: int, chosen: int) -> list[int]:
    """Values to offer as a factor: the divisors, and small numbers that show what does not fit."""
    return sorted({*divisors(extent), *range(1, min(SMALL, extent + 1)), chosen})
