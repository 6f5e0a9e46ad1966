"""What Python and the page's light workers say to each other: objects of JavaScript, not JSON.

A field whose default is None may be missing there. The page's types are generated from these
classes (``web/scripts/protocol_types.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NewType, TypeAlias

Uint8Array = NewType("Uint8Array", bytes)
"""Bytes, as JavaScript has them."""


def camel_case(name: str) -> str:
    """A name as the page spells it: ``end_line`` as ``endLine``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def plain(message: Any) -> dict[str, Any]:
    """The fields of a message, and of those that it holds, in the page's spelling."""

    def value_of(value: Any) -> Any:
        if isinstance(value, list):
            return [value_of(item) for item in value]
        return plain(value) if hasattr(value, "__dataclass_fields__") else value

    values = {camel_case(each.name): getattr(message, each.name) for each in fields(message)}
    return {name: value_of(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TrialArray:
    """A buffer: its content before a call and, if known, after a correct call.

    Attributes:
        tolerance: how far floating-point numbers may be from the expected ones.
    """

    dtype: str
    input: Uint8Array
    tolerance: float
    expected: Uint8Array | None = None


@dataclass(frozen=True, slots=True)
class CalibrationWork:
    """Fixed work that tells how fast the machine is.

    Attributes:
        code: a module with a loop.
        iterations: of the loop that are timed.
        min_ms: milliseconds that the clock needs; the work is repeated where it is faster.
    """

    code: Uint8Array
    iterations: int
    min_ms: float


@dataclass(frozen=True, slots=True)
class TrialWorkload:
    """What the kernels of a search have in common."""

    calibration: CalibrationWork
    arrays: list[TrialArray]


@dataclass(frozen=True, slots=True)
class ReplacedArray:
    """A buffer that a kernel takes in place of one of the workload."""

    index: int
    array: TrialArray


@dataclass(frozen=True, slots=True)
class TrialJob:
    """A WebAssembly module, what to call in it, and how that is timed.

    Attributes:
        code: it imports the memory ("env", "memory") and nothing else.
        entry: the export that runs the kernel: takes the addresses of the buffers, and that of
            scratch memory.
        repeated: the export that runs it as often as its first argument says.
        batches: how many, but no more than `fewest` once they took longer than `enough_ms`.
        min_ms: milliseconds that a batch takes at least.
        early_stop_ms: if the first calls all take longer than so many milliseconds, they are all
            that is timed; may be infinite.
        replaced: the buffers that are not those of the workload.
    """

    code: Uint8Array
    entry: str
    repeated: str
    scratch_bytes: int
    batches: int
    fewest: int
    min_ms: float
    enough_ms: float
    early_stop_ms: float
    replaced: list[ReplacedArray] | None = None


@dataclass(frozen=True, slots=True)
class TrialSuccess:
    """What a kernel left and took.

    Attributes:
        seconds: per call, for each batch.
        calibration: what the fixed work took before the first batch and after each; empty where it
            was not timed.
        arrays: the buffers after the first call; missing if all of them are as expected.
    """

    ok: Literal[True]
    seconds: list[float]
    calibration: list[float]
    arrays: list[Uint8Array] | None = None


@dataclass(frozen=True, slots=True)
class TrialFailure:
    """Why there is no time.

    Attributes:
        kind: the name of an error; "TimeoutError", "WorkerDied", "OutOfMemory" and "Stopped" are
            ours.
    """

    ok: Literal[False]
    kind: str
    message: str
    stack: str


TrialOutcome: TypeAlias = TrialSuccess | TrialFailure
