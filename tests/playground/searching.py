"""Searches as the page leads them, for tests."""

import asyncio
from typing import Any

from mlcweb.meta_schedule.measure.runner import ThreadRunner, Timing
from mlcweb.meta_schedule.measure.trial_inputs import TrialInputs
from mlcweb.playground import search


class FastRunner(ThreadRunner):
    """Measures in this process, shortly; `ran` notes each program that ran."""

    def __init__(self, workload: TrialInputs, ran: list[str]) -> None:
        super().__init__(workload, Timing(2, 0.05))
        self.ran = ran

    async def run(self, artifact: Any) -> tuple[float, ...]:
        self.ran.append(artifact.function)
        return await super().run(artifact)


def fast_runner(workload: TrialInputs, workers: int | None, ran: list[str] | None = None) -> Any:
    return FastRunner(workload, [] if ran is None else ran)


def settings(**changes: Any) -> dict[str, Any]:
    """The form's settings: by default, 4 trials of the schedule function of the test's program."""
    return {
        "module": "MyModule",
        "function": None,
        "strategy": "function",
        "scheduleFunction": "stochastic_schedule_mm",
        "seed": 0,
        "trials": 4,
        "seconds": None,
        "workers": 1,
        **changes,
    }


def followed(
    asked: dict[str, Any], earlier: dict[str, Any] | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """A search's name, and all that its steps tell."""

    async def main() -> tuple[str, list[dict[str, Any]]]:
        begun = await search.begin(asked, earlier)
        assert begun["baselineSeconds"] > 0
        assert begun["workers"] == 1
        told = []
        while (trial := await search.step(begun["id"])) is not None:
            told.append(trial)
        search.finish(begun["id"])
        return begun["id"], told

    return asyncio.run(main())


def earlier_of(told: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page would keep of trials, and hand to the next search."""
    kept = {trial["record"]["id"]: trial["record"] for trial in told if trial["record"]}
    return {
        "programs": [[r["program"], r["seconds"]] for r in kept.values()],
        "lines": [
            {"record": r["record"], "program": r["program"]}
            for r in kept.values()
            if r["seconds"] is not None
        ],
    }
