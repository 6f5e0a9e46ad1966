"""The page's random searches: begun by names of the program, followed one trial at a time."""

from __future__ import annotations

import statistics
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.session import Search
from mlcweb.meta_schedule.trial import Trial
from mlcweb.playground import namespace, trace_view


@dataclass(slots=True)
class _Search:
    module: IRModule
    module_name: str
    session: Search
    trials: AsyncIterator[Trial]
    done: dict[int, Trial] = field(default_factory=dict)
    trace_ids: dict[int, str] = field(default_factory=dict)


_searches: dict[str, _Search] = {}
_numbers = count(1)


async def begin(
    function_name: str,
    module_name: str,
    seed: int = 0,
    trials: int | None = None,
    workers: int | None = None,
) -> dict[str, Any]:
    """Start a search over the program that ran last; the one before is forgotten.

    Args:
        function_name: a function of the program that takes a schedule.
        module_name: a module (or a single function) of the program.
        seed: the same seed samples the same schedules.
        trials: how many schedules to sample; without end if None.
        workers: programs measured at one time; by default what suits the machine.

    Returns:
        Plain JSON: the search's ``id``; ``baselineSeconds``, the unscheduled program's time; and
        ``workers``, how many there are.
    """
    variables = vars(sys.modules["__main__"])
    module = namespace.modules(variables).get(module_name)
    function = variables.get(function_name)
    if module is None or not callable(function):
        missing = module_name if module is None else function_name
        raise TVMError(f"the program has no {missing}; run it first")
    for old in tuple(_searches):
        _searches.pop(old).session.close()
        trace_view.forget(old)
    session = Search(module, function, trials=trials, seed=seed, workers=workers)
    identifier = f"s{next(_numbers)}"
    _searches[identifier] = _Search(module, module_name, session, session.trials())
    try:
        baseline = await session.begin()
    except Exception as error:
        finish(identifier)
        raise TVMError(f"the unscheduled program cannot be timed: {error}") from error
    return {
        "id": identifier,
        "baselineSeconds": statistics.median(baseline),
        "workers": session.runner.workers,
    }


async def step(identifier: str) -> dict[str, Any] | None:
    """Wait for the next trial that is done, and return it as plain JSON; None after the last.

    Trials come in the order in which they are done. After all were sampled, the best come a second
    time, ``confirmed``, with the times that decide.
    """
    search = _find(identifier)
    trial = await anext(search.trials, None)
    if trial is None:
        return None
    search.done[trial.index] = trial
    return {
        "index": trial.index,
        "seed": trial.seed,
        "state": trial.state,
        "seconds": trial.seconds,
        "repeats": list(trial.run_secs),
        "reason": trial.reason,
        "sameAs": trial.same_as,
        "confirmed": trial.confirmed,
        "decisions": [str(decision) for _, decision in trial.decisions],
    }


def details(identifier: str, index: int) -> dict[str, Any]:
    """One trial's ``trace`` (for `trace_view`), ``source`` of its module, and ``code`` that builds
    its schedule again."""
    search = _find(identifier)
    trial = search.done[index]
    if index not in search.trace_ids:
        title = f"trial {index}"
        shown = trace_view.register(identifier, title, trial.trace, [search.module], trial.module)
        search.trace_ids[index] = shown["id"]
    return {
        "trace": {
            "id": search.trace_ids[index],
            "title": f"trial {index}",
            "steps": trace_view.instructions(trial.trace),
        },
        "source": trial.module.script(),
        "code": None if trial.state == "failed" else _code(search, trial),
    }


def finish(identifier: str) -> None:
    """End the search and its workers; the trials that were made can still be looked at."""
    _find(identifier).session.close()


def _code(search: _Search, trial: Trial) -> str:
    """Python that repeats the trial's steps on the module, decisions included."""
    time = f", {trial.seconds * 1000:.3f} ms" if trial.seconds is not None else ""
    lines = [
        f"# Trial {trial.index} of a search{time}.",
        f"sch = tvm.tir.Schedule({search.module_name})",
        *trial.trace.as_python(),
        "sch.mod.show()",
    ]
    return "\n".join(lines) + "\n"


def _find(identifier: str) -> _Search:
    if identifier not in _searches:
        raise TVMError("there is no search of this name; it was begun before Python restarted")
    return _searches[identifier]
