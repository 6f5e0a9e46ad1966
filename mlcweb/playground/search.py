"""The page's random searches: begun by names of the program, driven one trial at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.checked_timer import CheckedTimer
from mlcweb.meta_schedule.random_search import Trial, random_search
from mlcweb.playground import namespace, trace_view


@dataclass(slots=True)
class _Search:
    module: IRModule
    module_name: str
    trials: Iterator[Trial]
    done: list[Trial] = field(default_factory=list)
    trace_ids: dict[int, str] = field(default_factory=dict)


_searches: dict[str, _Search] = {}
_numbers = count(1)


def begin(function_name: str, module_name: str, seed: int = 0) -> dict[str, Any]:
    """Start a search over the program that ran last; the one before is forgotten.

    Args:
        function_name: a function of the program that takes a schedule.
        module_name: a module (or a single function) of the program.
        seed: the same seed samples the same schedules.

    Returns:
        Plain JSON: the search's ``id``, and ``baselineSeconds``, the unscheduled program's time.
    """
    variables = vars(sys.modules["__main__"])
    module = namespace.modules(variables).get(module_name)
    function = variables.get(function_name)
    if module is None or not callable(function):
        missing = module_name if module is None else function_name
        raise TVMError(f"the program has no {missing}; run it first")
    timer = CheckedTimer(module)
    identifier = f"s{next(_numbers)}"
    for old in _searches:
        trace_view.forget(old)
    _searches.clear()
    trials = random_search(module, function, measure=timer, seed=seed)
    _searches[identifier] = _Search(module, module_name, trials)
    return {"id": identifier, "baselineSeconds": timer.baseline_seconds}


def step(identifier: str) -> dict[str, Any]:
    """Make one trial and return it as plain JSON."""
    search = _find(identifier)
    trial = next(search.trials)
    search.done.append(trial)
    return {
        "index": trial.index,
        "seed": trial.seed,
        "state": trial.state,
        "seconds": trial.seconds,
        "reason": trial.reason,
        "sameAs": trial.same_as,
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
    """End the sampling; the trials that were made can still be looked at."""
    _find(identifier).trials = iter(())


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
