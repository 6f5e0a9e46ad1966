"""What a sampling step may decide: all its choices, and traces with other ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import Any

from mlcweb.meta_schedule.mutator import other_decision
from mlcweb.schedule import Instruction, Schedule, Trace
from mlcweb.schedule.analysis.block_facts import extent_of, loop_of
from mlcweb.schedule.primitives.sampling import locations
from mlcweb.tir.arithmetic import constant_value

MAX_TILINGS = 4096
"""No more tilings of one loop than these are listed."""


def choices(sch: Schedule, inst: Instruction, inputs: Sequence[Any]) -> list[Any]:
    """All decisions of a sampling step at its place in a schedule.

    Args:
        sch: the schedule right before the step.
        inputs: the step's random variables in that schedule.
    """
    return _CHOICES[inst.kind.name](sch, inputs, inst.attrs)


def factorisations(extent: int, n: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `extent` as a product of `n` positive factors, in order."""
    if n == 1:
        yield (extent,)
        return
    for first in divisors(extent):
        for rest in factorisations(extent // first, n - 1):
            yield (first, *rest)


def divisors(number: int) -> list[int]:
    """The divisors of a positive integer, in rising order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]


def with_other_decision(trace: Trace, rng: random.Random) -> Trace | None:
    """A trace in which one sampling step decides anew; None where nothing is sampled.

    A tiling moves a factor from one tile to another; every other step is left undecided, so
    that the replay draws.
    """
    sampling = [inst for inst in trace.insts if inst.kind.sampling]
    if not sampling:
        return None
    inst = rng.choice(sampling)
    return trace.with_decision(inst, other_decision(trace, inst, rng), True)


def _tilings(sch: Schedule, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[Any]:
    n, limit = (int(constant_value(value) or 0) for value in attrs)
    tilings = factorisations(_extent(sch, inputs[0]), n)
    return _first(tiling for tiling in tilings if limit < 1 or tiling[-1] <= limit)


def _partitioned_tilings(sch: Schedule, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[Any]:
    n, position, inner = (int(constant_value(value) or 0) for value in attrs)
    extent = _extent(sch, inputs[0])
    if extent % inner:
        return [None]
    tilings = factorisations(extent, n)
    return _first(tiling for tiling in tilings if prod(tiling[position:]) % inner == 0)


def _first(tilings: Iterator[tuple[int, ...]]) -> list[list[int]]:
    return [list(tiling) for tiling in islice(tilings, MAX_TILINGS)]


def _extent(sch: Schedule, loop: Any) -> int:
    return int(extent_of(loop_of(sch, loop)) or 1)


def _locations(sch: Schedule, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[Any]:
    block: Any = sch.get(inputs[0])
    return [number for number, _ in locations(sch.state, block.identity)]


def _indices(sch: Schedule, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[Any]:
    return [
        index
        for index, probability in enumerate(attrs[1])
        if float(constant_value(probability) or 0.0) > 0
    ]


_CHOICES: dict[str, Callable[[Schedule, Sequence[Any], Sequence[Any]], list[Any]]] = {
    "SamplePerfectTile": _tilings,
    "SamplePartitionedTile": _partitioned_tilings,
    "SampleComputeLocation": _locations,
    "SampleCategorical": _indices,
}
