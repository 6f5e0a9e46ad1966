"""The page's searches, from begin to the code for the editor."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.meta_schedule.runner import ThreadRunner, Timing
from mlcweb.playground import cell, search, trace_view

Run = Callable[[str], dict[str, Any]]


@pytest.fixture(autouse=True)
def runner_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has its own workers; here the programs are known to end."""
    monkeypatch.setattr(
        "mlcweb.meta_schedule.session._runner",
        lambda workload, *options: ThreadRunner(workload, Timing(2, 0.1)),
    )


async def followed(function: str, seed: int, trials: int) -> tuple[str, list[dict[str, Any]]]:
    """A search's name, and all that its steps tell."""
    begun = await search.begin(function, "MyModule", seed, trials)
    assert begun["baselineSeconds"] > 0
    assert begun["workers"] == 1
    told = []
    while (trial := await search.step(begun["id"])) is not None:
        told.append(trial)
    search.finish(begun["id"])
    return begun["id"], told


def test_a_search_from_begin_to_the_code_for_the_editor(run: Run) -> None:
    run("")
    identifier, told = asyncio.run(followed("stochastic_schedule_mm", 3, 6))
    first = [trial for trial in told if not trial["confirmed"]]
    trials = {trial["index"]: trial for trial in told}
    assert [trial["index"] for trial in first] == list(range(6))
    assert len(told) > len(first)
    # 16 has five factors, so six trials must repeat one.
    assert {trial["state"] for trial in told} == {"measured", "repeated"}
    for trial in told:
        assert min(trial["repeats"]) <= trial["seconds"] <= max(trial["repeats"])
        [decision] = trial["decisions"]
        outer, inner = eval(decision)
        assert outer * inner == 16
        if trial["state"] == "repeated":
            assert trials[trial["sameAs"]]["decisions"] == trial["decisions"]

    details = search.details(identifier, 2)
    steps = trace_view.trace_steps(details["trace"]["id"])
    assert steps[-1]["module"] == details["source"].rstrip("\n")
    assert f"decision={trials[2]['decisions'][0]}" in details["code"]
    again = run(details["code"])
    assert again["ok"]
    assert again["modules"][-1]["source"] == details["source"]


def test_the_seed_decides_what_is_sampled(run: Run) -> None:
    run("")

    def decisions(seed: int) -> list[list[str]]:
        _, told = asyncio.run(followed("stochastic_schedule_mm", seed, 4))
        return [trial["decisions"] for trial in told if not trial["confirmed"]]

    assert decisions(1) == decisions(1)
    assert decisions(1) != decisions(2)


def test_a_finished_search_ends_and_keeps_its_trials(run: Run) -> None:
    run("")

    async def main() -> None:
        identifier = (await search.begin("stochastic_schedule_mm", "MyModule"))["id"]
        trial = await search.step(identifier)
        assert trial is not None
        search.finish(identifier)
        while await search.step(identifier) is not None:
            pass
        assert search.details(identifier, trial["index"])["code"]

    asyncio.run(main())


def test_a_failing_schedule_function_makes_failed_trials(run: Run) -> None:
    run(
        "def bad(sch: tvm.tir.Schedule):\n"
        '    i, j, k = sch.get_loops(sch.get_block("C"))\n'
        "    sch.parallel(k)\n"
    )
    identifier, [trial] = asyncio.run(followed("bad", 0, 1))
    assert trial["state"] == "failed"
    assert trial["seconds"] is None
    assert "Error: " in trial["reason"]
    details = search.details(identifier, 0)
    assert details["code"] is None
    assert [step["name"] for step in details["trace"]["steps"]] == ["get_block", "get_loops"]


def test_unknown_names_are_refused() -> None:
    cell.execute("x = 1")
    with pytest.raises(TVMError, match="no MyModule; run it first"):
        asyncio.run(search.begin("f", "MyModule"))
    with pytest.raises(TVMError, match="no search"):
        asyncio.run(search.step("s999"))
