"""`mlcweb tune model.onnx`: searches for fast schedules of a model's functions, and keeps them."""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

from mlcweb.cli_compile import CompileError, add_model_options
from mlcweb.ir.errors import TVMError

STRATEGIES = ("evolutionary", "random", "exhaustive")

COST_MODELS = ("numpy", "xgb", "random")


def add_options(command: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_model_options(command)
    command.add_argument(
        "--output", type=Path, metavar="FOLDER",
        help="where the records go; a search that finds some there goes on where that one ended "
        "(default: MODEL_records, in this folder)",
    )  # fmt: skip
    command.add_argument(
        "--tuning-records", type=Path, metavar="FOLDER", help="earlier records to begin with"
    )
    command.add_argument(
        "--max-trials-per-task",
        type=positive,
        metavar="N",
        help="programs measured of one function",
    )
    command.add_argument(
        "--tasks", nargs="+", metavar="NAME", help="tune only functions with this in their names"
    )
    add_search_options(command, 1000, "evolutionary")


def add_search_options(
    command: argparse.ArgumentParser, trials: int | None, strategy: str | None
) -> None:
    """The options of every search, with two of their defaults; None for those that follow from
    other options."""
    command.add_argument(
        "--trials", type=positive, default=trials, metavar="N",
        help=f"programs measured (default: {trials or '20; without end with --seconds'})",
    )  # fmt: skip
    command.add_argument(
        "--seconds", type=float, metavar="S", help="begin no more trials after so many seconds"
    )
    command.add_argument(
        "--strategy", choices=STRATEGIES, default=strategy,
        help=f"default: {strategy or 'random with --function, else evolutionary'}",
    )  # fmt: skip
    command.add_argument(
        "--cost-model", choices=COST_MODELS, default="numpy", help="default: %(default)s"
    )
    command.add_argument("--seed", type=int, help="the same seed and the same times, the same run")
    command.add_argument(
        "--workers", type=positive, metavar="N",
        help="programs measured at one time (default: what suits this machine)",
    )  # fmt: skip
    command.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="per trial; default: %(default)s"
    )
    command.add_argument(
        "--dask", metavar="ADDRESS", help="measure by the workers of this Dask scheduler"
    )


def search_options(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of the tuning functions that follow from the options."""
    seed = random.randrange(2**31) if options.seed is None else options.seed
    return {
        "runner": opened_runner(options),
        "strategy": "replay-trace" if options.strategy == "random" else options.strategy,
        "cost_model": options.cost_model,
        "max_seconds": options.seconds,
        "seed": seed,
    }


def tune(options: argparse.Namespace) -> None:
    """Tunes a model, and tells what was gained."""
    from mlcweb.driver import tvmc

    output = options.output or Path(f"{options.file.stem}_records")
    begin = time.perf_counter()
    try:
        model = tvmc.load(options.file, shape_dict=dict(options.shape))
        database = tvmc.tune(
            model,
            options.target,
            output,
            options.tuning_records,
            options.trials,
            options.tasks,
            max_trials_per_task=options.max_trials_per_task,
            **search_options(options),
        )
    except (TVMError, OSError, ValueError, ImportError) as error:
        raise CompileError(f"{options.file}: {error}") from None
    print(f"{len(database)} records are in {output} after {time.perf_counter() - begin:.1f} s.")
    print(f"mlcweb run {options.file} --tuning-records {output}")


def positive(text: str) -> int:
    """A whole number of at least one."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def opened_runner(options: argparse.Namespace) -> Any:
    """What measures: this machine, or those of a Dask scheduler."""
    if options.dask:
        from mlcweb.meta_schedule.dask_runner import DaskRunner

        return DaskRunner(options.dask, options.timeout)
    from mlcweb.meta_schedule.local_runner import LocalRunner

    return LocalRunner(options.timeout, max_workers=options.workers)
