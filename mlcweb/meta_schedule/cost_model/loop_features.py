"""Numbers that tell how fast a scheduled program may be: what it computes, how it walks through
memory and caches, what its innermost loops keep in registers, how long its code gets."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.cost_model.loop_nests import OPERATIONS, Access, Nest, nests_of
from mlcweb.runtime.vector_unit import WASM, VectorUnit
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.stmt import ForKind

if TYPE_CHECKING:
    import numpy as np


CACHES = (32 << 10, 1 << 20)
"""Bytes of the caches that working sets are compared with: first and second level."""

LINE_BYTES = 64
LATENCY = 4
"""Cycles that an addition takes."""

UNITS = 2
"""Loads, and vector operations, that begin in one cycle."""

ACCESSES = 3
"""How many accesses are described one by one: those that touch most."""

_ACCESS_NAMES = ("bytes", "vector stride", "inner stride", "reuse count", "reuse distance")

_NEST_NAMES = (
    "iterations",
    *OPERATIONS,
    "loops", "innermost extent", "vector extent", "unrolled", "parallel extent",
    "vector still", "vector contiguous", "vector strided",
    "inner still", "inner contiguous", "inner strided",
    *(f"{what} {size >> 10} KB" for size in CACHES for what in ("traffic", "working set")),
    "touched bytes", "touched lines",
    "accumulators", "over registers", "operands per step", "work per operand", "reduction",
    "loads per step", "work per load", "waiting", "cycles",
    "code size",
    *(f"{name} {number}" for number in range(ACCESSES) for name in _ACCESS_NAMES),
)  # fmt: skip

NAMES = (
    *(f"main {name}" for name in _NEST_NAMES),
    *(f"other {name}" for name in _NEST_NAMES),
    "all cycles",
)
"""What each number means: those of the store that does most work, then the sums of all others, and
one sum of both."""


def features(module: IRModule, unit: VectorUnit = WASM) -> np.ndarray:
    """The numbers of a scheduled program for a processor: a float64 array of shape (len(NAMES),),
    as `NAMES` tells them apart; sizes are logarithms to base 2 of one more."""
    import numpy as np

    nests = nests_of(module)
    if not nests:
        return np.zeros(len(NAMES))
    rows = np.array([nest_features(nest, unit) for nest in nests])
    work = [nest.iterations * (1 + sum(nest.operations.values())) for nest in nests]
    main = int(np.argmax(work))
    total = rows.sum(axis=0)
    cycles = total[_NEST_NAMES.index("cycles")]
    return np.log2(1.0 + np.abs(np.concatenate([rows[main], total - rows[main], [cycles]])))


def nest_features(nest: Nest, unit: VectorUnit) -> list[float]:
    """The numbers of one store, as they are."""
    loops, total = nest.loops, nest.iterations
    real = [n for n, loop in enumerate(loops) if loop.extent > 1]
    vector = next((n for n in real if loops[n].kind == ForKind.VECTORIZED), None)
    scalar = [n for n in real if n != vector]
    inner = scalar[-1] if scalar else None
    features: list[float] = [total]
    features += [nest.operations[kind] * total for kind in OPERATIONS]
    features += [
        len(real),
        loops[inner].extent if inner is not None else 1,
        loops[vector].extent if vector is not None else 1,
        _unrolled(nest),
        prod(loop.extent for loop in loops if loop.kind == ForKind.PARALLEL),
    ]
    features += _steps(nest.accesses, vector)
    features += _steps(nest.accesses, inner)
    sets = [_working_set(nest, depth) for depth in range(len(loops) + 1)]
    for size in CACHES:
        depth = next((n for n, (touched, _) in enumerate(sets) if touched <= size), len(loops))
        features += [prod(loop.extent for loop in loops[:depth]) * sets[depth][1], sets[depth][0]]
    features += [*sets[0]]
    features += _registers(nest, real, vector, unit)
    features.append(_unrolled(nest) * (1 + sum(nest.operations.values()) + len(nest.accesses)))
    accesses = sorted(nest.accesses, key=lambda a: -prod(a.box(0)) * a.item_bytes)[:ACCESSES]
    for access in accesses:
        features += _reuse(access, nest, vector, inner, sets)
    return features + [0.0] * (len(_ACCESS_NAMES) * (ACCESSES - len(accesses)))


def _unrolled(nest: Nest) -> int:
    """How many copies of the store the code holds."""
    copies = 1
    for loop in reversed(nest.loops):
        if loop.kind == ForKind.UNROLLED or (
            loop.kind == ForKind.SERIAL and copies * loop.extent <= loop.unroll_limit
        ):
            copies *= loop.extent
        elif loop.kind != ForKind.VECTORIZED and loop.extent > 1:
            break
    return copies


def _steps(accesses: Sequence[Access], loop: int | None) -> list[float]:
    """How many accesses a loop leaves where they are, moves by one element, or further."""
    if loop is None:
        return [0.0, 0.0, 0.0]
    strides = [access.strides[loop] for access in accesses]
    still, contiguous = strides.count(0), strides.count(1)
    return [still, contiguous, len(strides) - still - contiguous]


def _working_set(nest: Nest, depth: int) -> tuple[float, float]:
    """Bytes and lines that the loops from a depth on touch; a buffer counts once."""
    of_buffer: dict[Buffer, tuple[float, float]] = {}
    for access in nest.accesses:
        box = access.box(depth)
        row = (box[-1] if box else 1) * access.item_bytes
        rows = prod(box[:-1])
        sizes = rows * row, rows * (1 + (row - 1) // LINE_BYTES)
        of_buffer[access.buffer] = max(sizes, of_buffer.get(access.buffer, (0.0, 0.0)))
    return sum(b for b, _ in of_buffer.values()), sum(n for _, n in of_buffer.values())


def _registers(nest: Nest, real: list[int], vector: int | None, unit: VectorUnit) -> list[float]:
    """What one step of the innermost loop that sums up keeps and needs: sums, counted in vector
    registers, operands, work for each; and, as far as loads, operations and sums that wait for the
    one before tell, how many cycles all steps take."""
    written = next(access for access in nest.accesses if access.writes)
    reads = [access for access in nest.accesses if not access.writes]
    sums = [n for n in real if written.strides[n] == 0 and not any(written.spans[n])]
    depth = sums[-1] + 1 if sums else len(nest.loops)
    lanes = max(1, unit.vector_bytes // written.item_bytes)
    accumulators = -(-prod(written.box(depth)) // lanes)
    operands = sum(prod(access.box(depth)) for access in reads)
    steps = prod(loop.extent for loop in nest.loops[depth:])
    # A product that is added at once is one operation.
    fused = min(nest.operations["add"], nest.operations["multiply"])
    operations = sum(nest.operations.values()) - fused
    extent = nest.loops[sums[-1]].extent if sums else 1
    width = 1 if vector is None else min(lanes, nest.loops[vector].extent)
    work = steps * operations / width
    loads = sum(
        prod(access.box(depth)) / (width if vector is not None and access.strides[vector] else 1)
        for access in reads
        if access.buffer is not written.buffer
    )
    waiting = LATENCY * steps / width / accumulators if sums else 0.0
    cycles = max(loads / UNITS, work / UNITS, waiting) * nest.iterations / steps
    return [
        accumulators, max(0, accumulators - unit.registers), operands,
        steps * operations / max(operands, 1), extent, loads, work / max(loads, 1), waiting, cycles,
    ]  # fmt: skip


def _reuse(
    access: Access,
    nest: Nest,
    vector: int | None,
    inner: int | None,
    sets: Sequence[tuple[float, float]],
) -> list[float]:
    """One access: how much it touches, how it steps, and after how many bytes of others the
    innermost loop that leaves it where it is comes back to it."""
    still = [
        n
        for n, loop in enumerate(nest.loops)
        if loop.extent > 1 and n != vector and not any(access.spans[n])
    ]
    return [
        prod(access.box(0)) * access.item_bytes,
        abs(access.strides[vector]) if vector is not None else 0.0,
        abs(access.strides[inner]) if inner is not None else 0.0,
        nest.loops[still[-1]].extent if still else 1,
        sets[still[-1] + 1][0] if still else sets[0][0],
    ]
