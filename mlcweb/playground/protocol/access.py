"""The accesses of a program, and what a cache makes of them. Streams are packed: numbers as bytes
in base64."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.playground.protocol.titled import Titled


@dataclass(slots=True)
class CacheSettings:
    """The simulated cache, in bytes; 0 ways for one set of all lines."""

    line: int
    size: int
    ways: int


FIRST_CACHE = CacheSettings(32, 512, 4)
"""So small that a matrix of 16x16 does not fit."""


@dataclass(slots=True)
class AccessLoop:
    """A loop around a subscript: its first value and how many there are."""

    name: str
    low: int
    extent: int


@dataclass(slots=True)
class AccessSite:
    """A subscript in the text of the program.

    Attributes:
        buffer: its number among the buffers.
        text: such as "A[vi, vk]".
        loops: outermost first.
        badge: "unit", "stride n", "same", "irregular" or "once", in `loop`.
        loop: the innermost with more than one iteration.
    """

    buffer: int
    write: bool
    text: str
    line: int
    loops: list[AccessLoop]
    badge: str
    loop: str | None


@dataclass(slots=True)
class AccessBuffer:
    """A buffer in the simulated memory; `base` is the byte that it begins at."""

    name: str
    dtype: str
    shape: list[int]
    item_bytes: int
    base: int


@dataclass(slots=True)
class AccessFigures:
    """Counts of accesses, and of lines.

    Attributes:
        first: misses on lines that were never touched before.
        bytes: moved for what was fetched and written.
    """

    accesses: int
    hits: int
    first: int
    fetched: int
    written: int
    bytes: int


@dataclass(slots=True)
class AccessResult:
    """What a cache made of the accesses.

    Attributes:
        hit: of each access, as uint8, packed.
        evicted: for each access the line that had to go, or -1, as int32, packed.
        rows: one for each site.
        sentences: on the program, or on what is different from the other.
        other: in all, of the program that it is compared with.
    """

    hit: str
    evicted: str
    rows: list[AccessFigures]
    total: AccessFigures
    sentences: list[str]
    other: AccessFigures | None


@dataclass(slots=True)
class AccessSize:
    """The largest size left, 0 for the program as it is, and a sentence on what that means."""

    most: int
    note: str


@dataclass(slots=True)
class AccessStream:
    """All accesses in order, packed.

    Attributes:
        site: the subscript that made each, as uint16.
        element: the element touched, counted row by row, as uint32.
        point: the iterations of the loops around, as digits of one number, as float64.
    """

    count: int
    site: str
    element: str
    point: str


@dataclass(slots=True)
class AccessReport:
    """The accesses of a function.

    Attributes:
        other: the program that it is compared with.
        steps: of its schedule, whose programs it can be compared with.
        lines: the text of what was run.
        operations: of the whole run; None if it was not run to the end.
    """

    functions: list[str]
    function: str
    other: str | None
    steps: list[Titled]
    size: AccessSize
    lines: list[str]
    buffers: list[AccessBuffer]
    sites: list[AccessSite]
    stream: AccessStream
    operations: float | None
    result: AccessResult
