"""Decisions as controls: what may be chosen, and why some values may not."""

from collections.abc import Callable
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import structural_equal
from mlcweb.playground.protocol.trace import TraceControl, TraceOption
from mlcweb.playground.trace_controls import controls, refusal
from mlcweb.playground.trace_replay import replay
from mlcweb.schedule import Schedule
from tests.playground.test_trace_nest import matmul


def made(steps: Callable[[Schedule], object], changes: Any = None) -> list[Any]:
    sch = Schedule(matmul)
    steps(sch)
    done = replay(sch.trace, sch.original, changes)
    assert done.failure is None
    return controls(sch.trace, done, changes or {})


def options(control: TraceControl, part: int) -> dict[str, Any]:
    return {option.text: option for option in control.parts[part].options}


def tile(sch: Schedule) -> None:
    j = sch.get_loops(sch.get_block("C"))[1]
    sch.split(j, sch.sample_perfect_tile(j, 2, 16, decision=[16, 8]))


def test_a_tile_offers_the_divisors_and_tells_why_others_do_not_fit() -> None:
    [control] = made(tile)
    assert (control.kind, control.label) == ("tile", "tiles of j (128)")
    assert (control.decision, control.changed) == ([16, 8], False)
    assert [part.name for part in control.parts] == ["j_0", "j_1"]
    inner = options(control, 1)
    assert inner["4"] == TraceOption("4", [32, 4], None)
    assert inner["9"].reason == "14·9 ≠ 128"
    assert inner["32"].reason == "innermost factor 32 > max_innermost_factor 16"
    outer = options(control, 0)
    assert outer["64"].decision == [64, 2]
    assert outer["4"].reason == "innermost factor 32 > max_innermost_factor 16"


def test_a_changed_decision_is_told_with_the_recorded_one() -> None:
    [control] = made(tile, {3: [32, 4]})
    assert (control.decision, control.changed) == ([32, 4], True)
    assert control.parts[1].value == "4"


@given(st.integers(1, 4), st.sampled_from([0, 1, 2, 3]), st.integers(1, 128))
def test_every_option_is_a_tiling_or_says_why_it_is_none(n: int, part: int, seed: int) -> None:
    def steps(sch: Schedule) -> None:
        sch.seed(seed)
        sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[0], n, 16)

    [control] = made(steps)
    for option in control.parts[min(part, n - 1)].options:
        fits = prod(option.decision) == 128 and (n == 1 or option.decision[-1] <= 16)
        assert (option.reason is None) == (fits or (n == 1 and option.decision == [128])), option


def test_a_partitioned_tile_keeps_its_inner_part() -> None:
    def steps(sch: Schedule) -> None:
        loop = sch.get_loops(sch.get_block("C"))[0]
        sch.sample_partitioned_tile(loop, 3, 1, 32, decision=[2, 16, 4])

    [control] = made(steps)
    assert options(control, 0)["8"].reason == "inner part 16 is no multiple of innerpart_factor 32"
    assert options(control, 0)["4"].decision == [4, 8, 4]


def test_a_choice_offers_all_candidates() -> None:
    def steps(sch: Schedule) -> None:
        sch.sample_categorical([1, 2, 4], [0.5, 0.25, 0.25], decision=2)

    [control] = made(steps)
    assert control.kind == "choice"
    assert control.parts[0].value == "4 (p = 0.25)"
    assert [option.decision for option in control.parts[0].options] == [0, 1, 2]


def test_a_location_offers_the_loops_of_the_consumer() -> None:
    def steps(sch: Schedule) -> None:
        block = sch.cache_read(sch.get_block("C"), 0, "local")
        sch.compute_at(block, sch.sample_compute_location(block, decision=0))

    [control] = made(steps)
    assert control.label == "place of block A_local"
    assert control.parts[0].value == "in i (128)"
    found = options(control, 0)
    assert found["inlined"].reason is None
    assert found["where it is"].decision == -1
    assert found["in i / j / k (128)"].reason.startswith("never drawn")


def test_written_factors_are_decisions_too() -> None:
    def steps(sch: Schedule) -> None:
        sch.split(sch.get_loops(sch.get_block("C"))[1], factors=[None, 16])

    [control] = made(steps)
    assert (control.kind, control.decision) == ("factors", [None, 16])
    assert [part.value for part in control.parts] == ["8", "16"]
    assert control.parts[0].options == []  # it is what the other leaves
    found = options(control, 1)
    assert found["32"].decision == [None, 32]
    assert found["12 (4 past the end skipped)"].reason is None
    [control] = made(steps, {3: [None, 32]})
    assert control.parts[0].value == "4"


def test_factors_that_come_from_a_step_are_no_decision_of_their_own() -> None:
    assert [control.step for control in made(tile)] == [3]


def test_a_value_that_a_later_step_refuses_is_refused_with_its_reason() -> None:
    sch = Schedule(matmul)
    block = sch.cache_read(sch.get_block("C"), 0, "local")
    sch.compute_at(block, sch.sample_compute_location(block, decision=0))
    sch.vectorize(sch.get_loops(block)[1])
    done = replay(sch.trace, sch.original)
    assert done.failure is None
    assert refusal(sch.trace, done, {}, 3, 0) is None
    reason = refusal(sch.trace, done, {}, 3, -2)
    assert reason is not None
    assert reason.startswith("step 5, get_loops: ")


def test_every_option_that_is_offered_can_be_replayed() -> None:
    sch = Schedule(matmul)
    tile(sch)
    done = replay(sch.trace, sch.original)
    for part in controls(sch.trace, done, {})[0].parts:
        for option in part.options:
            if option.reason is None:
                again = replay(sch.trace, sch.original, {3: option.decision})
                assert again.failure is None
                same = option.decision == [16, 8]
                assert structural_equal(again.modules[-1], sch.mod) == same
