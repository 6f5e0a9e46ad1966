"""`mlcweb tune`: searches for fast schedules of a model's functions, and keeps them."""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

from mlcweb.cli.common import (
    CommandError,
    Commands,
    add_model_options,
    add_search_options,
    check_outputs,
    open_runner,
    positive,
)
from mlcweb.ir.errors import TVMError


def add_command(commands: Commands) -> None:
    command = commands.add_parser("tune", help="search for fast schedules of a model (.onnx)")
    command.set_defaults(command=tune)
    command.add_argument("file", type=Path, metavar="MODEL")
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


def tune(options: argparse.Namespace) -> None:
    """Tunes a model, and tells what was gained."""
    from mlcweb.driver import tvmc

    output = options.output or Path(f"{options.file.stem}_records")
    check_outputs(folder=output)
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
            **_search_options(options),
        )
    except (TVMError, OSError, ValueError, ImportError) as error:
        raise CommandError(f"{options.file}: {error}") from None
    print(f"{len(database)} records are in {output} after {time.perf_counter() - begin:.1f} s.")
    print(f"mlcweb run {options.file} --tuning-records {output}")


def _search_options(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of the tuning functions that follow from the options."""
    seed = random.randrange(2**31) if options.seed is None else options.seed
    return {
        "runner": open_runner(options),
        "strategy": "replay-trace" if options.strategy == "random" else options.strategy,
        "cost_model": options.cost_model,
        "max_seconds": options.seconds,
        "seed": seed,
    }
