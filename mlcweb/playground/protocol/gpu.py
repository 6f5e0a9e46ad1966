"""The kernels of a program as a GPU runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mlcweb.playground.protocol.titled import Titled

LANES = 32
"""Threads of a warp."""

SECTOR = 32
"""Bytes of global memory that are moved at once."""

LINE = 128
"""Bytes of a cache line, and of a row of shared memory: 4 sectors, 32 banks."""

BANKS = 32
WORD = 4
"""Bytes that a bank of shared memory gives at a time."""

GpuAccessKind = Literal["load", "store", "atomic"]
GpuStepKind = Literal["phase", "barrier", "loop"]


@dataclass(slots=True)
class GpuAxis:
    """An axis of blocks or threads: its tag, the loop that is bound to it, and how long it is."""

    tag: str
    loop: str
    extent: int


@dataclass(slots=True)
class GpuCost:
    """What an access costs in a launch.

    Attributes:
        requests: of warps, in which some lane takes part.
        active: lanes that take part, in all requests.
        sectors: transactions of 32 bytes with global memory.
        passes: through the banks of shared memory.
        ideal: the fewest transactions or passes.
        least, most: in one request: transactions, or words that one bank has to give.
        exact: whether all were counted, rather than a sample.
    """

    requests: float
    active: float
    sectors: float
    passes: float
    ideal: float
    least: int
    most: int
    exact: bool


@dataclass(slots=True)
class GpuSite:
    """An access of a kernel.

    Attributes:
        text: such as "A[vi, vk]".
        index: the element, by threadIdx, blockIdx and loops.
        line: in the program; null if it is not known.
        cost: null where the addresses depend on data.
        note: what is to be said about the counts.
    """

    buffer: str
    kind: GpuAccessKind
    shared: bool
    text: str
    index: str
    line: int | None
    cost: GpuCost | None
    note: str


@dataclass(slots=True)
class GpuStep:
    """What the threads of a block do, in order: a phase, a barrier, or a loop around what follows
    with one more in `depth`.

    Attributes:
        loop: its name and iterations, for a loop.
        times: how often that is in all, for each block.
        sites: numbers of the accesses of a phase.
    """

    kind: GpuStepKind
    depth: int
    loop: str
    times: int
    sites: list[int]


@dataclass(slots=True)
class GpuFetch:
    """Which thread fetches which element of a shared buffer, in the first block.

    Attributes:
        columns: of the buffer, as its rows are written.
        threads: for each element, -1 for none.
        iterations: for each element, which of the thread's stores it is.
    """

    buffer: str
    columns: int
    threads: list[int]
    iterations: list[int]
    sentence: str


@dataclass(slots=True)
class GpuKernel:
    """A launch of threads.

    Attributes:
        grid, block: along x, y and z.
        registers: of a thread, estimated.
        operations: of the launch, null if not known.
        argument_bytes: of the arrays, once for reading and once for writing.
        moved_bytes: by all transactions.
    """

    name: str
    grid: list[int]
    block: list[int]
    axes: list[GpuAxis]
    threads: int
    warps: int
    shared_bytes: int
    registers: int
    operations: float | None
    argument_bytes: int
    moved_bytes: float
    sites: list[GpuSite]
    steps: list[GpuStep]
    fetches: list[GpuFetch]


@dataclass(slots=True)
class GpuReport:
    """The kernels of a function.

    Attributes:
        others: programs that it can be compared with.
        other: the one that it is compared with.
        steps: of its schedule, to compare with, too.
        problem: why there are no kernels, and what to do.
        sentences: on the kernels, or on what differs from the other program.
        tags: of GPUs.
    """

    functions: list[str]
    function: str
    others: list[str]
    other: str | None
    steps: list[Titled]
    kernels: list[GpuKernel]
    problem: str
    sentences: list[str]
    tags: list[str]
    tag: str


@dataclass(slots=True)
class GpuLanes:
    """What the lanes of a warp of the first block touch, in the first iteration of all loops.

    Attributes:
        bytes: of one lane.
        addresses: in bytes from the beginning of the buffer; null for a lane that takes no part.
    """

    bytes: int
    addresses: list[int | None]
    sentence: str


@dataclass(slots=True)
class GpuLimit:
    """Blocks at a time, as far as one thing goes."""

    name: str
    blocks: int


@dataclass(slots=True)
class GpuOccupancy:
    """How full a multiprocessor is.

    Attributes:
        warps: at a time.
        most: warps that it can hold.
        limits: the tightest first.
        peak: operations on float32 a second, null if not known.
        bandwidth: bytes a second, null if not known.
    """

    registers: int
    warps: int
    most: int
    limits: list[GpuLimit]
    sentence: str
    peak: float | None
    bandwidth: float | None
