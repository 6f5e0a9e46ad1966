"""`mlcweb search`: fast schedules for a program's module."""

import argparse
import io
from contextlib import redirect_stdout
from pathlib import Path

from mlcweb.cli.common import (
    CommandError,
    Commands,
    add_search_options,
    add_target_option,
    check_outputs,
)
from mlcweb.cli.run import load_program


def add_command(commands: Commands) -> None:
    command = commands.add_parser("search", help="search for a fast schedule")
    command.set_defaults(command=search)
    command.add_argument("file", type=Path, metavar="FILE", help="a program")
    command.add_argument(
        "--function", help="takes a Schedule and samples in it (default: a space for the program)"
    )
    command.add_argument("--module", help="the IRModule to schedule, if FILE defines several")
    add_target_option(command)
    command.add_argument(
        "--work-dir", type=Path, metavar="FOLDER",
        help="keep records there; what it knows already is not measured again",
    )  # fmt: skip
    add_search_options(command, None, None)
    command.add_argument("--json", type=Path, metavar="OUT", help="write all trials to a file")


def search(options: argparse.Namespace) -> int:
    """Measures sampled schedules of a program's module; 1 if none of them succeeded."""
    try:
        from mlcweb.cli.schedule_search import search_schedules
    except ModuleNotFoundError as error:
        raise CommandError(f"this command needs {error.name}: pip install 'mlcweb[cli]'") from None
    check_outputs(options.json, options.work_dir)
    # Not as `__main__`, so that the program leaves out what it does when it is run; and what it
    # prints all the same is not what was asked for.
    with redirect_stdout(io.StringIO()):
        variables = load_program(options.file, "__program__")
    return 0 if search_schedules(variables, options) else 1
