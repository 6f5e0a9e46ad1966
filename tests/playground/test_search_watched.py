"""Searches that programs run by themselves: the page hears of them while they go on."""

from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.playground import search
from mlcweb.playground.protocol.search import SearchNews
from mlcweb.playground.search import watched

Run = Callable[[str], Any]

TUNING = """
from functools import partial
from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing

database = ms.tune_tir(
    MyModule, "llvm", max_trials_global=4, num_trials_per_iter=2, seed=1,
    runner=partial(ThreadRunner, timing=Timing(2, 0.05)),
)
print(len(database), "records")
"""


def test_the_page_hears_of_each_trial_and_of_the_end(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[SearchNews] = []
    monkeypatch.setattr(watched, "tell", lambda _, news: told.append(news))
    monkeypatch.setattr(watched, "TELLING_S", 0.0)
    monkeypatch.setattr(watched, "PRINTING_S", 0.0)
    result = run(TUNING)
    assert result.ok, result.error
    assert told[0].start
    assert told[0].start.title == "main, by the program"
    assert told[0].start.planned == 4
    assert all(message.start is None for message in told[1:])
    assert [message.over for message in told] == [*[False] * (len(told) - 1), True]
    trials = [trial for message in told for trial in message.trials]
    assert {trial.index for trial in trials} == {0, 1, 2, 3}
    assert any(trial.confirmed for trial in trials)
    assert trials[0].record
    assert trials[0].record.workload == told[0].start.workload.key
    details = search.details(told[0].id, 0)
    assert "sch = tvm.tir.Schedule(MyModule)" in details.code
    printed = capsys.readouterr().out
    assert "trials 4/4" in printed
    assert "GFLOPS" in printed


def test_nobody_is_told_where_nothing_is_searched(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SearchNews] = []
    monkeypatch.setattr(watched, "tell", lambda _, news: told.append(news))
    run("x = 1")
    assert told == []
