"""Random walks through the schedule primitives, for property tests.

`random_step` applies one randomly chosen primitive with random arguments. A refusal is part of the
walk; whatever is accepted must keep what the program computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from mlcweb.tir import Schedule
from mlcweb.tir.schedule import BlockRV, LoopRV, ScheduleError

Choose = Callable[[Sequence[Any]], Any]

MOST_ITERATIONS = 20_000
"""Splits that do not divide add iterations; beyond this many the interpreter is too slow."""


def _all_blocks(sch: Schedule, choose: Choose) -> list[BlockRV]:
    root = sch.get_block("root")
    return sch.get_child_blocks(root)


def _some_block(sch: Schedule, choose: Choose) -> BlockRV:
    return choose(_all_blocks(sch, choose))


def _some_loop(sch: Schedule, choose: Choose) -> LoopRV:
    loops = sch.get_loops(_some_block(sch, choose))
    if not loops:
        raise ScheduleError("no loops")
    return choose(loops)


def split(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    loops = sch.get_loops(block)
    loop = choose(loops or [None])
    factors = choose([[None, 2], [None, 3], [4, None], [2, None, 2], [None, 8], [None, 1], [5, 7]])
    if loop is None or _iterations(sch, loops) * prod(f or 1 for f in factors) > MOST_ITERATIONS:
        raise ScheduleError("too many iterations for a test")
    sch.split(loop, factors, preserve_unit_iters=choose([True, False]))


def _iterations(sch: Schedule, loops: Sequence[LoopRV]) -> int:
    return prod(sch.get(loop).extent.value for loop in loops)


def split_perfectly(sch: Schedule, choose: Choose) -> None:
    loop = _some_loop(sch, choose)
    sch.split(loop, sch.sample_perfect_tile(loop, n=choose([2, 3])))


def fuse(sch: Schedule, choose: Choose) -> None:
    loops = sch.get_loops(_some_block(sch, choose))
    start = choose(range(len(loops)))
    sch.fuse(*loops[start : start + choose([1, 2, 3])], preserve_unit_iters=choose([True, False]))


def reorder(sch: Schedule, choose: Choose) -> None:
    loops = sch.get_loops(_some_block(sch, choose))
    order = []
    while loops and len(order) < 4:
        order.append(loops.pop(choose(range(len(loops)))))
    sch.reorder(*order)


def annotate_loop(sch: Schedule, choose: Choose) -> None:
    loop = _some_loop(sch, choose)
    choose([sch.parallel, sch.vectorize, sch.unroll, lambda x: sch.bind(x, "threadIdx.x")])(loop)


def decompose(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    loops = sch.get_loops(block)
    sch.decompose_reduction(block, choose(loops))


def compute_at(sch: Schedule, choose: Choose) -> None:
    sch.compute_at(
        _some_block(sch, choose),
        _some_loop(sch, choose),
        preserve_unit_loops=choose([True, False]),
        index=choose([-1, -2]),
    )


def reverse_compute_at(sch: Schedule, choose: Choose) -> None:
    sch.reverse_compute_at(
        _some_block(sch, choose),
        _some_loop(sch, choose),
        preserve_unit_loops=choose([True, False]),
        index=choose([-1, -2]),
    )


def cache(sch: Schedule, choose: Choose) -> None:
    primitive = choose([sch.cache_read, sch.cache_write])
    primitive(_some_block(sch, choose), choose([0, 1]), choose(["global", "local"]))


def inline(sch: Schedule, choose: Choose) -> None:
    choose([sch.compute_inline, sch.reverse_compute_inline])(_some_block(sch, choose))


def rfactor(sch: Schedule, choose: Choose) -> None:
    sch.rfactor(_some_loop(sch, choose), choose([0, 1, -1]))


def add_unit_loop(sch: Schedule, choose: Choose) -> None:
    sch.add_unit_loop(choose([_some_loop, _some_block])(sch, choose))


def merge(sch: Schedule, choose: Choose) -> None:
    blocks = _all_blocks(sch, choose)
    depth = choose([0, 0, 1, 2])
    sch.merge(*(sch.get_loops(choose(blocks))[depth] for _ in range(choose([2, 2, 3]))))


def sample_location(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    location = sch.sample_compute_location(block)
    choose([sch.compute_at, sch.reverse_compute_at])(block, location)


def reorder_iterators(sch: Schedule, choose: Choose) -> None:
    block = _some_block(sch, choose)
    order = list(range(len(sch.get(block).iter_vars)))
    sch.reorder_block_iter_var(block, choose([order[::-1], order[1:] + order[:1]]))


STEPS = [
    split, split, split_perfectly, fuse, reorder, annotate_loop, decompose, compute_at,
    reverse_compute_at, cache, inline,
    rfactor, add_unit_loop, merge, sample_location, reorder_iterators,
]  # fmt: skip


def random_step(sch: Schedule, choose: Choose) -> bool:
    """Try one random step; whether it was accepted."""
    step = choose(STEPS)
    try:
        step(sch, choose)
    except (ScheduleError, IndexError):
        return False
    return True
