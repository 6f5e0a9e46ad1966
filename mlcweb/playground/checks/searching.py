"""The exercises on schedules that leave something open, and on fast ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from mlcweb.ir import IRModule
from mlcweb.playground.checks.common import blocks_of, expect, run, variable
from mlcweb.playground.checks.programs import matrix_product, tiled_product
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.runtime import nd
from mlcweb.runtime.build import build
from mlcweb.runtime.device import cpu
from mlcweb.schedule import Schedule
from mlcweb.tir.stmt import For

SEEDS = range(8)


def stochastic_schedule(variables: Mapping[str, Any]) -> str:
    """A schedule function that leaves the tile sizes open."""
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


ENOUGH = 1.5
"""How many times as fast as the reference. A tile of the usual size gives three times and more, so
that noise does not decide."""
ROUNDS = 5


def beat_this_time(variables: Mapping[str, Any]) -> str:
    """A matrix product faster than chapter 4's, measured side by side in the same tab."""
    function = variable(variables, "my_schedule", FunctionType, "a function that takes a schedule")
    schedule = Schedule(matrix_product())
    result = function(schedule)
    module = (result if isinstance(result, Schedule) else schedule).mod
    rng = np.random.default_rng(0)
    a, b = (rng.random((128, 128), dtype="float32") for _ in range(2))
    c = run(module, [a, b], np.full((128, 128), np.nan, "float32"))
    expect("C", c, a @ b)
    reference, yours = times(tiled_product(4), module)
    ratio = reference / yours
    numbers = f"{yours * 1e6:.0f} µs, the reference {reference * 1e6:.0f} µs"
    if ratio < ENOUGH:
        raise Wrong(
            f"Right, but not faster yet: {numbers}, which is {ratio:.2f} times as fast; "
            f"{ENOUGH} is asked. Compute a larger tile of C at once: several rows i_1 and a row of "
            "j_1, a multiple of 4, innermost."
        )
    rate = 2 * 128**3 / yours / 1e9
    return f"{numbers}: {ratio:.1f} times as fast, {rate:.1f} GFLOPS."


def times(*modules: IRModule) -> list[float]:
    """Seconds a call of each, measured in turns, so that what slows the machine slows both."""
    evaluators = [_evaluator(module) for module in modules]
    rounds = [[evaluate() for evaluate in evaluators] for _ in range(ROUNDS)]
    return [min(of_one) for of_one in zip(*rounds, strict=True)]


def _evaluator(module: IRModule) -> Callable[[], float]:
    arrays = [nd.array(np.ones((128, 128), "float32")) for _ in range(3)]
    evaluate = build(module, target="llvm").time_evaluator("main", cpu(), number=3, repeat=3)
    return lambda: min(evaluate(*arrays).results)
