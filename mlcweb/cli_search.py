"""``mlcweb search``: a progress bar while trials are measured, then a table of them.

Trials are measured in a worker process with a time limit, so none can end the search.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.checked_timer import CheckedTimer
from mlcweb.meta_schedule.process_pool import ProcessPool
from mlcweb.meta_schedule.random_search import (
    ScheduleFunction,
    Trial,
    best_trial,
    random_search,
)
from mlcweb.playground import namespace


class SearchError(Exception):
    """There is nothing to search over; the text says what is missing."""


def search(variables: Mapping[str, Any], options: argparse.Namespace) -> bool:
    """Searches as the command line's `options` say, and prints what it finds.

    Args:
        variables: the global variables of the program.

    Returns:
        Whether any trial succeeded.

    Raises:
        SearchError: the program lacks the function or the module, or cannot be run as it stands.
    """
    console = Console()
    function = _function(variables, options)
    module = _module(variables, options.module)
    seed = random.randrange(2**31) if options.seed is None else options.seed

    trials: list[Trial] = []
    pool = ProcessPool(timeout_s=options.timeout)
    try:
        with _progress(console) as progress:
            task = progress.add_task("timing the program as it stands", total=options.trials)
            timer = _timer(pool, module, options.target)
            found = random_search(
                module,
                function,
                measure=lambda candidate: pool.submit(timer, candidate).result(),
                seed=seed,
            )
            for trial in islice(_until_interrupted(found), options.trials):
                trials.append(trial)
                progress.update(task, advance=1, description=_best_so_far(trials))
    finally:
        pool.shutdown(wait=False)

    best = best_trial(trials)
    console.print(_table(trials, best, timer.baseline_seconds, seed))
    if best is not None:
        console.print(f"\nThe trace of trial {best.index}:", style="bold")
        console.print(str(best.trace), highlight=False, soft_wrap=True, markup=False)
    if options.json is not None:
        _write(options, seed, timer.baseline_seconds, trials, best)
    return best is not None


def _timer(pool: ProcessPool, module: IRModule, target: str) -> CheckedTimer:
    """A timer that knows what the unscheduled program computes and how long that takes."""
    try:
        return pool.submit(_prepared, CheckedTimer(module, target=target)).result()
    except Exception as error:
        raise SearchError(f"The unscheduled program cannot be timed: {error}") from error


def _prepared(timer: CheckedTimer) -> CheckedTimer:
    _ = timer.expected, timer.baseline_seconds
    return timer


def _until_interrupted(trials: Iterator[Trial]) -> Iterator[Trial]:
    """Ctrl-C ends the search, and what was found by then is shown."""
    try:
        yield from trials
    except KeyboardInterrupt:
        return


def _module(variables: Mapping[str, Any], name: str | None) -> IRModule:
    modules = namespace.modules(variables)
    if name is None and len(modules) == 1:
        return next(iter(modules.values()))
    if name not in modules:
        asked = f"no IRModule {name}" if name else "several IRModules" if modules else "no IRModule"
        choice = f"; choose one with --module: {', '.join(modules)}" if modules else ""
        raise SearchError(f"The program has {asked}{choice}.")
    return modules[name]


def _function(variables: Mapping[str, Any], options: argparse.Namespace) -> ScheduleFunction:
    function = variables.get(options.function)
    if callable(function):
        return function
    found = namespace.schedule_functions(variables, str(options.file))
    choice = ", ".join(each["name"] for each in found) or "none"
    raise SearchError(
        f"The program has no function {options.function}. Functions of a schedule: {choice}."
    )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _best_so_far(trials: Sequence[Trial]) -> str:
    best = best_trial(trials)
    if best is None or best.seconds is None:
        return "none succeeded yet"
    return f"best {best.seconds * 1e3:.3f} ms, trial {best.index}"


def _table(trials: Sequence[Trial], best: Trial | None, baseline: float, seed: int) -> Table:
    table = Table(
        title=f"Unscheduled: {baseline * 1e3:.3f} ms",
        caption=f"--seed {seed} samples the same schedules again",
    )
    table.add_column("trial", justify="right")
    table.add_column("time, ms", justify="right")
    table.add_column("speed-up", justify="right")
    table.add_column("decisions", overflow="fold")
    for trial in trials:
        decisions = ", ".join(str(decision) for _, decision in trial.decisions)
        if trial.seconds is None:
            row = ("failed", "", f"{decisions}\n{trial.reason}".strip())
        else:
            same = "" if trial.same_as is None else f"  (as trial {trial.same_as})"
            time, speed_up = trial.seconds * 1e3, baseline / trial.seconds
            row = (f"{time:.3f}", f"{speed_up:.2f}", decisions + same)
        mark = "★ " if trial is best else ""
        style = "bold green" if trial is best else "dim" if trial.state != "measured" else ""
        table.add_row(f"{mark}{trial.index}", *row, style=style)
    return table


def _write(
    options: argparse.Namespace,
    seed: int,
    baseline: float,
    trials: Sequence[Trial],
    best: Trial | None,
) -> None:
    """Writes everything about the search as JSON; times in seconds, traces as TVM records them."""
    record = {
        "file": str(options.file),
        "function": options.function,
        "target": options.target,
        "seed": seed,
        "baseline_seconds": baseline,
        "best": None if best is None else best.index,
        "trials": [
            {
                "index": trial.index,
                "seed": trial.seed,
                "state": trial.state,
                "seconds": trial.seconds,
                "reason": trial.reason,
                "same_as": trial.same_as,
                "trace": trial.trace.as_json(),
            }
            for trial in trials
        ],
    }
    Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
