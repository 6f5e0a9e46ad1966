"""Functions whose iterations are apart from each other, for a target: by threads on a GPU, in order
on a processor."""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.schedule import Schedule
from mlcweb.script import tir as T
from mlcweb.tir.function import SCHEDULED, PrimFunc

if TYPE_CHECKING:
    from mlcweb.runtime.target import Target

THREADS = 64
"""Threads of a block, where a GPU takes so many."""


def threads_of(target: Target | None) -> int:
    """How many threads of a block share iterations; one on a processor."""
    if target is None or "gpu" not in target.keys:
        return 1
    return min(THREADS, int(target.attrs.get("max_num_threads", THREADS)))


def one_thread_each(func: PrimFunc, target: Target | None) -> PrimFunc:
    """The function with a thread for each iteration of the loops around its block, where the target
    has threads. It takes no other schedule."""
    threads = threads_of(target)
    if threads > 1:
        schedule = Schedule(func)
        (block,) = schedule.get_child_blocks(schedule.get_block("root"))
        blocks, lanes = schedule.split(schedule.fuse(*schedule.get_loops(block)), [None, threads])
        schedule.bind(blocks, "blockIdx.x")
        schedule.bind(lanes, "threadIdx.x")
        func = schedule.mod["main"].with_attr("global_symbol", func.attrs["global_symbol"])
    return func.with_attr(SCHEDULED, True)


class Threads:
    """The loops of a script over iterations that no schedule can prove to be apart, since they
    write where data says: `for block in threads.blocks(count): for lane in threads.lanes():`."""

    def __init__(self, target: Target | None) -> None:
        self.count = threads_of(target)

    def blocks(self, iterations: Any) -> Any:
        if self.count == 1:
            return T.serial(iterations)
        return T.thread_binding((iterations + self.count - 1) // self.count, "blockIdx.x")

    def lanes(self) -> Any:
        return T.serial(1) if self.count == 1 else T.thread_binding(self.count, "threadIdx.x")
