"""A kernel as a GPU sees it: its threads, the cost of each access, phases and fetches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.codegen.gpu.kernels import DeviceKernel, kernels_of
from mlcweb.ir import TVMError
from mlcweb.ir.visitor import walk
from mlcweb.lower.pipeline import PassRecord
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.playground.gpu.counts import Launch, count
from mlcweb.playground.gpu.fetch import Fetch, fetch
from mlcweb.playground.gpu.occupancy import bytes_of, estimated_registers
from mlcweb.playground.gpu.sites import Site, Sites, sites_of
from mlcweb.playground.protocol.gpu import SECTOR, GpuCost
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


@dataclass(eq=False)
class KernelProfile:
    """What the view shows of a kernel.

    Attributes:
        operations: Of the whole launch, None where that is not known.
        columns: How many elements of a buffer of several dimensions lie between its rows, by its
            data.
    """

    kernel: DeviceKernel
    operations: float | None
    columns: dict[E.Var, int]

    @cached_property
    def launch(self) -> Launch:
        return Launch(self.kernel)

    @cached_property
    def parts(self) -> Sites:
        return sites_of(self.kernel)

    @property
    def sites(self) -> list[Site]:
        return self.parts.sites

    @cached_property
    def counts(self) -> list[GpuCost | None]:
        """Of each site."""
        return [count(site, self.launch) for site in self.sites]

    @cached_property
    def fetches(self) -> list[Fetch]:
        waiting = {step.loop.var for step in self.parts.steps if step.loop is not None}
        fetches = (fetch(site, self.launch, waiting) for site in self.sites)
        return [each for each in fetches if each is not None]

    @cached_property
    def registers(self) -> int:
        """Of a thread, estimated."""
        return estimated_registers(self.kernel, self.parts)

    @property
    def shared_bytes(self) -> int:
        """Of a block."""
        return sum(map(bytes_of, self.kernel.shared))

    @property
    def argument_bytes(self) -> int:
        """Of the arrays that a kernel is given, each once for reading and once for writing."""
        kernel = self.kernel
        loads = (part for part in walk(kernel.body) if isinstance(part, E.BufferLoad))
        read = {load.buffer.data for load in loads}
        return sum(
            bytes_of(buffer) * ((buffer.data in read) + (buffer.data in kernel.written))
            for buffer in kernel.buffers
        )

    @property
    def moved_bytes(self) -> float:
        """By the transactions of all warps, as if no cache held anything."""
        return SECTOR * self.sectors

    @property
    def sectors(self) -> float:
        return sum(counts.sectors for counts in self.counts if counts)


def profiles(func: PrimFunc, name: str) -> list[KernelProfile]:
    """The kernels of a function.

    Raises:
        TVMError: the function computes outside of threads, or its sizes are not known.
    """
    columns: dict[E.Var, int] = {}

    def observe(record: PassRecord) -> None:
        if record.name == "FlattenBuffer":
            columns.update(_columns(record.before))

    _, kernels = kernels_of(func, name, observe, WARP_SIZE)
    return [
        KernelProfile(kernel, _operations(func, kernel, len(kernels)), columns)
        for kernel in kernels
    ]


def _columns(func: PrimFunc) -> dict[E.Var, int]:
    buffers = [s.buffer for s in S.statements_in(func.body) if isinstance(s, S.AllocBuffer)]
    rows = {b.data: b.strides[-2] if b.strides else b.shape[-1] for b in buffers if b.ndim > 1}
    return {data: row.value for data, row in rows.items() if isinstance(row, E.IntImm)}


def _operations(func: PrimFunc, kernel: DeviceKernel, kernels: int) -> float | None:
    try:
        if kernels == 1:
            return estimate_flops(func)
        launch = Launch(kernel)
        body = PrimFunc(func.params, kernel.body)
        return estimate_flops(body) * launch.threads * launch.blocks
    except TVMError:
        return None
