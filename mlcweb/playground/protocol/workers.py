"""What the page, the worker that Python runs in and the light workers of trials say to each other.

These messages are between two halves of the page, both in JavaScript: Python has the classes so
that their types are generated as all others are. A field whose default is None may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NewType, TypeAlias

from mlcweb.playground.protocol.program import Picture
from mlcweb.runtime.host.trial_messages import TrialJob, TrialOutcome, TrialWorkload, Uint8Array

MessagePort = NewType("MessagePort", object)
SharedArrayBuffer = NewType("SharedArrayBuffer", object)
WebAssemblyMemory = NewType("WebAssemblyMemory", object)
CallName = NewType("CallName", str)
"""A key of `Calls`, the functions that the page may call."""

Stream = Literal["stdout", "stderr"]


@dataclass(slots=True)
class Dropped:
    """Output that was left out, because there was too much of it.

    Attributes:
        characters: what the lines, pictures and pages of HTML count for together.
    """

    lines: int
    characters: int
    pictures: int | None = None
    pages: int | None = None


@dataclass(slots=True)
class OutputChunk:
    """What a program wrote or showed.

    Attributes:
        dropped: what was left out before it.
        picture: in the place of a text.
        html: a page of HTML in the place of a text, to be shown in a frame that may do nothing.
    """

    stream: Stream
    text: str
    dropped: Dropped | None = None
    picture: Picture | None = None
    html: str | None = None


@dataclass(slots=True)
class RuntimeFacts:
    """The Python that has started.

    Attributes:
        restored: whether its memory was restored from an earlier visit.
        milliseconds: from the worker's start to ready.
    """

    pyodide: str
    python: str
    mlcweb: str
    isolated: bool
    restored: bool
    milliseconds: float


@dataclass(slots=True)
class StartMessage:
    """Start Python; `backlog` is the memory of a `Backlog`, `gpu` the port of a `GpuStarter`."""

    type: Literal["start"]
    base: str
    interrupt: Uint8Array | None
    backlog: SharedArrayBuffer | None
    trials: MessagePort
    gpu: MessagePort | None


@dataclass(slots=True)
class CallMessage:
    """Call a function; `look`: a view looks something up, and what the reader asks comes first."""

    type: Literal["call"]
    id: int
    name: CallName
    args: list[Any]
    look: bool


@dataclass(slots=True)
class SeenMessage:
    """Where Python is another frame's: output of that size was seen."""

    type: Literal["seen"]
    size: int


@dataclass(slots=True)
class FrameMessage:
    """Where Python is another frame's: join in, stop what this frame runs there, interrupt what
    views look up, end Python."""

    type: Literal["join", "stop", "makeWay", "end"]


@dataclass(slots=True)
class InterruptMessage:
    """Python waits for something, perhaps: it is to look whether it is interrupted."""

    type: Literal["interrupt"]


@dataclass(slots=True)
class PingMessage:
    """Asks for a `PongMessage`, which comes once no program blocks the thread."""

    type: Literal["ping"]


ToWorker: TypeAlias = (
    StartMessage | CallMessage | InterruptMessage | PingMessage | SeenMessage | FrameMessage
)


@dataclass(slots=True)
class ProgressMessage:
    """A step of the start, or of fetching what a program imports."""

    type: Literal["progress"]
    stage: str
    fraction: float


@dataclass(slots=True)
class ReadyMessage:
    """Python takes calls."""

    type: Literal["ready"]
    runtime: RuntimeFacts


@dataclass(slots=True)
class LoadedMessage:
    """What came behind, or what a program imports, is there, too."""

    type: Literal["loaded"]


@dataclass(slots=True)
class SnapshotMessage:
    """Python's memory, for the page to store under that key; it comes before any program runs."""

    type: Literal["snapshot"]
    key: str
    memory: Uint8Array


@dataclass(slots=True)
class PongMessage:
    """The answer to a `PingMessage`."""

    type: Literal["pong"]


@dataclass(slots=True)
class FailedMessage:
    """Python did not start, or is broken."""

    type: Literal["failed"]
    message: str


@dataclass(slots=True)
class RestartedMessage:
    """Where Python is another frame's: it was ended there."""

    type: Literal["restarted"]
    reason: str


@dataclass(slots=True)
class OutputMessage:
    """What the program that runs has written."""

    type: Literal["output"]
    chunks: list[OutputChunk]
    size: int


@dataclass(slots=True)
class EventMessage:
    """Python tells of something while it is busy: one of `Events`, or what a program tells."""

    type: Literal["event"]
    name: str
    data: Any


@dataclass(slots=True)
class AnswerMessage:
    """What a call returns."""

    type: Literal["answer"]
    id: int
    value: Any


@dataclass(slots=True)
class RefusalMessage:
    """Why a call failed."""

    type: Literal["refusal"]
    id: int
    message: str
    stopped: bool | None = None


@dataclass(slots=True)
class StartThreadsMessage:
    """Start threads that run parallel loops on this memory, those from the number `first` to before
    `count`; `slots` is where their tasks are."""

    type: Literal["startThreads"]
    memory: WebAssemblyMemory
    slots: SharedArrayBuffer
    first: int
    count: int


@dataclass(slots=True)
class EndThreadsMessage:
    """End all threads, and tell so in their slots."""

    type: Literal["endThreads"]


FromWorker: TypeAlias = (
    ProgressMessage
    | ReadyMessage
    | LoadedMessage
    | SnapshotMessage
    | StartThreadsMessage
    | EndThreadsMessage
    | PongMessage
    | FailedMessage
    | RestartedMessage
    | OutputMessage
    | EventMessage
    | AnswerMessage
    | RefusalMessage
)


@dataclass(slots=True)
class ThreadMessage:
    """To a thread: run the tasks of a slot on this memory, and hold a lock until the end."""

    memory: WebAssemblyMemory
    slots: SharedArrayBuffer
    number: int
    lock: str


@dataclass(slots=True)
class WorkloadMessage:
    """The buffers of the kernels to come."""

    type: Literal["workload"]
    workload: TrialWorkload


@dataclass(slots=True)
class JobMessage:
    """Measure a kernel."""

    type: Literal["run"]
    job: TrialJob


ToTrialWorker: TypeAlias = WorkloadMessage | JobMessage


@dataclass(slots=True)
class UpMessage:
    """A light worker has started."""

    type: Literal["up"]


@dataclass(slots=True)
class OutcomeMessage:
    """What became of a kernel."""

    type: Literal["outcome"]
    outcome: TrialOutcome


FromTrialWorker: TypeAlias = UpMessage | OutcomeMessage


@dataclass(slots=True)
class SharedReply:
    """Shared memory for an answer that cannot come as a message."""

    bell: SharedArrayBuffer
    answer: SharedArrayBuffer


@dataclass(slots=True)
class OpenPoolMessage:
    """Have workers ready for an owner: several searches may hold some at one time."""

    type: Literal["open"]
    owner: int
    workload: TrialWorkload
    workers: int
    limit_ms: float


@dataclass(slots=True)
class RunInPoolMessage:
    """Measure a kernel of an owner."""

    type: Literal["run"]
    owner: int
    id: int
    job: TrialJob
    reply: SharedReply | None = None


@dataclass(slots=True)
class ClosePoolMessage:
    """An owner needs its workers no more."""

    type: Literal["close"]
    owner: int


ToTrialPool: TypeAlias = OpenPoolMessage | RunInPoolMessage | ClosePoolMessage


@dataclass(slots=True)
class FromTrialPool:
    """What became of a kernel that was asked for under this number."""

    id: int
    outcome: TrialOutcome
