"""Guesses from decisions: what they learn, and what they do without anything learnt."""

import random

from mlcweb.meta_schedule.search_strategy.decision_model import MIN_SAMPLES, DecisionModel
from mlcweb.schedule import Trace
from mlcweb.tir import Schedule
from tests.meta_schedule.matmul import Matmul


def traces(count: int, seed: int = 0) -> list[tuple[Trace, list[int]]]:
    """Tilings of the columns, and what they decided."""
    found = []
    for number in range(count):
        sch = Schedule(Matmul, seed=seed * count + number + 1)
        _, j, _ = sch.get_loops(sch.get_block("C"))
        sch.split(j, sch.sample_perfect_tile(j, 3, 64))
        (inst,) = sch.trace.decisions
        found.append((sch.trace, [int(factor) for factor in sch.trace.get_decision(inst)]))
    return found


def seconds(factors: list[int]) -> float:
    """Fastest where the inner two levels hold sixteen columns."""
    inner = factors[1] * factors[2]
    return 1e-3 * (1 + abs(inner.bit_length() - 5))


def test_nothing_is_guessed_from_too_little() -> None:
    model = DecisionModel()
    for trace, factors in traces(MIN_SAMPLES - 1):
        model.learn(trace, seconds(factors))
    asked = [trace for trace, _ in traces(3)]
    assert model.guess(asked) is None
    model.learn(asked[0], 1e-3)
    assert len(model.guess(asked) or ()) == 3
    assert model.guess([]) is None


def test_the_fast_are_told_from_the_slow() -> None:
    model = DecisionModel()
    for trace, factors in traces(32):
        model.learn(trace, seconds(factors))
    asked = traces(40, seed=1)
    scores = model.guess([trace for trace, _ in asked])
    assert scores is not None
    pairs = [
        (scores[a] > scores[b], seconds(asked[a][1]) < seconds(asked[b][1]))
        for a in range(len(asked))
        for b in range(a)
        if seconds(asked[a][1]) != seconds(asked[b][1])
    ]
    assert sum(guessed == true for guessed, true in pairs) >= 0.9 * len(pairs)


def test_spaces_with_other_steps_are_learnt_apart() -> None:
    """Of two spaces one is slow whatever it decides; its steps differ from the other's."""
    model, rng = DecisionModel(), random.Random(1)
    asked: list[Trace] = []
    for number in range(40):
        sch = Schedule(Matmul, seed=number + 1)
        i, j, _ = sch.get_loops(sch.get_block("C"))
        slow = rng.random() < 0.5
        sch.split(i if slow else j, sch.sample_perfect_tile(j, 2, 64))
        if slow:
            sch.unroll(j)
        if number < 32:
            model.learn(sch.trace, 4e-3 if slow else 1e-3)
        else:
            asked.append(sch.trace)
    scores = model.guess(asked)
    assert scores is not None
    is_slow = ["Unroll" in {inst.kind.name for inst in trace.insts} for trace in asked]
    slow = [score for score, bad in zip(scores, is_slow, strict=True) if bad]
    fast = [score for score, bad in zip(scores, is_slow, strict=True) if not bad]
    assert slow and fast and max(slow) < min(fast)
