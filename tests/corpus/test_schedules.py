"""Programs that TVM prints keep their results through random schedules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import pytest

from mlcweb.tir import PrimFunc, Schedule
from tests.corpus.running import computed, count, functions_in, interpreted, iterations, sized
from tests.corpus.test_printed import printed_programs
from tests.random_schedules import (
    EVERY_STEP,
    declare_again,
    hide_access,
    random_step,
    unsafe_set_dtype,
)

STEPS = [step for step in EVERY_STEP if step not in (declare_again, hide_access, unsafe_set_dtype)]
"""Those that promise to keep what a program computes."""

MAX_ITERATIONS = 60_000
TOLERANCES = {"float16": 1e-2, "float32": 1e-3, "float64": 1e-9}
"""Sums are computed in other orders."""


def check(programs: Iterable[tuple[str, str]], least: int) -> None:
    """All accepted steps keep the results, and there are at least so many."""
    small = (
        (name, func)
        for name, func in functions_in(programs)
        if iterations(func.body) <= MAX_ITERATIONS
    )
    assert count(small, walk) >= least


def walk(func: PrimFunc, seed: int) -> int:
    """How many of some random steps were accepted.

    Raises:
        CannotRun: the program is not one that can be run.
    """
    arrays, expected = interpreted(func)
    random = Random(seed)
    sch = Schedule(sized(func), seed=seed + 1)
    accepted = sum(random_step(sch, random.choice, STEPS) for _ in range(14))
    scheduled = sch.mod["main"]
    assert isinstance(scheduled, PrimFunc)
    if iterations(scheduled.body) > 10 * MAX_ITERATIONS:
        return 0
    try:
        results = computed(
            scheduled, random.choice(["interpreter", "numpy", "wasm", "llvm"]), arrays
        )
        compare(results, expected)
    except Exception as error:
        error.add_note(f"{sch.trace}")
        raise
    return accepted


def compare(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for result, array in zip(results, expected, strict=True):
        near = TOLERANCES.get(str(array.dtype), 0)
        np.testing.assert_allclose(result, array, near, near)


def test_a_sample_keeps_its_results() -> None:
    check(printed_programs("0.27")[5::150], 50)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(4))
def test_a_share_keeps_its_results(first: int) -> None:
    check(printed_programs("0.27")[first::24], 300)
