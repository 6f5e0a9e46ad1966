"""The page's searches over a function of the program, from begin to the code for the editor."""

import asyncio
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mlcweb
from mlcweb.ir import TVMError
from mlcweb.meta_schedule.measure import runner as measure_runner
from mlcweb.meta_schedule.search_strategy.search_strategy import Sampler
from mlcweb.playground import cell, search, trace_view
from mlcweb.playground.protocol.search import EarlierRecord
from mlcweb.script import from_source
from tests.playground.conftest import PROGRAM
from tests.playground.searching import earlier_of, fast_runner, followed, settings
from tests.playground.texts import methods, sides

Run = Callable[[str], Any]


@pytest.fixture(autouse=True)
def runner_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has its own workers; here the programs are known to end."""
    monkeypatch.setattr("mlcweb.playground.search.calls.open_runner", fast_runner)


def wasm_text(source: str) -> str:
    return mlcweb.build(from_source(source), target="wasm").get_source("wat")


def test_a_search_from_begin_to_the_code_for_the_editor(run: Run) -> None:
    run("")
    identifier, told = followed(settings(seed=3, trials=6))
    first = [trial for trial in told if not trial.confirmed]
    trials = {trial.index: trial for trial in first}
    assert [trial.index for trial in first] == list(range(6))
    assert len(told) > len(first)
    # 16 has five factors, so six trials must repeat one.
    assert {trial.state for trial in told} == {"measured", "repeated"}
    for trial in first:
        [decision] = trial.decisions
        outer, inner = eval(decision)
        assert outer * inner == 16
        if trial.state == "repeated" and trials[trial.same_as].decisions != trial.decisions:
            # Another program that comes to the same code.
            pair = trial.index, trial.same_as
            one, other = (search.details(identifier, index).diff for index in pair)
            assert wasm_text(sides(one)[1]) == wasm_text(sides(other)[1])
    assert [trial.labels for trial in first] == [[["j_0", "j_1"]], *[None] * 5]

    details = search.details(identifier, 2)
    steps = trace_view.trace_steps(details.trace.id)
    changed = [sides(step.diff)[1] for step in steps if step.changed]
    source = sides(details.diff)[1]
    assert changed[-1] == source
    assert any(line.startswith("+") for line in details.diff.splitlines())
    assert f"decision={trials[2].decisions[0]}" in details.code
    again = run(details.code)
    assert again.ok
    assert again.modules[-1].source.rstrip("\n") == source


def test_a_program_of_bfloat16_is_searched() -> None:
    source = PROGRAM.replace("float32", "bfloat16").replace("= 0.0", "= T.bfloat16(0)")
    assert cell.execute(source).ok
    _, told = followed(settings(trials=3))
    assert {trial.state for trial in told} <= {"measured", "repeated"}


def test_code_replaces_the_function_in_its_module(run: Run) -> None:
    run("")
    identifier, _ = followed(settings(trials=2))
    details = search.details(identifier, 1)
    again = run(details.replacing)
    assert again.ok, again.error
    assert again.modules[-1].source.rstrip("\n") == sides(details.diff)[1]


def test_the_seed_decides_what_is_sampled(run: Run) -> None:
    run("")

    def decisions(seed: int) -> list[list[str]]:
        _, told = followed(settings(seed=seed, trials=4))
        return [trial.decisions for trial in told if not trial.confirmed]

    assert decisions(1) == decisions(1)
    assert decisions(1) != decisions(2)


def test_programs_known_from_earlier_are_not_measured(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("")
    _, told = followed(settings(trials=8))
    ran: list[str] = []
    monkeypatch.setattr(
        "mlcweb.playground.search.calls.open_runner",
        lambda workload, workers: fast_runner(workload, workers, ran),
    )
    _, again = followed(settings(trials=8), earlier_of(told))
    before = {t.index: t.seconds for t in told}
    for trial in again:
        if not trial.confirmed:
            assert trial.state in ("recalled", "repeated")
            assert trial.record is None or trial.state == "repeated"
            assert trial.seconds == pytest.approx(before[trial.index])
    finalists = {trial.index for trial in again if trial.confirmed}
    assert len(ran) <= 3 * len(finalists)


def test_records_that_cannot_be_read_are_left_out_and_counted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("")
    monkeypatch.setattr("mlcweb.playground.search.calls.open_runner", fast_runner)
    _, told = followed(settings(trials=2))
    earlier = earlier_of(told)
    programs = earlier.programs
    damaged = ["", "{", "[]", "null", "[[[]], 1, 2]", earlier.lines[0].record[:-9]]
    earlier.lines = [EarlierRecord(text, "12ab") for text in damaged]
    earlier.unreadable = 2
    _, again = followed(settings(trials=2), earlier, unreadable=8)
    assert [trial.state for trial in again if not trial.confirmed] == ["recalled"] * len(programs)


def test_a_finished_search_ends_and_keeps_its_trials(run: Run) -> None:
    run("")

    async def main() -> None:
        identifier = (await search.begin(settings())).id
        [trial] = (await search.step(identifier)).trials
        search.finish(identifier)
        while not (await search.step(identifier)).over:
            pass
        assert search.details(identifier, trial.index).code
        search.forget(identifier)
        with pytest.raises(TVMError, match="no search"):
            search.details(identifier, trial.index)

    asyncio.run(main())


def test_a_decision_has_the_same_names_in_all_views(run: Run) -> None:
    run("")
    identifier, told = followed(settings(trials=1))
    derived = trace_view.derive(search.details(identifier, 0).trace.id, {})
    names = [[part.name for part in control.parts] for control in derived.controls]
    assert told[0].labels == names == [["j_0", "j_1"]]


def test_a_failing_schedule_function_makes_failed_trials(run: Run) -> None:
    run(
        "def bad(sch: tvm.tir.Schedule):\n"
        '    i, j, k = sch.get_loops(sch.get_block("C"))\n'
        "    sch.parallel(k)\n"
    )
    identifier, [trial] = followed(settings(schedule_function="bad", trials=1))
    assert trial.state == "failed"
    assert trial.seconds is None
    assert "Error: " in trial.reason
    assert trial.record is None
    details = search.details(identifier, 0)
    assert details.code is None
    assert methods(trace_view.trace_steps(details.trace.id)) == ["get_block", "get_loops"]


def test_a_schedule_of_something_else_is_told_so(run: Run) -> None:
    run(
        "def other(sch):\n"
        "    found = tvm.tir.Schedule(tvm.IRModule({'main': MyModule['main']}))\n"
        "    found.fuse(*found.get_loops(found.get_block('C'))[:2])\n"
        "    fresh = tvm.tir.Schedule(found.mod)\n"
        "    return fresh\n"
    )
    identifier, told = followed(settings(schedule_function="other", trials=1))
    assert told[0].state == "measured"
    with pytest.raises(TVMError, match="does not start from the program"):
        search.details(identifier, 0)


def test_unknown_names_are_refused(run: Run) -> None:
    cell.execute("x = 1")
    with pytest.raises(TVMError, match="no MyModule; run it first"):
        asyncio.run(search.begin(settings()))
    with pytest.raises(TVMError, match="no search"):
        asyncio.run(search.step("s999"))
    run("")
    with pytest.raises(TVMError, match="no nothing; run it first"):
        asyncio.run(search.begin(settings(schedule_function="nothing")))
    with pytest.raises(TVMError, match='no TensorIR function "other", but main'):
        asyncio.run(search.begin(settings(function="other")))
    with pytest.raises(TVMError, match='no strategy "best"'):
        asyncio.run(search.begin(settings(strategy="best")))


def test_a_search_passes_the_modules_that_the_architecture_lists(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("")
    passed: set[str] = set()

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            frame = inspect.currentframe()
            while frame is not None:
                passed.add(frame.f_globals["__name__"])
                frame = frame.f_back
            return function(*arguments)

        return call

    monkeypatch.setattr(Sampler, "replay", noted(Sampler.replay))
    for name in ("build_artifact", "run_here"):
        monkeypatch.setattr(measure_runner, name, noted(getattr(measure_runner, name)))
    followed(settings(strategy="evolutionary", schedule_function=None, trials=8))
    text = (Path(__file__).parents[2] / "docs/architecture.md").read_text(encoding="utf-8")
    walk = text.partition("## From the Search button to the kernel")[2].partition("\n## ")[0]
    listed = {path.replace("/", ".") for path in re.findall(r"`(mlcweb/[\w/]+)\.py`", walk)}
    ours = {name for name in passed if name.startswith(("mlcweb.meta_", "mlcweb.playground."))}
    assert {"mlcweb.meta_schedule.search", "mlcweb.meta_schedule.measure.measuring"} <= ours
    assert ours <= listed
    assert len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) == 9
