"""A search with a strategy, a cost model and a database, trial by trial: `Search` that learns."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.cost_model.cost_model import CostModel
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.measure.local_runner import Runners
from mlcweb.meta_schedule.measure.runner import Seconds
from mlcweb.meta_schedule.space.generator import SpaceGenerator
from mlcweb.meta_schedule.strategy.search_strategy import SearchStrategy
from mlcweb.meta_schedule.task_scheduler import TaskScheduler
from mlcweb.meta_schedule.trial import Trial
from mlcweb.meta_schedule.tune_context import SpaceGeneratorType, TuneContext


class StrategySearch:
    """Searches for schedules of one program. First `begin`, then the `trials`; `close` ends them.

    Args:
        module: the program to schedule.
        space: the design spaces: a generator, its name or a schedule function.
        strategy: the search strategy, or its name.
        trials: programs measured; without end if None.
        target: what to build for.
        seed: the same seed and the same measurements give the same search.
        runner: measures; it is closed with the search.
        database: what is known already, and where the records go.
        cost_model: a model or its name.
        max_seconds: no more trials are begun after so many seconds.

    Raises:
        TVMError: the function takes something else than buffers of constant shape.
        ValueError: there is no design space.
    """

    def __init__(
        self,
        module: IRModule,
        *,
        space: SpaceGeneratorType = "post-order-apply",
        strategy: SearchStrategy | str = "evolutionary",
        trials: int | None = None,
        target: str = "llvm",
        seed: int = 0,
        runner: Runners,
        database: Database,
        cost_model: CostModel | str = "numpy",
        max_seconds: float | None = None,
    ) -> None:
        self.limit = trials
        self._runner = runner
        self.max_seconds = max_seconds
        model = CostModel.create(cost_model) if isinstance(cost_model, str) else cost_model
        generator = space if isinstance(space, SpaceGenerator) else SpaceGenerator.create(space)
        context = TuneContext(
            module,
            target=target,
            space_generator=generator,
            search_strategy=strategy,
            rand_state=seed + 1,
        )
        self.scheduler = TaskScheduler.create("round-robin")
        self.scheduler.begin(
            [context],
            [1.0],
            max_trials_global=sys.maxsize if trials is None else trials,
            max_trials_per_task=None,
            num_trials_per_iter=64,
            open_runner=runner.open,
            database=database,
            cost_model=model,
        )
        (self.task,) = self.scheduler.tasks

    async def begin(self) -> Seconds:
        """Run and time the program as it stands; what it computes is what trials must compute."""
        await self.task.begin()
        assert self.task.baseline is not None
        return (self.task.baseline,)

    async def trials(self) -> AsyncIterator[Trial]:
        """Each trial as soon as it is done; then the best of them again, with confirmed times.
        Where the runner is closed meanwhile, no more come."""
        async for _, trial in self.scheduler.steps(max_seconds=self.max_seconds):
            yield trial

    def close(self) -> None:
        """End the workers, and so the trials."""
        self.task.runner.close()
        self._runner.close()
