"""Tilings whose inner tile stays in registers: which tiles fit, and the rule that makes them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlcweb.dlight.cpu.machine import register_tile
from mlcweb.dlight.cpu.matmul import panel, results_in_registers
from mlcweb.meta_schedule.space.rules import ScheduleRule
from mlcweb.meta_schedule.space.vector_lanes import (
    MIN_LANES,
    MIN_VECTORS,
    LaneChoice,
    is_untiled_reduction,
    min_vectors,
    spatial_lanes,
)
from mlcweb.runtime.vector_unit import vector_unit
from mlcweb.schedule import BlockRV, Instruction, LoopRV, Schedule, ScheduleError, Trace
from mlcweb.schedule.analysis.block_facts import (
    REDUCTION,
    TILING_STRUCTURE,
    extent_of,
    inputs_of,
    loop_of,
    needs_multi_level_tiling,
    place_of,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.layout_rewrite import free_buffers
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.substitute import uses

STRUCTURE = "SSRRS"
"""The tiling structure of `RegisterTiling`."""

ENOUGH_SHARE = 4
"""Sums in a quarter of the registers are enough: where fewer are made together, a unit is idle
while each waits for the one before."""

_SPATIAL_LEVELS = STRUCTURE.count("S")


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """The sums of a block that are made at a time.

    Attributes:
        least: the fewest vectors of sums that are worth making together.
        lanes: the sums in a vector.
        constant: the extents of the loops in it that are not sampled, multiplied.
        tilings: the steps whose innermost factors are the extents of the others.
    """

    least: int
    lanes: int
    constant: int
    tilings: tuple[Instruction, ...]

    def sums(self, decisions: Mapping[Instruction, Any]) -> int | None:
        """How many sums the tile holds; None where a step has not decided."""
        sums = self.constant
        for inst in self.tilings:
            factors = decisions.get(inst)
            if factors is None:
                return None
            sums *= int(factors[-1])
        return sums


def register_tiles(trace: Trace) -> list[RegisterTile]:
    """The tiles that a trace makes in registers. Those that other rules make are not found."""
    blocks: dict[BlockRV, dict[str, Any]] = {}
    for inst in trace.insts:
        if inst.kind.name == "Annotate" and isinstance(inst.inputs[0], BlockRV):
            blocks.setdefault(inst.inputs[0], {})[inst.attrs[0]] = inst.inputs[1]
    return [
        _tile(trace.insts, block, int(constant_value(annotations[MIN_VECTORS]) or 0))
        for block, annotations in blocks.items()
        if annotations.get(TILING_STRUCTURE) == STRUCTURE and MIN_VECTORS in annotations
    ]


def _tile(insts: Sequence[Instruction], block: BlockRV, least: int) -> RegisterTile:
    # Of each loop below the block's own: what its extent is, as far as it is known.
    extents: dict[Any, tuple[Any, ...]] = {}
    innermost: dict[Any, Instruction] = {}
    held: list[Any] = []
    lanes = MIN_LANES
    for inst in insts:
        name, inputs = inst.kind.name, inst.inputs
        if name == "GetLoops" and inputs[0] is block:
            extents.update((loop, ()) for loop in inst.outputs)
        elif name == "SamplePerfectTile" and len(inst.outputs) == _SPATIAL_LEVELS:
            innermost[inst.outputs[-1]] = inst
        elif name == "Split" and inputs[0] in extents:
            extents.update((loop, (f,)) for loop, f in zip(inst.outputs, inputs[1:], strict=True))
        elif name == "Fuse" and all(loop in extents for loop in inputs):
            extents[inst.outputs[0]] = tuple(f for loop in inputs for f in extents[loop])
        elif name in ("Unroll", "Vectorize"):
            held += extents.get(inputs[0], ())
        if name == "Vectorize" and inputs[0] in extents:
            lanes = int(constant_value(held[-1]) or MIN_LANES)
    # The factors of a reduction are not among the spatial ones: its loops are cut into fewer.
    constants = [constant_value(factor) for factor in held]
    return RegisterTile(
        least,
        lanes,
        prod(int(constant) for constant in constants if constant is not None),
        tuple(innermost[factor] for factor in held if factor in innermost),
    )


@dataclass(eq=False)
class RegisterTiling(ScheduleRule):
    """Tiles a reduction that reads elements several times: two levels of spatial tiles, the
    reduction, and a tile in registers. Spaces with and without packed panels.

    Args:
        max_rows: the most lines of vectors of a loop in the register tile; by default those of the
            target's largest tile.
        max_vectors: the most vectors in a line.
        max_reduction_factor: the most steps of the innermost reduction loop that are unrolled.
        max_tiled_loops: how many of the spatial loops besides that in lanes are tiled; the
            innermost are.
    """

    max_rows: int | None = None
    max_vectors: int = 4
    max_reduction_factor: int = 4
    max_tiled_loops: int = 2

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        place = place_of(sch, block)
        if not is_untiled_reduction(sch, place):
            return [sch]
        # Where nothing is read twice, vectors pay, but copies do not.
        reuses = needs_multi_level_tiling(place)
        spaces: list[Schedule] = []
        free = free_buffers(sch, place.function)
        for choice in spatial_lanes(place, vector_unit(self.target).lanes(), free):
            if not reuses and (choice.packed or choice.transposed):
                continue
            is_panel = reuses and not choice.packed and bool(_in_vectors(place, choice, free))
            for panels in (False, True) if is_panel else (False,):
                space = sch.copy()
                try:
                    self._tile(space, block, choice, panels)
                except ScheduleError:
                    continue
                spaces.append(space)
        return spaces or [sch]

    def _tile(self, sch: Schedule, block: BlockRV, choice: LaneChoice, panels: bool) -> None:
        node = place_of(sch, block).block
        lane = node.iter_vars[choice.loop].var
        for index in choice.packed:
            panel(sch, block, index, lane)
        result = results_in_registers(sch, block, lane, choice.transposed)
        sch.annotate(block, TILING_STRUCTURE, STRUCTURE)
        sch.annotate(block, MIN_VECTORS, self._least_vectors(sch, block, choice))
        first, second, reduction, unrolled, vector = self._loops(sch, block, choice)
        sch.reorder(*first, *second, *reduction, *unrolled, *vector)
        lanes = sch.fuse(*vector)
        sch.reverse_compute_at(result, second[-1], preserve_unit_loops=True)
        if panels:
            self._panels(sch, block, first[-1], choice)
        for loop in unrolled:
            sch.unroll(loop)
        sch.vectorize(lanes)

    def _least_vectors(self, sch: Schedule, block: BlockRV, choice: LaneChoice) -> int:
        loops = place_of(sch, block).loops
        lane = loops[choice.loop]
        others = [
            extent_of(loop) or 1
            for loop in loops
            if loop is not lane and loop_type(loop) != REDUCTION
        ]
        vectors = (extent_of(lane) or choice.lanes) // choice.lanes
        lines = [(extent, self._most_rows()) for extent in others[-self.max_tiled_loops :]]
        enough = vector_unit(self.target).registers // ENOUGH_SHARE
        return min_vectors((vectors, self.max_vectors), *lines, enough=enough)

    def _most_rows(self) -> int:
        if self.max_rows is not None or self.target is None:
            return self.max_rows or 4
        return register_tile(self.target, "float32").rows

    def _loops(self, sch: Schedule, block: BlockRV, choice: LaneChoice) -> tuple[list[LoopRV], ...]:
        """The loops of the outer tiles, of the tiles in them, of the reduction, what is unrolled,
        and the vectors and their lanes."""
        loops = sch.get_loops(block)
        lane = loops[choice.loop]
        *outer_steps, steps = [loop for loop in loops if loop_type(loop_of(sch, loop)) == REDUCTION]
        others = [loop for loop in loops if loop not in (lane, steps, *outer_steps)]
        first = others[: max(0, len(others) - self.max_tiled_loops)]
        second: list[LoopRV] = []
        lines: list[LoopRV] = []
        for loop in others[len(first) :]:
            a, b, line = sch.split(loop, sch.sample_perfect_tile(loop, 3, self._most_rows()))
            first, second, lines = [*first, a], [*second, b], [*lines, line]
        vectors, within = sch.split(lane, [None, choice.lanes])
        a, b, line = sch.split(vectors, sch.sample_perfect_tile(vectors, 3, self.max_vectors))
        first, second = [*first, a], [*second, b]
        limit = self.max_reduction_factor
        serial, unrolled = sch.split(steps, sch.sample_perfect_tile(steps, 2, limit))
        reduction = [*outer_steps, serial]
        return first, second, reduction, [unrolled, *lines], [line, within]

    def _panels(self, sch: Schedule, block: BlockRV, loop: LoopRV, choice: LaneChoice) -> None:
        """Copy what is read in vectors to where it lies in a row, at a loop."""
        place = place_of(sch, block)
        for index in _in_vectors(place, choice, free_buffers(sch, place.function)):
            copy = sch.cache_read(block, index, "global", [block])
            sch.compute_at(copy, loop, preserve_unit_loops=True)


def _in_vectors(place: BlockPlace, choice: LaneChoice, free: Container[Buffer]) -> list[int]:
    """What a block reads in vectors, but for buffers whose layout is free."""
    lane = place.block.iter_vars[choice.loop].var
    return [
        n
        for n, region in inputs_of(place.block)
        if region.buffer not in free
        if any(uses(dimension, lane) for dimension in region.region)
    ]
