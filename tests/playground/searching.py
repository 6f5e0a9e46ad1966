"""Searches as the page leads them, for tests."""

import asyncio
from dataclasses import replace
from typing import Any

from mlcweb.meta_schedule.measure.artifact import TrialInputs
from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.playground import search
from mlcweb.playground.protocol.search import EarlierRecord, EarlierRecords, SearchSettings


class FastRunner(ThreadRunner):
    """Measures in this process, shortly; `ran` notes each program that ran."""

    def __init__(self, workload: TrialInputs, ran: list[str]) -> None:
        super().__init__(workload, Timing(2, 0.05))
        self.ran = ran

    async def measure(self, artifact: Any) -> tuple[float, ...]:
        self.ran.append(artifact.function)
        return await super().measure(artifact)


def fast_runner(workload: TrialInputs, workers: int | None, ran: list[str] | None = None) -> Any:
    return FastRunner(workload, [] if ran is None else ran)


def settings(**changes: Any) -> SearchSettings:
    """The form's settings: by default, 4 trials of the schedule function of the test's program."""
    asked = SearchSettings(
        "program", "MyModule", schedule_function="stochastic_schedule_mm", trials=4, workers=1
    )
    return replace(asked, **changes)


def followed(
    asked: SearchSettings, earlier: EarlierRecords | None = None, unreadable: int = 0
) -> tuple[str, list[Any]]:
    """A search's name, and all that its steps tell."""

    async def main() -> tuple[str, list[Any]]:
        begun = await search.begin(asked, earlier)
        assert begun.start and not begun.trials and not begun.over
        assert begun.start.document == asked.document and begun.start.planned == asked.trials
        assert begun.start.workload == search.workload(asked.document, asked.module, asked.function)
        assert begun.start.baseline_seconds
        assert begun.start.workers == 1
        assert begun.start.unreadable == unreadable
        told = []
        while not (news := await search.step(begun.id)).over:
            assert news.id == begun.id and news.start is None
            told += news.trials
        assert not news.trials
        search.finish(begun.id)
        return begun.id, told

    return asyncio.run(main())


def earlier_of(told: list[Any]) -> EarlierRecords:
    """What the page would keep of trials, and hand to the next search."""
    kept = {trial.record.id: trial.record for trial in told if trial.record}
    return EarlierRecords(
        [(r.program, r.seconds) for r in kept.values()],
        [EarlierRecord(r.record, r.program) for r in kept.values() if r.seconds is not None],
    )
