"""Numbers that rules choose by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlcweb.runtime.target import Target
from mlcweb.schedule import LoopRV, Schedule
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.dtype import DataType
from mlcweb.tir.expr import IntImm, PrimExpr

_THREADS = {"cuda": 1024, "rocm": 256, "metal": 256, "opencl": 256}
_OTHER_THREADS = 64


def get_bytes(dtype: str) -> int:
    """The bytes of an element."""
    return DataType(dtype).itemsize


def get_extent(sch: Schedule, loop_rv: LoopRV) -> int | PrimExpr:
    """The extent of a loop, a number where it is constant."""
    loop: Any = sch.get(loop_rv)
    return loop.extent.value if isinstance(loop.extent, IntImm) else loop.extent


def largest_factor(number: int | PrimExpr, candidates: Iterable[int]) -> int:
    """The largest candidate that divides a number; 1 where none does, or it is not constant."""
    if not isinstance(number, int):
        return 1
    return max((each for each in candidates if number % each == 0), default=1)


def auto_vectorize(sch: Schedule, loop: LoopRV, max_vec: int) -> None:
    """Vectorize at most `max_vec` iterations of a loop of constant extent."""
    extent = get_extent(sch, loop)
    if isinstance(extent, int):
        sch.vectorize(loop if extent <= max_vec else sch.split(loop, [None, max_vec])[-1])


def max_threads_per_block(target: Target) -> int:
    """The most threads of a block of threads."""
    limits = target.limits
    return int(limits.get("max_threads_per_block") or limits.get("max_num_threads") or 256)


def suggest_threads_per_block(
    target: Target, loops: Sequence[Any], max_threads_for_dynamic_loop: int = 32
) -> list[int]:
    """How many threads each of some loops gets: powers of two, the first loops first. Loops of
    symbolic extents get what is left, the first of them all of it in the end."""
    left = _THREADS.get(target.kind.name, _OTHER_THREADS)
    extents = [constant_value(loop.extent) for loop in loops]
    chosen = [0] * len(extents)
    dynamic = [n for n, extent in enumerate(extents) if extent is None]
    for n in [n for n in range(len(extents)) if n not in dynamic] + dynamic:
        extent = extents[n]
        most = min(left, max_threads_for_dynamic_loop if extent is None else int(extent))
        chosen[n] = 1 << (max(most, 1).bit_length() - 1)
        left //= chosen[n]
    if dynamic:
        chosen[dynamic[0]] *= left
    return chosen
