"""Traces: the steps, what each did, what could be decided otherwise, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Changes = Mapping[int, Any]
"""Decisions (or literal factors of a split) in place of a trace's own, by step, from 1."""


@dataclass(slots=True)
class Instruction:
    """An instruction of a trace.

    Attributes:
        text: as Python, with its decision.
        decision: what a sampling instruction decided, as Python.
    """

    text: str
    decision: str | None
    is_sampling: bool


@dataclass(slots=True)
class NestFunction:
    """A function of the program."""

    name: str
    body: list[NestEntry]
    kind: Literal["function"] = "function"


@dataclass(slots=True)
class NestStatement:
    """A statement that is neither a loop nor a block."""

    text: str
    body: list[NestEntry]
    kind: Literal["statement"] = "statement"


LoopKind = Literal["serial", "parallel", "vectorized", "unrolled", "thread"]


@dataclass(slots=True)
class NestLoop:
    """A loop.

    Attributes:
        thread: the thread axis that it is bound to.
        annotations: as text.
        origin: where it came from, such as "outer part of j, 16 of 128".
        colours: numbers of the loops that it goes back to.
        change: what the step did to it: "new", "moved", "edited", or what it has become.
    """

    name: str
    extent: str
    how: LoopKind
    thread: str | None
    annotations: list[str]
    origin: str
    colours: list[int]
    change: str | None
    body: list[NestEntry]
    kind: Literal["loop"] = "loop"


@dataclass(slots=True)
class NestIterator:
    """An iterator of a block: spatial, reduce, opaque, scan or thread."""

    name: str
    type: str
    value: str


@dataclass(slots=True)
class NestRegion:
    """What a block reads or writes.

    Attributes:
        scope: of the buffer's memory.
        elements: how many; None where that is not constant.
    """

    text: str
    scope: str
    elements: int | None


@dataclass(slots=True)
class NestBlock:
    """A block.

    Attributes:
        where: its predicate.
        buffers: what it allocates, in words.
        annotations: as text.
        change: what the step did to it: "new", "moved" or "edited".
    """

    name: str
    iterators: list[NestIterator]
    where: str | None
    reads: list[NestRegion]
    writes: list[NestRegion]
    init: str | None
    statement: str | None
    buffers: list[str]
    annotations: list[str]
    change: str | None
    body: list[NestEntry]
    kind: Literal["block"] = "block"


NestEntry = NestFunction | NestStatement | NestLoop | NestBlock
"""A part of a loop nest."""


@dataclass(slots=True)
class TraceStep:
    """What a step of a trace did; step 0 is the program before any. Where the step leaves the
    program as it was, `diff`, `nest` and `removed` are None.

    Attributes:
        instruction: of the step; None for step 0.
        words: a sentence without its subject: "splits j (128) into …".
        changed: whether the program is another one after it.
        diff: the lines before and after, with "-", "+" or a blank in front.
        removed: loops and blocks that are no more.
    """

    index: int
    instruction: Instruction | None
    words: str
    changed: bool
    diff: str | None = None
    nest: list[NestFunction] | None = None
    removed: list[str] | None = None


@dataclass(slots=True)
class TraceOption:
    """A value that a part of a decision could have.

    Attributes:
        decision: the whole decision that it would make.
        reason: why it cannot be chosen, as far as this step goes.
    """

    text: str
    decision: Any
    reason: str | None


@dataclass(slots=True)
class TracePart:
    """A number of a decision; without options it follows from the others."""

    name: str
    value: str
    options: list[TraceOption]


@dataclass(slots=True)
class TraceControl:
    """A decision of a trace, and what it could be instead.

    Attributes:
        label: what is decided.
        decision: that in force.
        changed: whether it is another than that of the trace.
    """

    step: int
    kind: Literal["tile", "choice", "location", "factors"]
    label: str
    decision: Any
    changed: bool
    parts: list[TracePart]


@dataclass(slots=True)
class TraceFailure:
    """A step that cannot be done, and why."""

    step: int
    message: str


@dataclass(slots=True)
class DerivedTrace:
    """A trace with some decisions replaced, as far as its steps can be done."""

    steps: list[TraceStep]
    controls: list[TraceControl]
    failure: TraceFailure | None


@dataclass(slots=True)
class StepOutcome:
    """How long the program after a step takes, or why that is not known.

    Attributes:
        seconds: a call, the median of `repeats`.
        reason: it cannot be built, takes too long, or computes something else than before any step.
    """

    state: Literal["measured", "failed", "stopped"]
    seconds: float | None = None
    repeats: list[float] = field(default_factory=list)
    reason: str | None = None


@dataclass(slots=True)
class TimingStart:
    """Workers that time the steps of a trace, and what its first program took."""

    id: str
    outcome: StepOutcome


@dataclass(slots=True)
class TraceComparison:
    """Two traces: pairs of steps, and how the programs differ in the end.

    Attributes:
        rows: numbers of steps; None where the other trace has no such step.
        decided: rows whose steps are the same but for what they decide.
        diff: the texts, line by line with "-", "+" or a blank in front.
    """

    rows: list[tuple[int | None, int | None]]
    decided: list[int]
    equal: bool
    diff: str


@dataclass(slots=True)
class ExportedRecord:
    """A trace as TVM's databases keep it.

    Attributes:
        workload: a line of ``database_workload.json``.
        record: one of ``database_tuning_record.json``, but for the number of that line in front.
    """

    workload: Any
    record: Any
