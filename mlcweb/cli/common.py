"""What several commands share: their error, arguments, the runner that measures."""

from __future__ import annotations

import argparse
import errno
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mlcweb.meta_schedule.measure.dask_runner import DaskRunner
    from mlcweb.meta_schedule.runner import LocalRunner

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where a command adds itself, by `add_parser`."""

STRATEGIES = ("evolutionary", "random", "exhaustive")

COST_MODELS = ("numpy", "xgb", "random")


class CommandError(Exception):
    """A command that cannot be carried out; the text is all that the user gets to see."""


def check_outputs(file: Path | None = None, folder: Path | None = None) -> None:
    """Says that a file or a folder cannot be written before the work whose results go there.

    Raises:
        CommandError: what is missing or in the way.
    """
    if file is not None and not file.exists():
        _check_parent(file.parent)
    elif file is not None:
        _check(file, not file.is_dir(), errno.EISDIR)
    if folder is not None:
        # Folders that are missing are made.
        ancestors = (folder, *folder.parents)
        _check_parent(next(each for each in ancestors if os.path.lexists(each)))


def _check_parent(folder: Path) -> None:
    _check(folder, folder.exists(), errno.ENOENT)
    _check(folder, folder.is_dir(), errno.ENOTDIR)


def _check(path: Path, is_right: bool, otherwise: int) -> None:
    """A CommandError where a path is not what it must be, or cannot be written."""
    if not is_right or not os.access(path, os.W_OK):
        raise CommandError(f"{path}: {os.strerror(errno.EACCES if is_right else otherwise)}")


def add_model_options(command: argparse.ArgumentParser) -> None:
    """The options that say what is compiled, and for what."""
    add_target_option(command)
    command.add_argument(
        "--shape", action="append", default=[], metavar="NAME=1,3,224,224", type=_shape,
        help="the shape of an input, in place of the model's",
    )  # fmt: skip


def add_target_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", default="llvm", help="what to build for; default: %(default)s")


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
        "--seconds", type=seconds, metavar="S", help="begin no more trials after S seconds"
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
        "--timeout",
        type=time_limit,
        default=10.0,
        metavar="S",
        help="per trial; default: %(default)s",
    )
    command.add_argument(
        "--dask", metavar="ADDRESS", help="measure by the workers of this Dask scheduler"
    )


def open_runner(options: argparse.Namespace) -> LocalRunner | DaskRunner:
    """What measures: this machine, or those of a Dask scheduler."""
    if options.dask:
        from mlcweb.meta_schedule.measure.dask_runner import DaskRunner

        return DaskRunner(options.dask, options.timeout)
    from mlcweb.meta_schedule.runner import LocalRunner

    return LocalRunner(options.timeout, max_workers=options.workers)


def positive(text: str) -> int:
    """A whole number of at least one."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def seconds(text: str) -> float:
    """A time that passes at some point."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


def time_limit(text: str) -> float:
    """A time that is not over at once."""
    if not (number := seconds(text)):
        raise ValueError(text)
    return number


def _shape(text: str) -> tuple[str, tuple[Any, ...]]:
    name, _, extents = text.partition("=")
    if not extents:
        raise argparse.ArgumentTypeError(f"{text} is not of the form NAME=1,3,224,224")
    return name, tuple(int(e) if e.isdigit() else e for e in extents.split(","))
