"""The kernels of a function: what its threads run, and what each launch of them is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlcweb.analysis.queries import undefined_vars
from mlcweb.analysis.threads import ATOMIC, is_shared, stored_data, thread_tag
from mlcweb.codegen.external import for_arrays
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import children, find_nodes
from mlcweb.lower.launch_threads import lower_for_device
from mlcweb.lower.pipeline import Observer
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, constant_value
from mlcweb.tir.buffer import Buffer, Range
from mlcweb.tir.function import PrimFunc

NO_THREADS = (
    "Did you forget to bind? A function for a GPU computes in threads: sch.bind(loop, "
    '"blockIdx.x"), sch.bind(loop, "threadIdx.x")'
)


DYNAMIC_ALIGNMENT = 128
"""Bytes."""


def constant_bytes(buffer: Buffer) -> int:
    """The bytes of flat memory; 0 where their number is not constant."""
    size = constant_value(buffer.shape[0])
    return int(size) * dtypes.size_in_bytes(buffer.dtype) if size else 0


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKernel:
    """A launch of threads.

    Attributes:
        name: What it is called.
        buffers: The memory that it is given, in the order of parameters.
        scalars: The numbers that it is given after that: sizes, and loops of the host.
        written: The data of those buffers that it writes.
        axes: The extent of each axis of blocks and threads, by tag ("blockIdx.x").
        indices: The variables of these axes, and their tags.
        shared: Memory that the threads of a block have together. Where the language can, that of
            scope "shared.dyn" is one piece, whose size a launch tells.
        launch: The outermost of the loops over its axes, in the function that launches it; None
            for a function that computes without threads.
        body: What one thread runs.
    """

    name: str
    buffers: tuple[Buffer, ...]
    scalars: tuple[E.Var, ...]
    written: frozenset[E.Var]
    axes: Mapping[str, E.PrimExpr]
    indices: Mapping[E.Var, str]
    shared: tuple[Buffer, ...]
    launch: S.For | None
    body: S.Stmt

    @property
    def domains(self) -> dict[E.Var, Range]:
        """The values of the variables of its axes."""
        axes = {var: self.axes[tag] for var, tag in self.indices.items()}
        return {var: Range(const(0, var.dtype), extent) for var, extent in axes.items()}

    @property
    def atomic(self) -> frozenset[E.Var]:
        """The data that other threads see and atomics update."""
        visible = {buffer.data for buffer in (*self.buffers, *self.shared)}
        updates: Any = (part.body for part in S.find_attributes(self.body, ATOMIC))
        return frozenset(update.buffer.data for update in updates) & visible

    def dynamic_shared(self) -> tuple[dict[Buffer, int], int]:
        """Where in one piece of memory each buffer of scope "shared.dyn" begins, and how many bytes
        they take."""
        offsets: dict[Buffer, int] = {}
        end = 0
        for buffer in self.shared:
            if buffer.scope() == "shared.dyn":
                offsets[buffer] = -(-end // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT
                end = offsets[buffer] + constant_bytes(buffer)
        return offsets, end

    def extent(self, tag: str) -> E.PrimExpr:
        """The extent of an axis; 1 for one that is not bound."""
        return self.axes.get(tag, const(1))

    def block_size(self) -> tuple[int, int, int]:
        """The threads of a block along x, y and z.

        Raises:
            TVMError: an extent is no constant.
        """
        sizes = []
        for axis in "xyz":
            extent = self.extent(f"threadIdx.{axis}")
            if not isinstance(extent, E.IntImm):
                raise TVMError(
                    f'"{self.name}" has {extent} threads along threadIdx.{axis}; the number of '
                    "threads of a block is a constant: split the loop by one before it is bound"
                )
            sizes.append(extent.value)
        return sizes[0], sizes[1], sizes[2]


def kernels_of(
    func: PrimFunc,
    name: str,
    observe: Observer | None = None,
    warp: int = 1,
    asynchronous: bool = False,
) -> tuple[PrimFunc, list[DeviceKernel]]:
    """The lowered function, and its kernels in the order of the program; `observe` hears of each
    pass. Where their language can (`Language.exchange`), `warp` neighbouring threads read each
    other's registers; with 1 the kernels are for any language. So they are unless copies can be
    `asynchronous` (`Language.async_copies`).

    Raises:
        TVMError: the function computes outside of threads.
        ThreadError: its threads cannot run as they are written.
    """
    lowered = lower_for_device(for_arrays(func), observe, warp, asynchronous)
    allocated = {
        part.buffer.data: part.buffer for part in S.find_statements(lowered.body, S.AllocBuffer)
    }
    owners = {buffer.data: buffer for buffer in lowered.parameter_buffers} | allocated
    launches = _launches(lowered.body, name)
    if not launches:
        raise TVMError(f'"{name}" has no threads. {NO_THREADS}')
    names = (f"{name}_kernel{f'_{n}' if n else ''}" for n in range(len(launches)))
    kernels = [_kernel(n, loop, owners) for n, loop in zip(names, launches, strict=True)]
    shared = [buffer for kernel in kernels for buffer in kernel.shared]
    for buffer in shared:
        if shared.count(buffer) > 1:
            raise TVMError(
                f'"{buffer.name}" is shared memory, which does not last from one kernel to the '
                "next; leave it in global memory, or compute one of the blocks at a loop of the "
                "other",
                buffer.span,
            )
    return lowered, kernels


def _launches(statement: S.Stmt, name: str) -> list[S.For]:
    """The outermost loops over axes; between them the host only loops, chooses and allocates."""
    if isinstance(statement, S.For) and statement.thread_binding is not None:
        return [statement]
    if isinstance(statement, S.BufferStore):
        raise TVMError(
            f'"{name}" writes "{statement.buffer.name}" outside of any thread. {NO_THREADS}',
            statement.span,
        )
    inside = (child for child in children(statement) if isinstance(child, S.Stmt))
    return [loop for child in inside for loop in _launches(child, name)]


def _kernel(name: str, loop: S.For, owners: Mapping[E.Var, Buffer]) -> DeviceKernel:
    axes: dict[str, E.PrimExpr] = {}
    indices: dict[E.Var, str] = {}
    shared: list[Buffer] = []
    body: S.Stmt = loop
    while True:
        if isinstance(body, S.For) and body.thread_binding is not None:
            tag = body.thread_binding.thread_tag
            axes[tag], indices[body.loop_var] = body.extent, tag
        elif isinstance(body, S.AllocBuffer) and not _is_in_threads(body, indices):
            shared.append(body.buffer)
        else:
            break
        body = body.body
    free = undefined_vars(body, [buffer.data for buffer in shared])
    used = [var for var in owners if var in free]
    shared += [owners[var] for var in used if is_shared(owners[var])]
    extents = [var for extent in axes.values() for var in find_nodes(extent, E.Var)]
    scalars = dict.fromkeys(var for var in (*free, *extents) if var.dtype != "handle")
    return DeviceKernel(
        name,
        tuple(owners[var] for var in used if not is_shared(owners[var])),
        tuple(var for var in scalars if var not in indices),
        frozenset(stored_data(body)),
        axes,
        indices,
        tuple(shared),
        loop,
        body,
    )


def _is_in_threads(allocation: S.AllocBuffer, indices: Mapping[E.Var, str]) -> bool:
    """Whether each thread has the memory for itself."""
    threads = any(tag.startswith("threadIdx") for tag in indices.values())
    inside = isinstance(allocation.body, S.For) and thread_tag(allocation.body)
    return not is_shared(allocation.buffer) and threads and not inside
