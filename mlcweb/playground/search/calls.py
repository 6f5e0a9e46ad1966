"""What the page's Search view calls: searches begun by names of the program, followed trial by
trial, and looked at afterwards."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import get_args

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.database import Workload
from mlcweb.meta_schedule.events import Confirmed, Event, Started, Trial
from mlcweb.meta_schedule.measure.artifact import TrialInputs, random_inputs
from mlcweb.meta_schedule.measure.measuring import FINALISTS
from mlcweb.meta_schedule.measure.runner import Runner
from mlcweb.meta_schedule.runner import LocalRunner
from mlcweb.meta_schedule.search import search
from mlcweb.meta_schedule.search_strategy.replay import CallFunction
from mlcweb.meta_schedule.search_strategy.search_strategy import SearchStrategy
from mlcweb.playground import trace_view
from mlcweb.playground.protocol.search import (
    MAX_SEARCHES,
    EarlierRecords,
    SearchNews,
    SearchSettings,
    SearchStart,
    Strategy,
    TrialDetails,
    TrialUpdate,
    WorkloadKey,
)
from mlcweb.playground.protocol.titled import Titled
from mlcweb.playground.search import program as programs
from mlcweb.playground.search.history import history_of
from mlcweb.playground.search.program import Program, replacing_code, schedule_code
from mlcweb.playground.search.spaces import labels, signature
from mlcweb.playground.search.storage import PackedTrial, stored, stored_workload
from mlcweb.playground.session import Document, session

TARGET = "llvm"
"""What programs are built for: the fastest code of this machine."""


@dataclass(slots=True)
class Search:
    """A search as the page knows it.

    Attributes:
        program: what is scheduled.
        workload: how the page's storage knows it.
        events: what is to come; None for a search that a program of the page runs by itself.
        runner: measures; closing it ends the search.
        trials: what is kept of those that came, by index.
    """

    program: Program
    workload: WorkloadKey
    events: AsyncIterator[Event] | None = None
    runner: Runner | None = None
    trials: dict[int, PackedTrial] = field(default_factory=dict)
    spaces: dict[tuple[str, ...], int] = field(default_factory=dict)
    trace_ids: dict[int, str] = field(default_factory=dict)

    def close(self) -> None:
        """End the workers, and so the search; its trials can still be looked at."""
        if self.runner is not None:
            self.runner.close()


def workload(document_name: str, module_name: str, function_name: str | None = None) -> WorkloadKey:
    """How the page's storage knows a function of a document."""
    program = programs.find(session.open(document_name), module_name, function_name)
    return stored_workload(Workload(program.scheduled))


async def begin(settings: SearchSettings, earlier: EarlierRecords | None = None) -> SearchNews:
    """Start a search over a function of a document; those that still run are ended."""
    _check(settings)
    document = session.open(settings.document)
    program = programs.find(document, settings.module, settings.function)
    space, strategy = _chosen(settings, document)
    for each in session.documents.values():
        for other in each.searches.values():
            other.close()
    runner = open_runner(random_inputs(program.scheduled, program.main), settings.workers)
    history, unreadable = history_of(earlier, program.scheduled)
    try:
        events = search(
            program.scheduled,
            space,
            strategy,
            runner=runner,
            history=history,
            target=TARGET,
            seed=settings.seed,
            trials=settings.trials,
            seconds=settings.seconds,
            recall=0 if settings.strategy == "function" else FINALISTS,
        )
        started = await anext(events)
        assert isinstance(started, Started)
    except Exception as error:
        runner.close()
        raise TVMError(f"the unscheduled program cannot be timed: {error}") from error
    key = stored_workload(history.workload)
    start = SearchStart(
        document.name,
        program.title,
        statistics.median(started.baseline),
        started.workers,
        started.flops,
        settings.trials,
        key,
        unreadable,
    )
    return SearchNews(keep(document, Search(program, key, events, runner)), start, [], False)


