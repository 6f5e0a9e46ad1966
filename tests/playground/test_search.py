"""The page's searches, from begin to the code for the editor."""

from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import cell, search, trace_view

Run = Callable[[str], dict[str, Any]]


def test_a_search_from_begin_to_the_code_for_the_editor(run: Run) -> None:
    run("")
    begun = search.begin("stochastic_schedule_mm", "MyModule", 3)
    assert begun["baselineSeconds"] > 0
    trials = [search.step(begun["id"]) for _ in range(6)]
    search.finish(begun["id"])
    assert [trial["index"] for trial in trials] == list(range(6))
    # 16 has five factors, so six trials must repeat one.
    assert {trial["state"] for trial in trials} == {"measured", "repeated"}
    for trial in trials:
        assert trial["seconds"] > 0
        [decision] = trial["decisions"]
        outer, inner = eval(decision)
        assert outer * inner == 16
        if trial["state"] == "repeated":
            assert trials[trial["sameAs"]]["decisions"] == trial["decisions"]

    details = search.details(begun["id"], 2)
    steps = trace_view.trace_steps(details["trace"]["id"])
    assert steps[-1]["module"] == details["source"].rstrip("\n")
    assert f"decision={trials[2]['decisions'][0]}" in details["code"]
    again = run(details["code"])
    assert again["ok"]
    assert again["modules"][-1]["source"] == details["source"]


def test_the_seed_decides_what_is_sampled(run: Run) -> None:
    run("")

    def decisions(seed: int) -> list[list[str]]:
        identifier = search.begin("stochastic_schedule_mm", "MyModule", seed)["id"]
        return [search.step(identifier)["decisions"] for _ in range(4)]

    assert decisions(1) == decisions(1)
    assert decisions(1) != decisions(2)


def test_a_failing_schedule_function_makes_failed_trials(run: Run) -> None:
    run(
        "def bad(sch: tvm.tir.Schedule):\n"
        '    i, j, k = sch.get_loops(sch.get_block("C"))\n'
        "    sch.parallel(k)\n"
    )
    identifier = search.begin("bad", "MyModule", 0)["id"]
    trial = search.step(identifier)
    assert trial["state"] == "failed"
    assert trial["seconds"] is None
    assert "Error: " in trial["reason"]
    details = search.details(identifier, 0)
    assert details["code"] is None
    assert [step["name"] for step in details["trace"]["steps"]] == ["get_block", "get_loops"]


def test_unknown_names_are_refused() -> None:
    cell.execute("x = 1")
    with pytest.raises(TVMError, match="no MyModule; run it first"):
        search.begin("f", "MyModule")
    with pytest.raises(TVMError, match="no search"):
        search.step("s999")
