"""Traces step by step."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import trace_view

Run = Callable[[str], dict[str, Any]]
SCHEDULE = "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))\n"


def test_line_diff_keeps_both_texts_in_order() -> None:
    before, after = ["a", "b", "c"], ["a", "x", "y", "c"]
    diff = trace_view.line_diff(before, after)
    assert [(line["kind"], line["text"]) for line in diff] == [
        ("same", "a"),
        ("removed", "b"),
        ("added", "x"),
        ("added", "y"),
        ("same", "c"),
    ]


def test_steps_go_from_the_program_to_the_scheduled_program(run: Run) -> None:
    result = run(SCHEDULE)
    [trace] = result["traces"]
    steps = trace_view.trace_steps(trace["id"])
    assert [step["index"] for step in steps] == list(range(len(trace["steps"]) + 1))
    assert "for i, j, k in T.grid(16, 16, 16):" in steps[0]["module"]
    assert steps[-1]["module"] == result["modules"][0]["source"].rstrip("\n")
    assert trace_view.trace_step(trace["id"], 4) == steps[4]


def test_each_diff_leads_from_one_step_to_the_next(run: Run) -> None:
    [trace] = run(SCHEDULE)["traces"]
    steps = trace_view.trace_steps(trace["id"])
    for previous, step in pairwise(steps):
        old = [line["text"] for line in step["diff"] if line["kind"] != "added"]
        new = [line["text"] for line in step["diff"] if line["kind"] != "removed"]
        assert "\n".join(old) == previous["module"]
        assert "\n".join(new) == step["module"]
    changing = [
        trace["steps"][step["index"] - 1]["name"]
        for step in steps[1:]
        if any(line["kind"] != "same" for line in step["diff"])
    ]
    assert changing == ["split", "reorder", "decompose_reduction"]


def test_a_trace_shows_the_schedule_as_it_was(run: Run) -> None:
    source = SCHEDULE + "sch.trace.show()\nsch.enter_postproc()\n"
    shown, last = run(source)["traces"]
    assert len(last["steps"]) == len(shown["steps"]) + 1


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
    [trace] = run(source)["traces"]
    assert "T.Buffer((8,)" in trace_view.trace_steps(trace["id"])[0]["module"]


def test_a_schedule_knows_its_original(run: Run) -> None:
    [trace] = run(SCHEDULE + "del MyModule\n")["traces"]
    assert "@I.ir_module" in trace_view.trace_steps(trace["id"])[0]["module"]


def test_a_trace_without_its_original_says_so(run: Run) -> None:
    source = SCHEDULE + "sch.trace.show()\ndel MyModule, sch\n"
    [trace] = run(source)["traces"]
    with pytest.raises(TVMError, match="keeps in a variable"):
        trace_view.trace_steps(trace["id"])


def test_traces_of_earlier_runs_are_gone(run: Run) -> None:
    [trace] = run(SCHEDULE)["traces"]
    run(SCHEDULE)
    with pytest.raises(TVMError, match="earlier run"):
        trace_view.trace_steps(trace["id"])