def _check(settings: SearchSettings) -> None:
    """Raises a TVMError that tells what does not go together."""
    strategies = get_args(Strategy)
    if settings.strategy not in strategies:
        raise TVMError(f'there is no strategy "{settings.strategy}", but {", ".join(strategies)}')
    if settings.strategy == "function" and settings.schedule_function is None:
        raise TVMError("a search over a function of the program needs its name")


def open_runner(workload: TrialInputs, workers: int | None) -> Runner:
    """Workers of this page or machine for one program."""
    return LocalRunner(max_workers=workers).open(workload)


def _chosen(
    settings: SearchSettings, document: Document
) -> tuple[str | None, SearchStrategy | str]:
    """The space and the strategy; no space where a function of the program is called."""
    if settings.schedule_function is not None:
        function = programs.named(document, settings.schedule_function)
        if settings.strategy == "function":
            return None, CallFunction(function)
    return "post-order-apply", settings.strategy


async def step(search_id: str) -> SearchNews:
    """Wait for the next trial that is done; there is none after the last.

    Trials come in the order in which they are done. After all were sampled, the best come a second
    time, ``confirmed``, with the times that decide.
    """
    _, search = session.search(search_id)
    if search.events is None:
        raise TVMError("this search is run by a program")
    async for event in search.events:
        if isinstance(event, Trial | Confirmed):
            return SearchNews(search_id, None, [packed_trial(search, event)], False)
    return SearchNews(search_id, None, [], True)


def packed_trial(search: Search, event: Trial | Confirmed) -> TrialUpdate:
    """A trial for the page; it is kept, so that its details can be asked for."""
    trial = event.trial if isinstance(event, Confirmed) else event
    search.trials[trial.index] = PackedTrial.of(trial)
    kind = signature(trial.trace)
    names = None if kind in search.spaces else labels(trial.trace, search.program.scheduled)
    return TrialUpdate(
        trial.index,
        trial.state,
        trial.seconds,
        trial.reason,
        trial.same_as,
        trial.confirmed,
        trial.predicted,
        trial.round,
        decisions=[str(decision) for _, decision in trial.decisions],
        space=search.spaces.setdefault(kind, len(search.spaces)),
        labels=names,
        record=None if trial.record is None else stored(trial.record, search.workload.key),
    )


def details(search_id: str, index: int) -> TrialDetails:
    """One trial, looked at."""
    document, search = session.search(search_id)
    program, trial = search.program, search.trials[index]
    sch = trial.schedule(program.scheduled)
    title = f"Trial {index}"
    if index not in search.trace_ids:
        starts = [program.scheduled]
        shown = trace_view.register(document, search_id, title, sch.trace, starts, sch.mod)
        search.trace_ids[index] = shown.id
    before, after = program.scheduled.script(), sch.mod.script()
    written = None if trial.seconds is None else (program, sch.trace, title, trial.seconds)
    in_module = isinstance(document.variables.get(program.name), IRModule)
    return TrialDetails(
        Titled(search.trace_ids[index], title),
        trace_view.marked_diff(before, after),
        written and schedule_code(*written),
        replacing_code(*written) if written and in_module else None,
    )


def finish(search_id: str) -> None:
    """End the search and its workers; the trials that were made can still be looked at."""
    session.search(search_id)[1].close()


def forget(search_id: str) -> None:
    """Let go of a search and all that is kept of it."""
    for document in session.documents.values():
        search = document.searches.pop(search_id, None)
        if search is not None:
            document.forget_traces(search_id)
            search.close()


def keep(document: Document, search: Search) -> str:
    """Keep a search for the page; its name."""
    identifier = session.new_id("s")
    document.searches[identifier] = search
    for old in list(document.searches)[:-MAX_SEARCHES]:
        forget(old)
    return identifier


def scheduled(search_id: str, index: int) -> tuple[Program, IRModule]:
    """The program of a search, and what a trial made of it."""
    _, search = session.search(search_id)
    return search.program, search.trials[index].schedule(search.program.scheduled).mod
