"""`mlcweb records`: looks into folders of tuning records, and puts them together."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mlcweb.cli.common import CommandError, Commands, check_outputs
from mlcweb.ir.errors import TVMError

if TYPE_CHECKING:
    from mlcweb.meta_schedule.database import Database, JSONDatabase, TuningRecord


def add_command(commands: Commands) -> None:
    parser = commands.add_parser("records", help="show, merge or prune tuning records")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("show", help="the fastest record of each program")
    command.set_defaults(command=show)
    command.add_argument("folder", type=Path, metavar="FOLDER")
    command.add_argument("--trace", action="store_true", help="print its steps as well")
    command = commands.add_parser("merge", help="add the records of other folders")
    command.set_defaults(command=merge)
    command.add_argument("into", type=Path, metavar="INTO", help="made where it is missing")
    command.add_argument("sources", type=Path, nargs="+", metavar="FOLDER")
    command = commands.add_parser("prune", help="copy the fastest record of each program")
    command.set_defaults(command=prune)
    command.add_argument("folder", type=Path, metavar="FOLDER")
    command.add_argument("into", type=Path, metavar="INTO", help="made where it is missing")


def show(options: argparse.Namespace) -> None:
    """Prints the fastest record of each program."""
    database = _open(options.folder)
    print(f"{len(database)} records in {options.folder}")
    for record, count in _fastest(database):
        arguments = [info.as_json() for info in record.args_info or ()]
        infos = ", ".join(f"{dtype}{shape}" for _, dtype, shape in arguments)
        print(f"{record.seconds * 1e6:12.3f} us  {count:5} schedules  ({infos})")
        if options.trace:
            print(*(f"    {step}" for step in _steps(record)), sep="\n")


def merge(options: argparse.Namespace) -> None:
    """Adds the records of other folders to those of one, each once."""
    from mlcweb.meta_schedule.database import JSONDatabase

    check_outputs(folder=options.into)
    sources = [_open(folder) for folder in options.sources]
    into = JSONDatabase(work_dir=options.into)
    before = len(into)
    into.merge(*sources)
    print(f"{len(into) - before} records are new in {options.into}, which has {len(into)}")


def prune(options: argparse.Namespace) -> None:
    """Copies the fastest record of each program to another folder."""
    from mlcweb.meta_schedule.database import JSONDatabase

    check_outputs(folder=options.into)
    into = JSONDatabase(work_dir=options.into)
    _open(options.folder).dump_pruned(into)
    print(f"{len(into)} records are in {options.into}")


def _fastest(database: Database) -> Iterator[tuple[TuningRecord, int]]:
    """The fastest record of each program that has any, and how many schedules of it ran."""
    workloads = {r.workload.shash: r.workload for r in database.get_standing_records()}
    for workload in workloads.values():
        valid = database.get_top_k(workload, len(database))
        if valid:
            yield valid[0], len(valid)


def _steps(record: TuningRecord) -> list[str]:
    """The steps of a record as Python, or why there are none: others may have written it."""
    try:
        return record.trace.as_python()
    except (TVMError, ValueError) as error:
        return [f"its steps are damaged: {str(error).splitlines()[0]}"]


def _open(folder: Path) -> JSONDatabase:
    from mlcweb.meta_schedule.database import JSONDatabase

    try:
        with warnings.catch_warnings(record=True) as skipped:
            warnings.simplefilter("always")
            database = JSONDatabase(work_dir=folder, allow_missing=False)
    except FileNotFoundError as error:
        missing = f"{error.filename} is missing"
        raise CommandError(f"{folder} holds no tuning records: {missing}") from None
    for warning in skipped:
        print(warning.message)
    return database
