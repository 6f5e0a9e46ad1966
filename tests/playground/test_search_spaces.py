"""The page's searches in the default space: strategies, budgets, records of earlier searches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mlcweb.ir import TVMError
from mlcweb.playground import search
from mlcweb.playground.protocol.search import EarlierRecords, SearchSettings
from tests.playground.searching import earlier_of, fast_runner, followed, settings

Run = Callable[[str], Any]


@pytest.fixture(autouse=True)
def runner_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlcweb.playground.search.calls.open_runner", fast_runner)


def in_space(strategy: str, **changes: Any) -> SearchSettings:
    return settings(strategy=strategy, schedule_function=None, **changes)


def new(told: list[Any]) -> list[Any]:
    return [trial for trial in told if not trial.confirmed and trial.state != "recalled"]


@pytest.mark.parametrize("strategy", ["random", "evolutionary", "exhaustive"])
def test_each_strategy_gives_different_checked_programs(run: Run, strategy: str) -> None:
    run("")
    identifier, told = followed(in_space(strategy, trials=6))
    trials = new(told)
    assert [trial.index for trial in trials] == list(range(6))
    programs = {trial.record.program for trial in trials}
    assert len(programs) == 6
    assert all(trial.seconds > 0 for trial in trials)
    labels = trials[0].labels
    assert labels[0] == ["i_0", "i_1", "i_2"]
    assert len(labels) == len(trials[0].decisions)
    best = min(told, key=lambda trial: trial.seconds).index
    again = run(search.details(identifier, best).code)
    assert again.ok, again.error


def test_a_later_search_goes_on_where_an_earlier_one_ended(run: Run) -> None:
    run("")
    _, told = followed(in_space("random", trials=6))
    _, again = followed(in_space("random", trials=6), earlier_of(told))
    recalled = [trial for trial in again if trial.state == "recalled"]
    assert {trial.index for trial in recalled} == set(range(6))
    assert [trial.index for trial in new(again)] == [6, 7, 8, 9, 10, 11]
    assert all(trial.seconds > 0 for trial in recalled)
    before = {trial.record.program for trial in told if trial.record}
    assert before.isdisjoint(trial.record.program for trial in new(again))


def test_records_without_the_hash_of_their_program_are_found_by_replay(run: Run) -> None:
    run("")
    _, told = followed(in_space("random", trials=4))
    earlier = earlier_of(told)
    imported = EarlierRecords([], [replace(line, program=None) for line in earlier.lines])
    _, again = followed(in_space("random", trials=4), imported)
    before = {trial.record.program for trial in told if trial.record}
    assert before.isdisjoint(trial.record.program for trial in new(again))


def test_seconds_are_a_budget_that_pauses_do_not_spend(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("")
    ticks = iter(range(100_000))
    monkeypatch.setattr("mlcweb.meta_schedule.search.clock", lambda: float(next(ticks)))
    # The clock is read twice for each trial, and once to see whether the search is over.
    _, told = followed(in_space("random", trials=None, seconds=20.0))
    assert 5 <= len(new(told)) <= 20


def test_models_predict_from_the_second_round_on(run: Run) -> None:
    run("")
    _, told = followed(in_space("evolutionary", trials=24))
    by_round: dict[int, list[float | None]] = {}
    for trial in new(told):
        by_round.setdefault(trial.round, []).append(trial.predicted)
    assert set(by_round[0]) == {None}
    later = [score for number, scores in by_round.items() if number for score in scores]
    assert any(score is not None for score in later)


def test_files_in_tvms_layout_are_read_back(run: Run) -> None:
    run("")
    _, told = followed(in_space("random", trials=3))
    records = {trial.record.id: trial.record for trial in told if trial.record}
    known = search.workload("program", "MyModule")
    files = {
        "database_workload.json": known.line + "\n",
        "database_tuning_record.json": "".join(f"[0,{r.record}]\n" for r in records.values()),
    }
    files["database_tuning_record.json"] += "[0,broken"
    read = search.read_files(files)
    [group] = read.groups
    assert "line 4" in read.warnings[0]
    assert group.key == known.key
    assert {r.id for r in group.records} == set(records)
    assert {r.seconds for r in group.records} == {r.seconds for r in records.values()}
    with pytest.raises(TVMError, match="no record can be read"):
        search.read_files({"database_workload.json": "nonsense\n"})
