"""What the page's Search view calls: searches begun by names of the program, followed trial by
trial, and looked at afterwards."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.ir import DiagnosticError, IRModule, TVMError
from mlcweb.meta_schedule.trial import Trial
from mlcweb.playground import trace_view
from mlcweb.playground.search import program as programs
from mlcweb.playground.search.code import replacing_code, schedule_code
from mlcweb.playground.search.earlier import Earlier
from mlcweb.playground.search.kept import KeptTrial
from mlcweb.playground.search.program import Program
from mlcweb.playground.search.run import Run
from mlcweb.playground.search.settings import Settings
from mlcweb.playground.search.spaces import labels, signature
from mlcweb.playground.search.storage import Recorder

MAX_SEARCHES = 8
"""So many searches can be looked at; older ones are forgotten."""


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


def workload(module: str, function: str | None = None) -> dict[str, str]:
    """How the page's storage knows a function of the program: ``key`` and ``line``."""
    recorder = Recorder(programs.find(module, function).scheduled)
    return {"key": recorder.key, "line": recorder.line}


async def begin(
    settings: Mapping[str, Any], earlier: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Start a search over the program that ran last; one that still runs is ended.

    Args:
        settings: as `Settings.from_json` reads them.
        earlier: records of earlier searches, as `Earlier.from_json` reads them.

    Returns:
        Plain JSON: the search's ``id``; its ``title``; ``baselineSeconds``, the unscheduled
        program's time; ``workers``, how many there are; and ``operations`` of a call, 0 where they
        cannot be counted.
    """
    asked = Settings.from_json(settings)
    program = programs.find(asked.module, asked.function)
    if asked.schedule_function is not None:
        programs.named(asked.schedule_function)
    for other in _searches.values():
        if other.run is not None:
            other.run.close()
    run = Run(program, asked, Earlier.from_json(earlier, program.scheduled))
    try:
        baseline = await run.begin()
    except Exception as error:
        run.close()
        raise TVMError(f"the unscheduled program cannot be timed: {error}") from error
    identifier = keep(Search(program, run, trials=run.trials()))
    return {
        "id": identifier,
        "title": program.title,
        "baselineSeconds": statistics.median(baseline),
        "workers": run.runner.workers,
        "operations": operations(program.scheduled),
    }


async def step(identifier: str) -> dict[str, Any] | None:
    """Wait for the next trial that is done, and return it as plain JSON; None after the last.

    Trials come in the order in which they are done. After all were sampled, the best come a second
    time, ``confirmed``, with the times that decide.
    """
    search = _find(identifier)
    if search.run is None or search.trials is None:
        raise TVMError("this search is led by a program")
    trial = await anext(search.trials, None)
    return None if trial is None else told(search, trial)


def told(search: Search, trial: Trial) -> dict[str, Any]:
    """A trial as plain JSON; it is kept, so that its details can be asked for.

    ``record`` is what the page stores. ``space`` is the number of the design space, and ``labels``
    are the names of its decisions where it is met for the first time; these and the ``decisions``
    are left out where they were told before.
    """
    if trial.confirmed and trial.same_as is not None:
        # It took over a time, and its steps were let go of since.
        kept = replace(search.kept[trial.index], seconds=trial.seconds)
        shown: dict[str, Any] = {}
    else:
        kept = KeptTrial.of(trial)
        shown = _decided(search, trial)
    search.kept[trial.index] = kept
    run = search.run
    return {
        "index": trial.index,
        "seed": trial.seed,
        "state": _state(run, trial),
        "seconds": trial.seconds,
        "repeats": list(trial.run_secs),
        "reason": trial.reason,
        "sameAs": trial.same_as,
        "confirmed": trial.confirmed,
        "predicted": trial.predicted,
        "round": 0 if run is None else run.rounds.get(trial.index, 0),
        "record": _record(search, trial, kept),
        **shown,
    }


def _record(search: Search, trial: Trial, kept: KeptTrial) -> dict[str, Any] | None:
    if search.run is not None:
        return search.run.record(trial, kept)
    if search.recorder is None:
        return None
    return search.recorder.stored(search.recorder.record(trial, kept), kept)


def _decided(search: Search, trial: Trial) -> dict[str, Any]:
    kind = signature(trial.trace)
    fresh = kind not in search.spaces
    return {
        "decisions": [str(decision) for _, decision in trial.decisions],
        "space": search.spaces.setdefault(kind, len(search.spaces)),
        "labels": labels(trial.trace, search.program.scheduled) if fresh else None,
    }


def _state(run: Run | None, trial: Trial) -> str:
    recalled = run is not None and trial.index in run.recalled
    return "recalled" if recalled and trial.state == "measured" else trial.state


def details(identifier: str, index: int) -> dict[str, Any]:
    """One trial's ``trace`` (for `trace_view`), ``source`` of its module, ``diff`` of it to the
    program before any step, ``code`` that builds its schedule again, and ``replacing``, code that
    also replaces the function in its module (None for a function that stands alone)."""
    search = _find(identifier)
    program, trial = search.program, search.kept[index]
    sch = trial.schedule(program.scheduled)
    title = f"Trial {index}"
    if index not in search.trace_ids:
        shown = trace_view.register(identifier, title, sch.trace, [program.scheduled], sch.mod)
        search.trace_ids[index] = shown["id"]
    before, after = program.scheduled.script(), sch.mod.script()
    written = None if trial.seconds is None else (program, sch.trace, title, trial.seconds)
    in_module = isinstance(programs.variables().get(program.name), IRModule)
    return {
        "trace": {
            "id": search.trace_ids[index],
            "title": title,
            "steps": trace_view.instructions(sch.trace),
        },
        "source": after,
        "diff": trace_view.marked_diff(before, after),
        "code": written and schedule_code(*written),
        "replacing": replacing_code(*written) if written and in_module else None,
    }


def finish(identifier: str) -> None:
    """End the search and its workers; the trials that were made can still be looked at."""
    search = _find(identifier)
    if search.run is not None:
        search.run.close()


def forget(identifier: str) -> None:
    """Let go of a search and all that is kept of it."""
    search = _searches.pop(identifier, None)
    trace_view.forget(identifier)
    if search is not None and search.run is not None:
        search.run.close()


def keep(search: Search) -> str:
    """Keep a search for the page; its name."""
    identifier = f"s{next(_numbers)}"
    _searches[identifier] = search
    for old in list(_searches)[:-MAX_SEARCHES]:
        forget(old)
    return identifier


def scheduled(identifier: str, index: int) -> tuple[Program, IRModule]:
    """The program of a search, and what a trial made of it."""
    search = _find(identifier)
    return search.program, search.kept[index].schedule(search.program.scheduled).mod


def operations(module: IRModule) -> float:
    """Arithmetic operations of a call; 0 where they cannot be counted."""
    try:
        return estimate_flops(module)
    except DiagnosticError:
        return 0.0


def _find(identifier: str) -> Search:
    if identifier not in _searches:
        raise TVMError("there is no search of this name; it was begun before Python restarted")
    return _searches[identifier]
