"""Chapter 4: a schedule function that leaves the tile sizes open."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import blocks_of, expect, run, variable
from mlcweb.playground.checks.programs import matrix_product
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule
from mlcweb.tir.stmt import For

SEEDS = range(8)


def check(variables: Mapping[str, Any]) -> str:
    function = variable(variables, "stochastic_schedule_mm", FunctionType, "a function")
    schedules = []
    program = matrix_product()
    for seed in SEEDS:
        schedule = Schedule(program, seed=seed)
        if not isinstance(result := function(schedule), Schedule):
            raise Wrong(
                f"The function returned {result!r} instead of the schedule; end it with return sch."
            )
        schedules.append(result)
    decisions = [_decision(schedule) for schedule in schedules]
    if len(set(map(tuple, decisions))) == 1:
        raise Wrong(f"All of {len(SEEDS)} runs decided {decisions[0]}: something fixes the choice.")
    for schedule, decision in zip(schedules, decisions, strict=True):
        _check_loops(schedule, decision)
    rng = np.random.default_rng(0)
    a, b = (rng.random((128, 128), dtype="float32") for _ in range(2))
    for schedule in schedules[:3]:
        c = run(schedule.mod, [a, b], np.full((128, 128), np.nan, "float32"))
        expect("C", c, a @ b)
    kinds = len(set(map(tuple, decisions)))
    return f"{len(SEEDS)} runs drew {kinds} different tilings, and each computes the product."


def _decision(schedule: Schedule) -> list[int]:
    instructions = schedule.trace.insts
    sampling = [inst for inst in instructions if inst.kind.method == "sample_perfect_tile"]
    if not sampling:
        raise Wrong(
            "The trace has no sample_perfect_tile: the tile sizes are still fixed. Let "
            "sch.sample_perfect_tile(loop=j, n=2) choose them."
        )
    splits = [inst for inst in instructions if inst.kind.method == "split"]
    drawn = sampling[0].outputs
    if not any(variable is used for split in splits for used in split.inputs for variable in drawn):
        raise Wrong(
            "The trace samples tile sizes, but no split uses them. Hand what sample_perfect_tile "
            "returns to split as it is: factors=j_factors."
        )
    return [int(factor) for factor in schedule.trace.get_decision(sampling[0])]


def _check_loops(schedule: Schedule, decision: list[int]) -> None:
    [function] = schedule.mod.functions.values()
    nests = {block.name_hint: loops for block, loops in blocks_of(function)}
    if "C_update" not in nests:
        raise Wrong(
            "The initial value is still inside block C; end with sch.decompose_reduction(block, k)."
        )
    extents = [_extent(loop) for loop in nests["C_update"]]
    outer, inner = decision
    if extents != [128, outer, 128, inner]:
        raise Wrong(
            f"With the tiles {decision} the loops around C_update should be i: 128, j_0: {outer}, "
            f"k: 128, j_1: {inner}; they are {', '.join(map(str, extents))}. Look at the reorder."
        )


def _extent(loop: For) -> int:
    return int(str(loop.extent))
