"""Refuses tiles of sums that do not fit the registers, or leave them empty."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

from mlcweb.meta_schedule.postproc.postproc import Condition, Postproc
from mlcweb.meta_schedule.schedule_rule.block_facts import SPATIAL, TILING_STRUCTURE, extent_of
from mlcweb.meta_schedule.schedule_rule.lanes import LANES, MIN_VECTORS
from mlcweb.meta_schedule.schedule_rule.register_tiles import RegisterTile, register_tiles
from mlcweb.schedule import Instruction, Schedule, Trace
from mlcweb.schedule.iteration_order import loop_type
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.stmt import ForKind

MAX_VECTORS = 12
"""Vectors of sums that leave room for operands in 16 registers."""


class VerifyRegisters(Postproc):
    """Refuses schedules in which a tiled block holds more sums at a time than fit the registers, or
    fewer than the rule that tiled it holds to be worth while.

    Args:
        max_vectors: the most vectors of sums.
    """

    def __init__(self, max_vectors: int = MAX_VECTORS) -> None:
        self.max_vectors = max_vectors

    def apply(self, sch: Schedule) -> bool:
        return all(
            self._fits(_least(place), _sums(place))
            for place in sch.state.index.blocks.values()
            if TILING_STRUCTURE in place.block.annotations
        )

    def conditions(self, trace: Trace) -> list[Condition]:
        return [
            Condition(tile.tilings, partial(self._may_fit, tile)) for tile in register_tiles(trace)
        ]

    def _may_fit(self, tile: RegisterTile, decisions: Mapping[Instruction, Any]) -> bool:
        sums = tile.sums(decisions)
        return sums is None or self._fits(tile.least, sums)

    def _fits(self, least: int, sums: int) -> bool:
        return least * LANES <= sums <= self.max_vectors * LANES


def _least(place: BlockPlace) -> int:
    return int(place.block.annotations.get(MIN_VECTORS, 0))


def _sums(place: BlockPlace) -> int:
    return prod(
        extent_of(loop) or 1
        for loop in place.loops
        if loop.kind in (ForKind.UNROLLED, ForKind.VECTORIZED) and loop_type(loop) == SPATIAL
    )
