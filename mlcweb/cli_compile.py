"""`mlcweb compile model.onnx` and `mlcweb run model.onnx`: a model's way, stage by stage."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcweb.ir.errors import TVMError

if TYPE_CHECKING:
    from mlcweb.driver import tvmc


class CompileError(Exception):
    """A model that cannot be compiled or run; the text is all that the user gets to see."""


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


def add_model_options(command: argparse.ArgumentParser) -> None:
    """The options that say what is compiled, and for what."""
    command.add_argument("--target", default="llvm", help="default: %(default)s")
    command.add_argument(
        "--shape", action="append", default=[], metavar="NAME=1,3,224,224", type=_shape,
        help="the shape of an input, in place of the model's",
    )  # fmt: skip


def compile(options: argparse.Namespace) -> None:
    """Compiles a model and prints what each stage made of it."""
    _package(options)


def run(file: Path, arguments: Sequence[str]) -> None:
    """Compiles a model, runs it, and prints where the time goes."""
    parser = argparse.ArgumentParser(prog=f"mlcweb run {file.name}")
    add_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="FILE.npz", help="arrays by input names")
    parser.add_argument("--outputs", type=Path, metavar="FILE.npz", help="write the results there")
    parser.add_argument("--fill", default="random", choices=("random", "zeros", "ones"))
    options = parser.parse_args(arguments, argparse.Namespace(file=file))
    package = _package(options)
    import numpy as np

    from mlcweb.driver import tvmc

    try:
        given = dict(np.load(options.inputs)) if options.inputs else {}
        result = tvmc.run(package, inputs=given, fill_mode=options.fill)
    except (TVMError, OSError) as error:
        raise CompileError(str(error)) from None
    print(result)
    if options.outputs:
        np.savez(options.outputs, **result.outputs)


def _package(options: argparse.Namespace) -> tvmc.Package:
    from mlcweb.driver import tvmc

    try:
        model = tvmc.load(options.file, shape_dict=dict(options.shape))
        package = tvmc.compile(model, options.target, tuning_records=options.tuning_records)
    except (TVMError, OSError) as error:
        raise CompileError(f"{options.file}: {error}") from None
    print(package)
    if options.stages:
        options.stages.mkdir(parents=True, exist_ok=True)
        for number, stage in enumerate(package.stages):
            path = options.stages / f"{number}_{stage.name}.py"
            path.write_text(stage.mod.script(), encoding="utf-8")
    return package


def _shape(text: str) -> tuple[str, tuple[Any, ...]]:
    name, _, extents = text.partition("=")
    if not extents:
        raise argparse.ArgumentTypeError(f"{text} is not of the form NAME=1,3,224,224")
    return name, tuple(int(e) if e.isdigit() else e for e in extents.split(","))
