"""Other tile sizes."""

from __future__ import annotations

import random
from math import prod

from mlcweb.meta_schedule.mutator.annotation_source import sampled_for
from mlcweb.meta_schedule.mutator.mutator import Mutator
from mlcweb.meta_schedule.schedule_rule.multi_level_tiling import COOPERATIVE_FETCH
from mlcweb.schedule import Instruction, Trace
from mlcweb.tir.arithmetic import constant_value


class MutateTileSize(Mutator):
    """Moves a factor from one tile of a loop to another, or chooses another vector length for
    cooperative fetching."""

    def apply(self, trace: Trace, rng: random.Random) -> Trace | None:
        tilings = [inst for inst in trace.insts if _is_tiling(inst, trace)]
        lengths = sampled_for(trace, (COOPERATIVE_FETCH,))
        candidates = [*tilings, *lengths]
        if not candidates:
            return None
        inst = rng.choice(candidates)
        if inst in lengths:
            others = [n for n in range(len(inst.attrs[0])) if n != trace.get_decision(inst)]
            return trace.with_decision(inst, rng.choice(others), True) if others else None
        tiles = _moved_factor(list(trace.get_decision(inst)), _limit(inst), rng)
        return None if tiles is None else trace.with_decision(inst, tiles, True)


def _is_tiling(inst: Instruction, trace: Trace) -> bool:
    if inst.kind.name != "SamplePerfectTile":
        return False
    tiles = trace.get_decision(inst) or ()
    return len(tiles) >= 2 and prod(tiles) > 1


def _limit(inst: Instruction) -> int | None:
    limit = int(constant_value(inst.attrs[1]) or -1)
    return limit if limit >= 1 else None


def _moved_factor(tiles: list[int], limit: int | None, rng: random.Random) -> list[int] | None:
    """The tiles after one of all possible moves; None where the limit of the innermost tile
    allows none."""
    last = len(tiles) - 1
    moves = [
        (source, target, factor)
        for source, tile in enumerate(tiles)
        for factor in range(2, tile + 1)
        if tile % factor == 0
        for target in range(len(tiles))
        if target != source and (target != last or limit is None or tiles[last] * factor <= limit)
    ]
    if not moves:
        return None
    source, target, factor = rng.choice(moves)
    tiles[source] //= factor
    tiles[target] *= factor
    return tiles
