"""Two traces side by side."""

from collections.abc import Callable
from typing import Any

from mlcweb.playground.trace_compare import compare

Run = Callable[[str], Any]
SOURCE = """
sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))
other = tvm.tir.Schedule(MyModule)
block = other.get_block("C", "main")
i, j, k = other.get_loops(block)
j_0, j_1 = other.split(j, factors=[None, 4])
other.reorder(i, j_0, k, j_1)
other.parallel(i)
"""


def test_the_same_trace_differs_in_what_it_decides(run: Run) -> None:
    first, _ = run(SOURCE).traces
    same = compare(first.id, {}, first.id, {})
    assert same.equal
    assert same.decided == []
    assert not any(line[0] in "+-" for line in same.diff.split("\n"))
    changed = compare(first.id, {}, first.id, {3: [2, 8]})
    assert changed.rows == [(n, n) for n in range(7)]
    assert changed.decided == [3]
    assert not changed.equal
    assert "-        for i, j_0 in T.grid(16, 1):" in changed.diff.split("\n")
    assert "+        for i, j_0 in T.grid(16, 2):" in changed.diff.split("\n")


def test_steps_that_both_traces_have_are_aligned(run: Run) -> None:
    first, second = run(SOURCE).traces
    found = compare(first.id, {}, second.id, {})
    # Sampling is in the first alone, and so are the init's decomposition here, parallel there.
    assert found.rows == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, None),
        (4, 3),
        (5, 4),
        (6, None),
        (None, 5),
    ]
    # One splits by what was drawn, the other by a number.
    assert found.decided == [4]
