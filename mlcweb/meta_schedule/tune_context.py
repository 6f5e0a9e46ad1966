"""One task of a search: the program, and how its schedules are found."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.cost_model.cost_model import CostModel, RandomModel
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.mutator import Mutator
from mlcweb.meta_schedule.search_strategy.evolutionary_search import EvolutionarySearch
from mlcweb.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    RunnerResult,
    SearchStrategy,
)
from mlcweb.meta_schedule.space.postprocs import Postproc
from mlcweb.meta_schedule.space_generator import SpaceGenerator
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule
from mlcweb.tir.function import PrimFunc

SpaceGeneratorType = SpaceGenerator | str | Callable[[Schedule], Any]
SearchStrategyType = SearchStrategy | str


class TuneContext:
    """A task.

    Args:
        mod: the program: a function, or a module, of which the only one or "main" is scheduled.
        target: what to build for; that of the surrounding `with target:` by default.
        space_generator: the design spaces: a generator, its name, or a schedule function.
        search_strategy: a strategy or its name.
        task_name: how the task is called where tasks are listed.
        rand_state: the seed of everything random; -1 takes one from the system.
        num_threads: cores of the machine that is tuned for: a number, "physical" or "logical".
        has_default: whether builds give the program a default schedule where no record has another.
            It is the first candidate then.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc | None = None,
        *,
        target: Target | str | None = None,
        space_generator: SpaceGeneratorType | None = None,
        search_strategy: SearchStrategyType | None = None,
        task_name: str = "main",
        rand_state: int = -1,
        num_threads: int | Literal["physical", "logical"] = "physical",
        logger: Any = None,
        has_default: bool = False,
    ) -> None:
        self.mod = None if mod is None else normalized(mod)
        self.target = Target.current() if target is None else Target(target)
        self.space_generator = (
            SpaceGenerator.create(space_generator)
            if space_generator is not None and not isinstance(space_generator, SpaceGenerator)
            else space_generator
        )
        self.search_strategy = (
            SearchStrategy.create(search_strategy)
            if isinstance(search_strategy, str)
            else search_strategy
        )
        self.task_name = task_name
        self.rand_state = secrets.randbelow(2**31 - 2) + 1 if rand_state == -1 else rand_state
        self.num_threads = (os.cpu_count() or 1) if isinstance(num_threads, str) else num_threads
        self.logger = logger
        self.has_default = has_default
        self.initialize()

    def initialize(self) -> None:
        """Tell the generator and the strategy about the task."""
        for part in (self.space_generator, self.search_strategy):
            if part is not None:
                part._initialize_with_tune_context(self)

    @property
    def postprocs(self) -> Sequence[Postproc]:
        """What every schedule goes through at the end."""
        return () if self.space_generator is None else self.space_generator.postprocs or ()

    @property
    def mutator_probs(self) -> Mapping[Mutator, float]:
        """How traces are changed, each with its probability."""
        return {} if self.space_generator is None else self.space_generator.mutator_probs or {}

    def generate_design_space(self) -> list[Schedule]:
        """The schedules whose traces are replayed with other decisions."""
        if self.mod is None or self.space_generator is None:
            raise ValueError("A design space needs TuneContext(mod, space_generator=…)")
        return self.space_generator.generate_design_space(self.mod)

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int = 64,
        design_spaces: Sequence[Schedule] | None = None,
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search of at most `max_trials` candidates."""
        strategy = self._strategy()
        spaces = design_spaces
        if spaces is None:
            spaces = [] if self.space_generator is None else self.generate_design_space()
        if isinstance(strategy, EvolutionarySearch):
            database = MemoryDatabase() if database is None else database
            cost_model = RandomModel() if cost_model is None else cost_model
        strategy.pre_tuning(max_trials, num_trials_per_iter, spaces, database, cost_model)

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next round of candidates; None at the end of the search."""
        return self._strategy().generate_measure_candidates()

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """What became of a round."""
        self._strategy().notify_runner_results(measure_candidates, results)

    def post_tuning(self) -> None:
        """The end of a search."""
        self._strategy().post_tuning()

    def clone(self) -> TuneContext:
        """A context of the same options, with a generator and a strategy of its own."""
        space, strategy = self.space_generator, self.search_strategy
        return TuneContext(
            self.mod,
            target=self.target,
            space_generator=None if space is None else space.clone(),
            search_strategy=None if strategy is None else strategy.clone(),
            task_name=self.task_name,
            rand_state=self.rand_state,
            num_threads=self.num_threads,
            logger=self.logger,
            has_default=self.has_default,
        )

    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise ValueError("A search needs TuneContext(search_strategy=…)")
        return self.search_strategy


def normalized(mod: IRModule | PrimFunc) -> IRModule:
    """A program as records know it: one function, called "main", whatever its name was."""
    if isinstance(mod, PrimFunc):
        func = mod
    else:
        name = the_function_name(mod, None)
        if name == "main" and len(mod.functions) == 1:
            func = mod["main"]
            if func.attrs.get("global_symbol", "main") == "main":
                return mod
        func = mod[name]
    if "global_symbol" in func.attrs:
        func = func.with_attr("global_symbol", "main")
    return IRModule({"main": func})


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedTask:
    """A function of a model.

    Attributes:
        task_name: its name in the model, or that of the first of several that are the same.
        mod: the function as a module of its own, in which it is called "main".
        target: what to tune for.
        dispatched: the programs that may take its place; there is one, `mod`.
        weight: calls of it, and of functions that are the same.
        has_default: whether builds give it a default schedule.
    """

    task_name: str
    mod: IRModule
    target: Target
    dispatched: Sequence[IRModule]
    weight: int
    has_default: bool = False


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask],
    work_dir: str | Path | None,
    space: SpaceGeneratorType | None = "post-order-apply",
    strategy: SearchStrategyType = "evolutionary",
    num_threads: Literal["physical", "logical"] | int = "physical",
    seed: int | None = None,
    special_space: Mapping[str, SpaceGeneratorType | None] | None = None,
) -> tuple[list[TuneContext], list[float]]:
    """The tasks of a search, and their weights. What cannot be run on its own, such as a function
    of symbolic extents, is left out with a warning.

    Args:
        work_dir: as in TVM; contexts write nothing there.
        space: a generator, its name or a schedule function; each task has a copy of its own.
        strategy: a search strategy or its name; each task has a copy of its own.
        num_threads: cores of the machine that is tuned for.
        seed: of everything random.
        special_space: spaces of tasks by name. A task whose space is None is left out.
    """
    contexts, weights = [], []
    for number, task in enumerate(extracted_tasks):
        own_space = (special_space or {}).get(task.task_name, space)
        if own_space is None:
            continue
        (program,) = task.dispatched
        try:
            ArgInfo.from_entry_func(program)
        except TVMError as error:
            warnings.warn(f'"{task.task_name}" is not tuned: {error}', stacklevel=2)
            continue
        contexts.append(
            TuneContext(
                program,
                target=task.target,
                space_generator=_copied(own_space),
                search_strategy=_copied(strategy),
                task_name=task.task_name,
                rand_state=-1 if seed is None else seed + number,
                num_threads=num_threads,
                has_default=task.has_default,
            )
        )
        weights.append(float(task.weight))
    return contexts, weights


def _copied(part: Any) -> Any:
    """A generator or a strategy for a task of its own; a name or a function as it is."""
    return part.clone() if isinstance(part, SpaceGenerator | SearchStrategy) else part
