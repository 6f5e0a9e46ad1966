"""Searches: what is asked, what each trial came to, and records as the page stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mlcweb.playground.protocol.titled import Titled

Strategy = Literal["function", "random", "evolutionary", "exhaustive"]
"""How schedules are found: by calling a function of the program, or by a strategy in the default
space."""

TrialState = Literal["measured", "recalled", "repeated", "failed"]
"""A "recalled" time comes from an earlier search, a "repeated" one from an earlier trial."""

MAX_SEARCHES = 8
"""Searches that can be looked at; older ones are forgotten."""


@dataclass(slots=True)
class SearchSettings:
    """What a search is asked to do.

    Attributes:
        module: a module, or a single function, of the document.
        function: which TensorIR function of the module; the only one, or "main", where None.
        schedule_function: for the strategy "function": a function of the program that takes a
            schedule.
        seed: the same seed and the same times give the same search.
        trials: programs to try; without end where None.
        seconds: time to search for; without end where None.
        workers: programs measured at one time; by default what suits the machine.
    """

    document: str
    module: str
    function: str | None = None
    strategy: Strategy = "function"
    schedule_function: str | None = None
    seed: int = 0
    trials: int | None = None
    seconds: float | None = None
    workers: int | None = None


@dataclass(slots=True)
class WorkloadKey:
    """How the page's storage knows a program; `line` is its line of TVM's file of workloads."""

    key: str
    line: str


@dataclass(slots=True)
class StoredRecord:
    """A record as the page stores it.

    Attributes:
        id: that of its schedule: a later time of it takes the place of the first.
        workload: the key of its workload.
        program: the hash of the scheduled program, where it is known.
        seconds: None for a schedule that failed.
        record: as TVM's file of records holds it, without the workload's number.
    """

    id: str
    workload: str
    program: str | None
    seconds: float | None
    record: str


@dataclass(slots=True)
class RecordGroup(WorkloadKey):
    """Records of one workload."""

    records: list[StoredRecord]


@dataclass(slots=True)
class ReadRecords:
    """Files of records, read, and sentences about lines that were skipped."""

    groups: list[RecordGroup]
    warnings: list[str]


@dataclass(slots=True)
class EarlierRecord:
    """A whole record of an earlier search, and the hash of its program, where it is known."""

    record: str
    program: str | None


@dataclass(slots=True)
class EarlierRecords:
    """What earlier searches measured of a workload.

    Attributes:
        programs: hashes, and seconds (None where it failed).
        lines: the fastest as a whole.
        unreadable: how many the page left out, because they are damaged.
    """

    programs: list[tuple[str, float | None]]
    lines: list[EarlierRecord]
    unreadable: int = 0


@dataclass(slots=True)
class SearchStart:
    """A search that has begun, of the page or of a program.

    Attributes:
        baseline_seconds: the time of the unscheduled program, where it is known.
        workers: how many trials are measured at one time.
        operations: arithmetic operations of a call; 0 where they cannot be counted.
        unreadable: how many earlier records were left out, because they are damaged or of another
            version.
        planned: how many trials there will be, where that is known.
        workload: how the page's storage knows the program.
    """

    document: str
    title: str
    baseline_seconds: float | None
    workers: int
    operations: float
    planned: int | None
    workload: WorkloadKey
    unreadable: int = 0


@dataclass(slots=True)
class TrialResult:
    """What a trial came to.

    Attributes:
        seconds: per call, the median of all batches.
        reason: why a failed trial failed.
        same_as: the earlier trial with the same program, whose time a repeated trial takes over.
        confirmed: whether it was measured once more at the end, with nothing beside it.
        predicted: what the cost model thought of it before it was measured; larger is faster.
    """

    index: int
    state: TrialState
    seconds: float | None
    reason: str | None
    same_as: int | None
    confirmed: bool
    predicted: float | None
    round: int


@dataclass(slots=True)
class TrialUpdate(TrialResult):
    """A trial as Python tells it; what was told before is None.

    Attributes:
        space: the number of its design space.
        labels: with the first trial of a design space, for each decision the names of its numbers,
            which are those that the trace's controls have.
        record: what the page stores.
    """

    decisions: list[str] | None
    space: int | None
    labels: list[list[str]] | None
    record: StoredRecord | None


@dataclass(slots=True)
class TrialDetails:
    """One trial, looked at.

    Attributes:
        diff: the program before any step, and the trial's, line by line with "-", "+" or a blank
            in front.
        code: Python that builds its schedule again.
        replacing: Python that also replaces the function in its module.
    """

    trace: Titled
    diff: str
    code: str | None
    replacing: str | None


@dataclass(slots=True)
class ModelInput:
    """A parameter of a model, and where its content is from: a variable of the program, or
    "random"."""

    name: str
    source: str


@dataclass(slots=True)
class ModelTimes:
    """Seconds of a model before and after one of its functions is replaced; `entry` is its graph
    function."""

    before: float
    after: float
    entry: str
    inputs: list[ModelInput]


@dataclass(slots=True)
class SearchNews:
    """What is new of a search: what `search.begin` and `search.step` answer, and what Python tells
    of a search that a program runs by itself. `start` comes with the first message."""

    id: str
    start: SearchStart | None
    trials: list[TrialUpdate]
    over: bool
