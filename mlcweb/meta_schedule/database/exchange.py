"""Databases as text and back: the content of TVM's two files, for storage that has no files."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.json_lines import (
    RECORDS,
    WORKLOADS,
    LineReader,
    line,
    read_record,
    read_workload,
)  # fmt: skip
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.database.tuning_record import Workload


def dump(database: Database) -> dict[str, str]:
    """The records of any database as the two files in which TVM keeps them.

    Returns:
        The text of each file by its name: "database_workload.json", one workload a line, and
        "database_tuning_record.json", each line the number of a workload and a record.
    """
    workloads: dict[int, tuple[int, Workload]] = {}
    records = []
    for record in database.get_all_tuning_records():
        workload = record.workload
        number, _ = workloads.setdefault(workload.shash, (len(workloads), workload))
        records.append(line([number, record.as_json()]))
    texts = [line(workload.as_json()) for _, workload in workloads.values()]
    return {WORKLOADS: "".join(texts), RECORDS: "".join(records)}


def load(files: Mapping[str, str]) -> MemoryDatabase:
    """Read what `dump` made or TVM wrote. A file that is missing counts as empty; lines that are
    broken are skipped with a warning."""
    database = MemoryDatabase()
    workloads: list[Workload | None] = [
        None if workload is None else database.commit_workload(workload.mod)
        for workload in LineReader(WORKLOADS, read_workload).read(_lines(files, WORKLOADS))
    ]
    reader = LineReader(RECORDS, lambda item: read_record(item, workloads))
    for record in reader.read(_lines(files, RECORDS)):
        if record is not None:
            database.commit_tuning_record(record)
    return database


def merge(into: Database, other: Database) -> int:
    """Add the records of another database, but for those that are there already; how many came."""
    before = len(into)
    into.merge(other)
    return len(into) - before


def _lines(files: Mapping[str, str], name: str) -> bytes:
    content = files.get(name, "").encode()
    return content if content.endswith(b"\n") or not content else content + b"\n"
