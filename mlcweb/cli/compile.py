"""`mlcweb compile`: a model, stage by stage."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mlcweb.cli.common import CommandError, Commands, add_model_options, check_outputs
from mlcweb.ir.errors import TVMError

if TYPE_CHECKING:
    from mlcweb.driver import tvmc


def add_command(commands: Commands) -> None:
    command = commands.add_parser("compile", help="compile a model (.onnx), stage by stage")
    command.set_defaults(command=_compile)
    command.add_argument("file", type=Path, metavar="MODEL")
    add_options(command)


def add_options(command: argparse.ArgumentParser) -> None:
    """The options that compiling and running share."""
    add_model_options(command)
    command.add_argument(
        "--tuning-records", type=Path, metavar="FOLDER",
        help="give functions the schedules that `mlcweb tune` found",
    )  # fmt: skip
    command.add_argument(
        "--stages", type=Path, metavar="FOLDER", help="write the module after each stage there"
    )


def _compile(options: argparse.Namespace) -> None:
    compile_model(options)


def compile_model(options: argparse.Namespace) -> tvmc.Package:
    """Compiles a model and prints what each stage made of it.

    Raises:
        CommandError: the model cannot be compiled.
    """
    from mlcweb.driver import tvmc

    check_outputs(folder=options.stages)
    try:
        model = tvmc.load(options.file, shape_dict=dict(options.shape))
        package = tvmc.compile(model, options.target, tuning_records=options.tuning_records)
    except (TVMError, OSError, ValueError) as error:
        raise CommandError(f"{options.file}: {error}") from None
    print(package)
    if options.stages:
        options.stages.mkdir(parents=True, exist_ok=True)
        for number, stage in enumerate(package.stages):
            path = options.stages / f"{number}_{stage.name}.py"
            path.write_text(stage.mod.script(), encoding="utf-8")
    return package
