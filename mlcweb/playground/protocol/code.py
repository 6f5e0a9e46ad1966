"""Machine code: the stages of a function as text, each line with those that it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mlcweb.runtime.machine_peak import MachinePeak

VECTOR_PREFIXES = ("v128.", "i8x16.", "i16x8.", "i32x4.", "i64x2.", "f32x4.", "f64x2.")
"""How the names of vector instructions begin."""


@dataclass(slots=True)
class PassLine:
    """A line after a pass of lowering, or one that it removed, and the lines of the TensorIR that
    it was made from."""

    kind: Literal["same", "added", "removed"]
    text: str
    origins: list[int]


@dataclass(slots=True)
class PassResult:
    """The loops after a pass, against those before it."""

    lines: list[PassLine]


@dataclass(slots=True)
class SourceText:
    """The function as it was given.

    Attributes:
        stands_for: for each line the lines, from 1, whose code is meant by it.
    """

    lines: list[str]
    stands_for: list[list[int]]


@dataclass(slots=True)
class TracedText:
    """Text whose lines know which lines, from 1, of an earlier text they were made from."""

    lines: list[str]
    origins: list[list[int]]


@dataclass(slots=True)
class PassName:
    """A pass of lowering, and whether it changed the function."""

    name: str
    changed: bool


@dataclass(slots=True)
class LoopSize:
    """The innermost loop that most instructions run in."""

    name: str
    instructions: int
    simd: int


@dataclass(slots=True)
class CodeSize:
    """How much code it is.

    Attributes:
        bytes: of the module.
        instructions: of the function.
        simd: how many of them are vector instructions.
    """

    bytes: int
    instructions: int
    simd: int
    loop: LoopSize | None


@dataclass(slots=True)
class FusedUse:
    """Fused multiply-adds: whether there are any, they may be used, and how many are."""

    available: bool
    on: bool
    used: int


@dataclass(slots=True)
class CodeError:
    """Why there is no machine code, and at which line of the TensorIR."""

    message: str
    line: int | None


@dataclass(slots=True)
class MachineCode:
    """What a function becomes. Where there is no machine code, `error` says why, and what is
    missing is None.

    Attributes:
        lowered: the loops; they come from lines of `tensorir`.
        wat: the instructions; they come from lines of `lowered`.
        notes: sentences on what is different here.
    """

    functions: list[str]
    function: str
    tensorir: SourceText
    fused: FusedUse
    notes: list[str]
    passes: list[PassName] | None = None
    lowered: TracedText | None = None
    wat: TracedText | None = None
    size: CodeSize | None = None
    error: CodeError | None = None


@dataclass(slots=True)
class CodeMeasurement:
    """How fast a function is.

    Attributes:
        seconds: a call, the median of `repeats`.
        bytes: of all arguments, each once.
        rate: operations a second.
        fused: whether the code uses fused multiply-adds.
        call: seconds of a call that has nothing to do.
        clock_step: in seconds.
        isolated: None outside of browsers.
    """

    seconds: float
    repeats: list[float]
    operations: float
    bytes: int
    rate: float
    fused: bool
    peak: MachinePeak
    call: float
    clock_step: float
    isolated: bool | None
