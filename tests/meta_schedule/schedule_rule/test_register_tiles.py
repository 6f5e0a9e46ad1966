"""What a trace tells of its register tiles before it is replayed, against what a replay makes."""

from typing import Any

import pytest

from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.postproc import VerifyRegisters
from mlcweb.meta_schedule.space.register_tiling import register_tiles
from mlcweb.runtime import Target
from tests.meta_schedule.schedule_rule.small import module

AVX2 = "llvm -mcpu=x86-64-v3"


def strategy_of(name: str, target: str = "wasm") -> Any:
    context = TuneContext(
        module(name), target=target, space_generator="post-order-apply", search_strategy="random",
        rand_state=1,
    )  # fmt: skip
    context.pre_tuning(64, 64)
    return context.search_strategy


@pytest.mark.parametrize(
    ("name", "target"),
    [("matmul", "wasm"), ("matmul_relu", "wasm"), ("conv", "wasm"), ("conv", AVX2)],
)
def test_conditions_are_those_of_the_postproc(name: str, target: str) -> None:
    strategy, postproc = strategy_of(name, target), VerifyRegisters()
    postproc.target = Target(target)
    foreseen = 0
    for _ in range(24):
        sch = strategy.sampler.blank()
        space = strategy.rng.choice(strategy.design_spaces)
        space.apply_to_schedule(sch, decision_provider=lambda *_: None)
        conditions = postproc.conditions(sch.trace)
        holds = all(condition.holds(sch.trace.decisions) for condition in conditions)
        assert strategy.sampler.may_pass(sch.trace) is holds
        # Tiles of other rules are not found.
        assert postproc.apply(sch) is holds or not conditions
        foreseen += bool(conditions)
    assert foreseen > 4


def test_fresh_schedules_fit_the_registers() -> None:
    strategy = strategy_of("matmul")
    drawn = [strategy.sampler.fresh(strategy.design_spaces) for _ in range(16)]
    assert None not in drawn
    innermost = {
        tuple(sch.trace.get_decision(inst)[-1] for inst in register_tiles(sch.trace)[0].tilings)
        for sch in drawn
    }
    assert len(innermost) > 1


def test_what_is_not_decided_may_fit() -> None:
    strategy = strategy_of("matmul")
    (tile,) = register_tiles(strategy.design_spaces[0])
    assert tile.sums({}) is None
    assert tile.sums({inst: [1, 1, 2] for inst in tile.tilings}) == tile.constant * 4
