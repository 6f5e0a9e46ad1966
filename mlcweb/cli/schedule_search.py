"""``mlcweb search``: a progress bar while trials are measured, then a table of them.

Trials are measured in worker processes with a time limit, so none can end the search. A function of
the program is called anew for each trial; with a strategy that learns, with a budget of seconds or
with a folder of records, `StrategySearch` does the work.
"""

import argparse
import asyncio
import json
import random
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mlcweb.cli.common import CommandError, open_runner
from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.database import Database, JSONDatabase, MemoryDatabase
from mlcweb.meta_schedule.random_search import ScheduleFunction
from mlcweb.meta_schedule.session import Search
from mlcweb.meta_schedule.strategy_search import StrategySearch
from mlcweb.meta_schedule.trial import Trial, best_trial
from mlcweb.meta_schedule.tune_context import normalized
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
    try:
        session, database = _session(module, function, options, seed)
    except (TVMError, ValueError, ImportError, OSError) as error:
        raise CommandError(f"There is nothing to search over: {error}") from error
    earlier = len(database)
    trials: dict[int, Trial] = {}
    with _progress(console) as progress:
        baseline = asyncio.run(_follow(session, trials, progress))
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


def _session(
    module: IRModule, function: ScheduleFunction | None, options: argparse.Namespace, seed: int
) -> tuple[Search | StrategySearch, Database]:
    strategy = options.strategy or ("evolutionary" if function is None else "random")
    plain = options.work_dir is None and options.seconds is None and options.dask is None
    trials = options.trials
    if trials is None and options.seconds is None and strategy != "exhaustive":
        trials = DEFAULT_TRIALS
    if function is not None and strategy == "random" and plain:
        search = Search(
            module,
            function,
            trials=trials,
            target=options.target,
            seed=seed,
            workers=options.workers or 1,
            timeout_s=options.timeout,
        )
        return search, MemoryDatabase()
    if strategy == "random":
        strategy = "replay-trace" if function is None else "replay-func"
    database = MemoryDatabase()
    if options.work_dir is not None:
        database = JSONDatabase(work_dir=options.work_dir)
    runner = open_runner(options)
    return StrategySearch(
        module,
        space="post-order-apply" if function is None else function,
        strategy=strategy,
        trials=trials,
        target=options.target,
        seed=seed,
        runner=runner,
        database=database,
        cost_model=options.cost_model,
        max_seconds=options.seconds,
    ), database


def _tell_records(
    console: Console, folder: Path, database: Database, module: IRModule, earlier: int
) -> None:
    best = database.query_tuning_record(normalized(module))
    fastest = "" if best is None else f"; the fastest takes {best.seconds * 1e3:.3f} ms"
    fresh = len(database) - earlier
    console.print(f"{fresh} records are new in {folder}, which has {len(database)}{fastest}")


async def _follow(
    session: Search | StrategySearch, trials: dict[int, Trial], progress: Progress
) -> float:
    """Collects trials until the last, or until Ctrl-C: what was found by then counts.

    Returns:
        The unscheduled program's time in seconds.
    """
    task = progress.add_task("timing the program as it stands", total=session.limit)
    try:
        try:
            baseline = await session.begin()
        except Exception as error:
            raise CommandError(f"The unscheduled program cannot be timed: {error}") from error
        # asyncio turns Ctrl-C into a cancellation.
        with suppress(asyncio.CancelledError):
            async for trial in session.trials():
                trials[trial.index] = trial
                progress.update(
                    task, completed=len(trials), description=_best_so_far([*trials.values()])
                )
    finally:
        session.close()
    return statistics.median(baseline)


def _module(variables: Mapping[str, Any], name: str | None) -> IRModule:
    modules = namespace.modules(variables)
    if name is None and len(modules) == 1:
        return next(iter(modules.values()))
    if name not in modules:
        asked = f"no IRModule {name}" if name else "several IRModules" if modules else "no IRModule"
        choice = f"; choose one with --module: {', '.join(modules)}" if modules else ""
        raise CommandError(f"The program has {asked}{choice}.")
    return modules[name]


def _function(variables: Mapping[str, Any], options: argparse.Namespace) -> ScheduleFunction:
    function = variables.get(options.function)
    if callable(function):
        return function
    found = namespace.schedule_functions(variables, [str(options.file)])
    choice = ", ".join(each.name for each in found) or "none"
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
