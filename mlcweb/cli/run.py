"""`mlcweb run`: a program as ``python FILE`` would, or a model with its stages and times."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import BadZipFile

from mlcweb import compat
from mlcweb.cli.common import CommandError, Commands, check_outputs
from mlcweb.cli.compile import add_options, compile_model


def add_command(commands: Commands) -> None:
    command = commands.add_parser(
        "run", help="run a program, with `import tvm` meaning mlcweb, or a model (.onnx)"
    )
    command.set_defaults(command=run)
    command.add_argument("file", type=Path, metavar="FILE")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")


def run(options: argparse.Namespace) -> None:
    """Runs a program, or a model by the suffix of its file."""
    if options.file.suffix == ".onnx":
        run_model(options.file, options.arguments)
    else:
        sys.argv = [str(options.file), *options.arguments]
        load_program(options.file, "__main__")


def run_model(file: Path, arguments: Sequence[str]) -> None:
    """Compiles a model, runs it, and prints where the time goes."""
    parser = argparse.ArgumentParser(prog=f"mlcweb run {file.name}")
    add_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="FILE.npz", help="arrays by input names")
    parser.add_argument("--outputs", type=Path, metavar="FILE.npz", help="write the results there")
    parser.add_argument("--fill", default="random", choices=("random", "zeros", "ones"))
    options = parser.parse_args(arguments, argparse.Namespace(file=file))
    check_outputs(options.outputs)
    package = compile_model(options)
    import numpy as np

    from mlcweb.driver import tvmc

    inputs = _arrays(options.inputs) if options.inputs else {}
    try:
        result = tvmc.run(package, inputs=inputs, fill_mode=options.fill)
    except ValueError as error:
        raise CommandError(f"{options.file}: {error}") from None
    print(result)
    if options.outputs:
        np.savez(options.outputs, **result.outputs)


def _arrays(file: Path) -> dict[str, Any]:
    """The arrays of a file that `numpy.savez` has written. Raises: CommandError."""
    import numpy as np

    try:
        with file.open("rb") as opened:
            return dict(np.load(opened))
    except (ValueError, TypeError, EOFError, BadZipFile) as error:
        raise CommandError(f"{file} holds no arrays by name: {error}") from None


def load_program(file: Path, name: str) -> dict[str, Any]:
    """Executes a program as the module `name`, with ``import tvm`` meaning this package.

    Returns:
        The program's global variables.

    Raises:
        CommandError: there is no such file, or the program raised; then the text is a traceback
            of the program's own frames.
    """
    from mlcweb.user_code import diagnostics

    try:
        source = file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    compat.install(force=True)
    sys.path.insert(0, str(file.resolve().parent))
    # Decorators find the source of what they decorate through the module and its file.
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    try:
        exec(compile(source, str(file), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise CommandError(diagnostics.describe(error, str(file)).text) from error
    return vars(module)
