"""Traces step by step: the program after each instruction, and what the instruction changed.

The programs come from replaying the instructions one by one on the program that the trace starts
from. A trace does not hold that program, so the program's own modules are tried. A reader may
replace decisions; what follows from them is derived in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.playground import trace_controls
from mlcweb.playground.aligned import aligned
from mlcweb.playground.protocol.titled import Titled
from mlcweb.playground.protocol.trace import (
    Changes,
    DerivedTrace,
    Instruction,
    TraceFailure,
    TraceStep,
)
from mlcweb.playground.session import Document, session
from mlcweb.playground.trace_nest import nest, vanished
from mlcweb.playground.trace_replay import Replay, replay
from mlcweb.playground.trace_words import words
from mlcweb.schedule import Trace
from mlcweb.schedule.instruction import python_text

MAX_REPLAYS = 8
"""Replays kept of each trace, for readers who go back and forth between decisions."""


@dataclass(slots=True)
class Record:
    """A trace that the page knows."""

    owner: str
    title: str
    trace: Trace
    originals: tuple[IRModule, ...]
    result: IRModule | None
    start: IRModule | None = None
    replays: dict[str, Replay] = field(default_factory=dict)


def register(
    document: Document,
    owner: str,
    title: str,
    trace: Trace,
    originals: Iterable[IRModule],
    result: IRModule | None,
) -> Titled:
    """Keep a trace in a document.

    Args:
        owner: who lets go of it again (`Document.forget_traces`).
        trace: copied, so that later steps do not change what is shown.
        originals: programs that the trace may start from.
        result: the program that the trace arrives at, where that is known.
    """
    identifier = session.new_id("t")
    document.traces[identifier] = Record(owner, title, trace.copy(), tuple(originals), result)
    return Titled(identifier, title)


def trace_steps(trace_id: str) -> list[TraceStep]:
    """Every step of a trace as recorded, step 0 (the program before any) included.

    Raises:
        TVMError: the trace fits no program, or is of an earlier run.
    """
    return _steps(replayed(trace_id))


def derive(trace_id: str, changes: Changes) -> DerivedTrace:
    """A trace with some decisions replaced."""
    done = replayed(trace_id, changes)
    failure = done.failure
    return DerivedTrace(
        _steps(done),
        trace_controls.controls(session.trace(trace_id).trace, done, changes),
        failure and TraceFailure(failure.step, str(failure)),
    )


def refusal(trace_id: str, changes: Changes, step: int, decision: Any) -> str | None:
    """Why a step of a trace cannot decide so, if a later step refuses what comes of it."""
    done = replayed(trace_id, changes)
    return trace_controls.refusal(session.trace(trace_id).trace, done, changes, step, decision)


def _steps(done: Replay) -> list[TraceStep]:
    text = done.start.module.script().rstrip("\n")
    shown = marked_diff(text, text), nest(done.start, done.first_origins)
    steps = [TraceStep(0, None, "the program before any step", False, *shown, removed=[])]
    for step, instruction in zip(done.steps, _instructions(done.schedule.trace), strict=True):
        entry = TraceStep(len(steps), instruction, words(step), step.changed)
        if step.changed:
            previous, text = text, step.after.module.script().rstrip("\n")
            entry.diff = marked_diff(previous, text)
            entry.nest = nest(step.after, step.origins, step.before)
            entry.removed = vanished(step.before, step.after)
        steps.append(entry)
    return steps


def _instructions(trace: Trace) -> Iterator[Instruction]:
    names = trace.names()
    for inst, text in zip(trace.insts, trace.as_python(), strict=True):
        sampling = inst.kind.sampling
        decision = python_text(trace.get_decision(inst), names) if sampling else None
        yield Instruction(text, decision, sampling)


def marked_diff(before: str, after: str) -> str:
    """Both texts line by line, what was removed before what was added in its place, each line with
    "-", "+" or a blank in front."""
    old, new = before.splitlines(), after.splitlines()
    marked = []
    for i, j in aligned(old, new):
        mark = "-" if j is None else "+" if i is None else " "
        marked.append(mark + (old[i] if i is not None else new[j or 0]))
    return "\n".join(marked)


def replayed(identifier: str, changes: Changes | None = None) -> Replay:
    """The replay of a registered trace with other decisions; done once and kept."""
    record = session.trace(identifier)
    changes = changes or {}
    key = json.dumps(changes, sort_keys=True)
    if key not in record.replays:
        start = starting_program(record)
        while len(record.replays) >= MAX_REPLAYS:
            del record.replays[next(iter(record.replays))]
        if key not in record.replays:
            record.replays[key] = replay(record.trace, start, changes)
    return record.replays[key]


def starting_program(record: Record) -> IRModule:
    """The program that a trace starts from: the first that it can be replayed on, and that leads
    to its result where that is known."""
    if record.start is not None:
        return record.start
    reason = ""
    for original in record.originals:
        done = replay(record.trace, original)
        if done.failure is not None:
            reason = reason or f": {done.failure}"
        elif record.result is None or structural_equal(done.modules[-1], record.result):
            record.start = original
            record.replays["{}"] = done
            return original
    raise TVMError(
        "the trace does not start from a module that the program keeps in a variable" + reason
    )
