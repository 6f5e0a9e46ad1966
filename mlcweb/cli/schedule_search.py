"""``mlcweb search``: a progress bar while trials are measured, then a table of them.

Trials are measured in worker processes with a time limit, so none can end the search.
"""

import argparse
import asyncio
import json
import random
import statistics
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mlcweb.cli.common import CommandError, open_runner
from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.database import Database, JSONDatabase, MemoryDatabase
from mlcweb.meta_schedule.events import Confirmed, Event, Started, Trial, best_trial
from mlcweb.meta_schedule.history import History
from mlcweb.meta_schedule.measure.artifact import random_inputs
from mlcweb.meta_schedule.runner import OpenRunner
from mlcweb.meta_schedule.search import search
from mlcweb.meta_schedule.search_strategy.replay import CallFunction
from mlcweb.meta_schedule.tune_context import normalized
from mlcweb.schedule import Schedule
from mlcweb.user_code import namespace

DEFAULT_TRIALS = 20


def search_schedules(variables: Mapping[str, Any], options: argparse.Namespace) -> bool:
    """Searches as the command line's `options` say, and prints what it finds.

    Args:
        variables: the global variables of the program.

    Returns:
        Whether any trial succeeded.

    Raises:
        CommandError: the program lacks the function or the module, or cannot be run as it stands.
    """
    console = Console()
    module = _module(variables, options.module)
    function = None if options.function is None else _function(variables, options)
    seed = random.randrange(2**31) if options.seed is None else options.seed
    runners = open_runner(options)
    try:
        # As records have it: what they say of a function of another name could not be replayed.
        module = normalized(module)
        database = MemoryDatabase()
        if options.work_dir is not None:
            database = JSONDatabase(work_dir=options.work_dir)
        earlier = len(database.get_standing_records())
        events = _events(module, function, options, seed, runners.open, database)
    except (TVMError, ValueError, ImportError, OSError) as error:
        runners.close()
        raise CommandError(f"There is nothing to search over: {error}") from error
    trials: dict[int, Trial] = {}
    try:
        with _progress(console) as progress:
            baseline = asyncio.run(_follow(events, trials, progress, _limit(options)))
    finally:
        runners.close()
    done = [trials[index] for index in sorted(trials)]

    best = best_trial(done)
    console.print(_table(done, best, baseline, seed))
    if options.work_dir is not None:
        _tell_records(console, options.work_dir, database, module, earlier)
    if best is not None:
        console.print(f"\nThe trace of trial {best.index}:", style="bold")
        console.print(str(best.trace), highlight=False, soft_wrap=True, markup=False)
    if options.json is not None:
        _write(options, seed, baseline, done, best)
    return best is not None


def _events(
    module: IRModule,
    function: Callable[[Schedule], Any] | None,
    options: argparse.Namespace,
    seed: int,
    open_workers: OpenRunner,
    database: Database,
) -> AsyncIterator[Event]:
    """What the options ask for: a function is called for each trial, unless there is a strategy
    that searches the decisions of its trace."""
    name = options.strategy or ("evolutionary" if function is None else "random")
    calls = function is not None and name == "random"
    return search(
        module,
        None if calls else function or "post-order-apply",
        CallFunction(function) if calls and function else name,
        runner=open_workers(random_inputs(module)),
        history=History(database, module),
        target=options.target,
        seed=seed,
        trials=_limit(options),
        seconds=options.seconds,
        cost_model=options.cost_model,
    )


def _limit(options: argparse.Namespace) -> int | None:
    """How many trials there are at most; None where something else ends the search."""
    ends = options.seconds is not None or options.strategy == "exhaustive"
    return DEFAULT_TRIALS if options.trials is None and not ends else options.trials


def _tell_records(
    console: Console, folder: Path, database: Database, module: IRModule, earlier: int
) -> None:
    best = database.query_tuning_record(module)
    fastest = "" if best is None else f"; the fastest takes {best.seconds * 1e3:.3f} ms"
    # The best have one more line each in the file, with their confirmed times.
    count = len(database.get_standing_records())
    console.print(f"{count - earlier} records are new in {folder}, which has {count}{fastest}")


async def _follow(
    events: AsyncIterator[Event],
    trials: dict[int, Trial],
    progress: Progress,
    limit: int | None,
) -> float:
    """Collects trials until the last, or until Ctrl-C: what was found by then counts.

    Returns:
        The unscheduled program's time in seconds.
    """
    task = progress.add_task("timing the program as it stands", total=limit)
    try:
        started = await anext(events)
    except Exception as error:
        raise CommandError(f"The unscheduled program cannot be timed: {error}") from error
    assert isinstance(started, Started)
    # asyncio turns Ctrl-C into a cancellation.
    with suppress(asyncio.CancelledError):
        async for event in events:
            if isinstance(event, Trial | Confirmed):
                trial = event.trial if isinstance(event, Confirmed) else event
                trials[trial.index] = trial
                progress.update(
                    task, completed=len(trials), description=_best_so_far([*trials.values()])
                )
    return statistics.median(started.baseline)


def _module(variables: Mapping[str, Any], name: str | None) -> IRModule:
    modules = namespace.modules(variables)
    if name is None and len(modules) == 1:
        return next(iter(modules.values()))
    if name not in modules:
        asked = f"no IRModule {name}" if name else "several IRModules" if modules else "no IRModule"
        choice = f"; choose one with --module: {', '.join(modules)}" if modules else ""
        raise CommandError(f"The program has {asked}{choice}.")
    return modules[name]


def _function(
    variables: Mapping[str, Any], options: argparse.Namespace
) -> Callable[[Schedule], Any]:
    function = variables.get(options.function)
    if callable(function):
        return function
    functions = namespace.schedule_functions(variables, [str(options.file)])
    choice = ", ".join(functions) or "none"
    raise CommandError(
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
    table.add_column("speedup", justify="right")
    table.add_column("decisions", overflow="fold")
    for trial in trials:
        decisions = ", ".join(str(decision) for _, decision in trial.decisions)
        if trial.seconds is None:
            row = ("failed", "", f"{decisions}\n{trial.reason}".strip())
        else:
            same = "" if trial.same_as is None else f"  (duplicate of trial {trial.same_as})"
            time, speedup = trial.seconds * 1e3, baseline / trial.seconds
            row = (f"{time:.3f}", f"{speedup:.2f}", decisions + same)
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
                "repeats": trial.run_secs,
                "confirmed": trial.confirmed,
                "reason": trial.reason,
                "same_as": trial.same_as,
                "trace": trial.trace.as_json(),
            }
            for trial in trials
        ],
    }
    Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
