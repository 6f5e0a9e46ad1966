"""The lowering of a function from TensorIR to flat loops: which passes run, and in which order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlcweb.lower.compact_buffers import compact_buffers
from mlcweb.lower.convert_blocks_to_loops import convert_blocks_to_loops
from mlcweb.lower.flatten_buffers import flatten_buffers
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.place_allocations import place_allocations
from mlcweb.lower.serialize_threads import serialize_threads
from mlcweb.lower.simplify import simplify
from mlcweb.lower.thread_axes import exchanges_data
from mlcweb.tir.function import PrimFunc

Pass = Callable[[PrimFunc], PrimFunc]

TO_SERIAL_LOOPS: tuple[Pass, ...] = (
    lower_init_block,
    convert_blocks_to_loops,
    serialize_threads,
)

PASSES: tuple[Pass, ...] = (
    *TO_SERIAL_LOOPS,
    place_allocations,
    compact_buffers,
    flatten_buffers,
    simplify,
)


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass did, and how many seconds it took."""

    name: str
    before: PrimFunc
    after: PrimFunc
    seconds: float

    @property
    def changed(self) -> bool:
        return self.after is not self.before


def record_lowering(func: PrimFunc, passes: Sequence[Pass] = PASSES) -> list[PassRecord]:
    """Run passes one after another and keep what each started from and made."""
    records = []
    for run in passes:
        start = time.perf_counter()
        after = run(func)
        seconds = time.perf_counter() - start
        records.append(PassRecord(run.__name__, func, after, seconds))
        func = after
    return records


def lower(func: PrimFunc) -> PrimFunc:
    """The function as flat loops: no blocks, buffers of one dimension, allocations in place.

    The kinds and annotations of loops are kept.
    """
    for run in PASSES:
        func = run(func)
    return func


def without_threads(func: PrimFunc) -> PrimFunc:
    """The function, with serial loops and no blocks if its threads exchange data: for those who
    else take TensorIR as it is, and run loops over threads as any other."""
    if not exchanges_data(func):
        return func
    for run in (*TO_SERIAL_LOOPS, simplify):
        func = run(func)
    return func
