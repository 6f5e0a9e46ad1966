"""What the page's Search view calls: searches begun by names of the program, followed trial by
trial, and looked at afterwards."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.ir import DiagnosticError, IRModule, TVMError
from mlcweb.meta_schedule.trial import Trial
from mlcweb.playground import trace_view
from mlcweb.playground.protocol.search import (
    MAX_SEARCHES,
    EarlierRecords,
    SearchSettings,
    SearchStart,
    StoredRecord,
    ToldTrial,
    TrialDetails,
    TrialState,
    WorkloadKey,
)
from mlcweb.playground.protocol.trace import ShownTrace
from mlcweb.playground.search import program as programs
from mlcweb.playground.search.code import replacing_code, schedule_code
from mlcweb.playground.search.earlier import Earlier
from mlcweb.playground.search.kept import KeptTrial
from mlcweb.playground.search.program import Program
from mlcweb.playground.search.run import Run
from mlcweb.playground.search.settings import check
from mlcweb.playground.search.spaces import labels, signature
from mlcweb.playground.search.storage import Recorder


@dataclass(slots=True)
class Search:
    """A search as the page knows it: one that has a `run`, or one that a program of the page runs
    by itself, whose trials become records by a `recorder`."""

    program: Program
    run: Run | None = None
    recorder: Recorder | None = None
    trials: AsyncIterator[Trial] | None = None
    kept: dict[int, KeptTrial] = field(default_factory=dict)
    spaces: dict[tuple[str, ...], int] = field(default_factory=dict)
    trace_ids: dict[int, str] = field(default_factory=dict)


_searches: dict[str, Search] = {}
_numbers = count(1)


def workload(module_name: str, function_name: str | None = None) -> WorkloadKey:
    """How the page's storage knows a function of the program."""
    return Recorder(programs.find(module_name, function_name).scheduled).workload_key


async def begin(settings: SearchSettings, earlier: EarlierRecords | None = None) -> SearchStart:
    """Start a search over the program that ran last; one that still runs is ended."""
    check(settings)
    program = programs.find(settings.module, settings.function)
    if settings.schedule_function is not None:
        programs.named(settings.schedule_function)
    for other in _searches.values():
        if other.run is not None:
            other.run.close()
    run = Run(program, settings, Earlier.of(earlier, program.scheduled))
    try:
        baseline = await run.begin()
    except Exception as error:
        run.close()
        raise TVMError(f"the unscheduled program cannot be timed: {error}") from error
    identifier = keep(Search(program, run, trials=run.trials()))
    return SearchStart(
        identifier,
        program.title,
        statistics.median(baseline),
        run.runner.workers,
        operations(program.scheduled),
    )


async def step(search_id: str) -> ToldTrial | None:
    """Wait for the next trial that is done, and return it; None after the last.

    Trials come in the order in which they are done. After all were sampled, the best come a second
    time, ``confirmed``, with the times that decide.
    """
    search = _find(search_id)
    if search.run is None or search.trials is None:
        raise TVMError("this search is led by a program")
    trial = await anext(search.trials, None)
    return None if trial is None else told(search, trial)


def told(search: Search, trial: Trial) -> ToldTrial:
    """A trial for the page; it is kept, so that its details can be asked for."""
    if trial.confirmed and trial.same_as is not None:
        # It took over a time, and its steps were let go of since.
        kept = replace(search.kept[trial.index], seconds=trial.seconds)
        decisions = None, None, None
    else:
        kept = KeptTrial.of(trial)
        decisions = _decided(search, trial)
    search.kept[trial.index] = kept
    run = search.run
    return ToldTrial(
        trial.index,
        trial.seed,
        _state(run, trial),
        trial.seconds,
        list(trial.run_secs),
        trial.reason,
        trial.same_as,
        trial.confirmed,
        trial.predicted,
        0 if run is None else run.rounds.get(trial.index, 0),
        *decisions,
        record=_record(search, trial, kept),
    )


def _record(search: Search, trial: Trial, kept: KeptTrial) -> StoredRecord | None:
    if search.run is not None:
        return search.run.record(trial, kept)
    if search.recorder is None:
        return None
    return search.recorder.stored(search.recorder.record(trial, kept), kept)


def _decided(search: Search, trial: Trial) -> tuple[list[str], int, list[str] | None]:
    """The decisions of a trial, its space, and their names where the space is a new one."""
    kind = signature(trial.trace)
    names = None if kind in search.spaces else labels(trial.trace, search.program.scheduled)
    space = search.spaces.setdefault(kind, len(search.spaces))
    return [str(decision) for _, decision in trial.decisions], space, names


def _state(run: Run | None, trial: Trial) -> TrialState:
    recalled = run is not None and trial.index in run.recalled
    return "recalled" if recalled and trial.state == "measured" else trial.state


def details(search_id: str, index: int) -> TrialDetails:
    """One trial, looked at."""
    search = _find(search_id)
    program, trial = search.program, search.kept[index]
    sch = trial.schedule(program.scheduled)
    title = f"Trial {index}"
    if index not in search.trace_ids:
        shown = trace_view.register(search_id, title, sch.trace, [program.scheduled], sch.mod)
        search.trace_ids[index] = shown.id
    before, after = program.scheduled.script(), sch.mod.script()
    written = None if trial.seconds is None else (program, sch.trace, title, trial.seconds)
    in_module = isinstance(programs.variables().get(program.name), IRModule)
    return TrialDetails(
        ShownTrace(search.trace_ids[index], title, trace_view.instructions(sch.trace)),
        after,
        trace_view.marked_diff(before, after),
        written and schedule_code(*written),
        replacing_code(*written) if written and in_module else None,
    )


def finish(search_id: str) -> None:
    """End the search and its workers; the trials that were made can still be looked at."""
    search = _find(search_id)
    if search.run is not None:
        search.run.close()


def forget(search_id: str) -> None:
    """Let go of a search and all that is kept of it."""
    search = _searches.pop(search_id, None)
    trace_view.forget(search_id)
    if search is not None and search.run is not None:
        search.run.close()


def keep(search: Search) -> str:
    """Keep a search for the page; its name."""
    identifier = f"s{next(_numbers)}"
    _searches[identifier] = search
    for old in list(_searches)[:-MAX_SEARCHES]:
        forget(old)
    return identifier


def scheduled(search_id: str, index: int) -> tuple[Program, IRModule]:
    """The program of a search, and what a trial made of it."""
    search = _find(search_id)
    return search.program, search.kept[index].schedule(search.program.scheduled).mod


def operations(module: IRModule) -> float:
    """Arithmetic operations of a call; 0 where they cannot be counted."""
    try:
        return estimate_flops(module)
    except DiagnosticError:
        return 0.0


def _find(search_id: str) -> Search:
    if search_id not in _searches:
        raise TVMError("there is no search of this name; it was begun before Python restarted")
    return _searches[search_id]
