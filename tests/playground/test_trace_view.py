"""Traces step by step."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import trace_view
from mlcweb.playground.aligned import aligned
from tests.playground.texts import methods, sides

Run = Callable[[str], Any]
SCHEDULE = "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))\n"


def test_texts_side_by_side_keep_both_in_order() -> None:
    rows = list(aligned(["a", "b", "c"], ["a", "x", "y", "c"]))
    assert rows == [(0, 0), (1, None), (None, 1), (None, 2), (2, 3)]
    assert trace_view.marked_diff("a\nb\nc", "a\nx\ny\nc") == " a\n-b\n+x\n+y\n c"


def test_steps_go_from_the_program_to_the_scheduled_program(run: Run) -> None:
    result = run(SCHEDULE)
    [trace] = result.traces
    steps = trace_view.trace_steps(trace.id)
    assert [step.index for step in steps] == list(range(7))
    assert "for i, j, k in T.grid(16, 16, 16):" in sides(steps[0].diff)[1]
    assert sides(steps[-1].diff)[1] == result.modules[0].source.rstrip("\n")


def test_each_diff_leads_from_one_step_to_the_next(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    steps = trace_view.trace_steps(trace.id)
    changing = [step for step in steps if step.changed]
    for previous, step in pairwise([steps[0], *changing]):
        assert sides(previous.diff)[1] == sides(step.diff)[0]
    names = methods(changing)
    assert names == ["split", "reorder", "decompose_reduction"]
    looking = [step for step in steps[1:] if not step.changed]
    for step in looking:
        assert step.diff is step.nest is step.removed is None


def test_a_changed_decision_leads_to_another_program(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    derived = trace_view.derive(trace.id, {3: [2, 8]})
    assert derived.failure is None
    assert "for i, j_0 in T.grid(16, 2):" in sides(derived.steps[-1].diff)[1]
    assert derived.steps[3].instruction.decision == "[2, 8]"
    # The trace itself stays as it is.
    assert "T.grid(16, 1)" in sides(trace_view.trace_steps(trace.id)[-1].diff)[1]


def test_a_step_that_cannot_be_done_says_why(run: Run) -> None:
    source = """
sch = tvm.tir.Schedule(MyModule)
i, j, k = sch.get_loops(sch.get_block("C"))
j_0, j_1 = sch.split(j, factors=[4, 4])
sch.reorder(k, j_1)
sch.vectorize(j_1)
"""
    [trace] = run(source).traces
    derived = trace_view.derive(trace.id, {3: [4, 0]})
    assert derived.failure.step == 3
    assert "factor" in derived.failure.message
    assert [step.index for step in derived.steps] == [0, 1, 2]
    assert "factor" in (trace_view.refusal(trace.id, {}, 3, [4, 0]) or "")
    assert trace_view.refusal(trace.id, {}, 3, [2, 8]) is None


def test_a_trace_shows_the_schedule_as_it_was(run: Run) -> None:
    source = SCHEDULE + "sch.trace.show()\nsch.enter_postproc()\n"
    shown, last = run(source).traces
    counts = [len(trace_view.trace_steps(trace.id)) for trace in (shown, last)]
    assert counts[1] == counts[0] + 1


def test_the_original_is_found_among_several_modules(run: Run) -> None:
    source = """
@T.prim_func
def other(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            A[vi] = 1.0

sch = tvm.tir.Schedule(other)
sch.parallel(sch.get_loops(sch.get_block("C"))[0])
"""
    [trace] = run(source).traces
    assert "T.Buffer((8,)" in sides(trace_view.trace_steps(trace.id)[0].diff)[1]


def test_a_schedule_knows_its_original(run: Run) -> None:
    [trace] = run(SCHEDULE + "del MyModule\n").traces
    assert "@I.ir_module" in sides(trace_view.trace_steps(trace.id)[0].diff)[1]


def test_a_trace_without_its_original_says_so(run: Run) -> None:
    source = SCHEDULE + "sch.trace.show()\ndel MyModule, sch\n"
    [trace] = run(source).traces
    with pytest.raises(TVMError, match="keeps in a variable"):
        trace_view.trace_steps(trace.id)


def test_traces_of_earlier_runs_are_gone(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    run(SCHEDULE)
    with pytest.raises(TVMError, match="earlier run"):
        trace_view.trace_steps(trace.id)
