"""What is told of a search while it runs."""

import io
import logging
import sys
from types import SimpleNamespace

import pytest

from mlcweb.meta_schedule import progress
from mlcweb.meta_schedule.cost_model import NumPyModel, Ranking

INFINITE = float("inf")


def task(name: str, best: float, trials: int, gflops: float | None = None, weight: float = 1.0):
    return SimpleNamespace(
        name=name, best=best, trials=trials, gflops=gflops, weight=weight, flops=4194304.0,
        terminated=trials == 5, failed=0, failure=None,
        context=SimpleNamespace(search_strategy=None),
    )  # fmt: skip


class Scheduler(SimpleNamespace):
    @property
    def total_trials(self) -> int:
        return sum(task.trials for task in self.tasks)


@pytest.fixture
def scheduler():
    tasks = [task("main", 229.4258e-6, 5, 18.2817), task("other", INFINITE, 0, weight=2.0)]
    return Scheduler(tasks=tasks, max_trials_global=20)


def test_the_table_is_that_of_the_course(scheduler) -> None:
    assert progress.text(scheduler).splitlines() == [
        "ID |  Name |    FLOP | Weight | Speed (GFLOPS) | Latency (us) | Weighted Latency (us) "
        "| Trials | Done",
        "-" * 101,
        " 0 |  main | 4194304 |      1 |        18.2817 |     229.4258 |              229.4258 "
        "|      5 |    Y",
        " 1 | other | 4194304 |      2 |            N/A |          N/A |                   N/A "
        "|      0 |     ",
        "-" * 101,
    ]


def test_the_time_that_is_left_follows_from_the_trials(scheduler) -> None:
    assert progress.totals(scheduler, 10.0) == (
        "total latency 229.4 us, trials 5/20, 10 s, about 30 s left"
    )
    assert progress.line(scheduler, 0, 10.0) == (
        'Task #0 "main": best 229.4 us, 18.28 GFLOPS; trials 5/20, 10 s, about 30 s left'
    )
    assert progress.line(scheduler, 1, 10.0).startswith('Task #1 "other": nothing ran yet;')
    for each in scheduler.tasks:
        each.terminated = True
    assert progress.trials(scheduler, 10.0) == "trials 5/20, 10 s"


def test_a_line_tells_of_failed_trials_and_why_one_of_them_did(scheduler) -> None:
    scheduler.tasks[0].failed = 2
    scheduler.tasks[0].failure = "WrongResult: 3 of 64\n" + "elements " * 40
    told = progress.trials(scheduler, 10.0)
    assert ", 2 failed (WrongResult: 3 of 64 elements elements" in told
    assert len(told) < 240


def test_a_line_tells_how_well_programs_were_ranked(scheduler) -> None:
    class Model(NumPyModel):
        def ranking(self, context):
            return Ranking(0.75, 0.7, 40, 50)

    scheduler.tasks[0].context.search_strategy = SimpleNamespace(cost_model=Model())
    assert progress.trials(scheduler, 10.0).endswith(
        ", 75% of clear pairs ranked right (70% of all)"
    )


def test_a_log_has_a_line_for_what_is_better_and_now_and_then_another(scheduler, caplog) -> None:
    moments = iter([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 20.0, 21.0])
    best = iter([200e-6, 199e-6, 150e-6, 150e-6, 150e-6])
    with progress.Progress(lambda: next(moments)) as told:
        told(scheduler, None)
        for value in best:
            scheduler.tasks[0].best = value
            told(scheduler, 0)
        told(scheduler, None)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "Tuning main, other: 20 trials at most"
    # Half a percent is not worth a line; after more than ten seconds there is one all the same.
    assert [line.split(";")[0].split("best ")[1] for line in lines[1:4]] == [
        "200 us, 18.28 GFLOPS", "150 us, 18.28 GFLOPS", "150 us, 18.28 GFLOPS",
    ]  # fmt: skip
    assert lines[4].startswith("Done: total latency 150 us, trials 5/20, 21 s")
    assert len(lines) == 5


def test_without_logging_set_up_lines_go_to_standard_error(scheduler, monkeypatch, capsys) -> None:
    logger = logging.getLogger("mlcweb.meta_schedule")
    monkeypatch.setattr(logger, "propagate", False)
    with progress.Progress() as told:
        told(scheduler, None)
    assert "[INFO] Tuning main, other: 20 trials at most" in capsys.readouterr().err
    assert logger.handlers == []
    assert logger.level == logging.NOTSET


def test_a_terminal_has_a_live_table(scheduler, monkeypatch) -> None:
    pytest.importorskip("rich")
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with progress.Progress() as told:
        told(scheduler, None)
        told(scheduler, 0)
    shown = screen.getvalue()
    assert "18.2817" in shown
    assert "trials 5/20" in shown
    assert "Weighted" in shown
