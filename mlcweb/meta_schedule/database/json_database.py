"""Tuning records in two files, in TVM's layout: one line for each item.

TVM's records have no room for the hashes of the scheduled programs, by which a search that is
resumed knows what it need not measure again. They are in a third file; without it nothing is lost
but that.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.database.json_lines import (
    RECORDS,
    WORKLOADS,
    LineFile,
    line,
    locked,
    read_record,
)  # fmt: skip
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload


class JSONDatabase(MemoryDatabase):
    """Tuning records in files. A line of the first file is a workload, and a line of the second the
    number of one and a record; records are written as they come.

    Several processes may have the same files open: each adds its lines behind those of the others,
    under a lock, and learns of theirs when it writes, or by `refresh`.

    Files that are missing are made.

    Args:
        path_workload: the file of workloads.
        path_tuning_record: the file of records.
        work_dir: a folder, which is made where there is none, in which they have TVM's names.
        allow_missing: whether files that are not there count as empty.

    Raises:
        ValueError: neither paths nor folder are given.
        FileNotFoundError: a file is missing, and may not.
    """

    def __init__(
        self,
        path_workload: str | Path | None = None,
        path_tuning_record: str | Path | None = None,
        *,
        work_dir: str | Path | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        if work_dir is not None:
            path_workload = path_workload or Path(work_dir) / WORKLOADS
            path_tuning_record = path_tuning_record or Path(work_dir) / RECORDS
        if path_workload is None or path_tuning_record is None:
            raise ValueError("JSONDatabase needs work_dir, or path_workload and path_tuning_record")
        self.path_workload = Path(path_workload)
        self.path_tuning_record = Path(path_tuning_record)
        if not allow_missing:
            for path in (self.path_workload, self.path_tuning_record):
                path.stat()
        self._numbered: list[Workload | None] = []
        self._numbers: dict[int, int] = {}
        self._missing: set[int] = set()
        self._programs: dict[int, int] = {}
        self._workload_file = LineFile(self.path_workload, self._read_workload)
        self._record_file = LineFile(self.path_tuning_record, self._numbered_record)
        path = self.path_tuning_record
        path_program = path.with_name(f"{path.stem}_programs{path.suffix}")
        self._program_file = LineFile(path_program, _read_program)
        for path in (self.path_workload, self.path_tuning_record):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.refresh()

    def refresh(self) -> None:
        """Learn of what other processes have written meanwhile."""
        with locked(self.path_tuning_record, create=False):
            self._read_news()

    def commit_workload(self, mod: IRModule) -> Workload:
        shash = self._hash(mod)
        workload = self._find(mod, shash)
        if workload is not None and shash in self._numbers:
            return workload
        with locked(self.path_tuning_record, create=True):
            self._read_news()
            return self._numbered_workload(self._find(mod, shash) or Workload(mod, shash))

    def commit_tuning_record(self, record: TuningRecord) -> None:
        if self._find(record.workload.mod, record.workload.shash) is None:
            raise ValueError("The record's workload is not in this database; commit it first")
        with locked(self.path_tuning_record, create=True):
            self._read_news()
            self._numbered_workload(record.workload)
            self._keep_program(record)
            number = self._numbers[record.workload.shash]
            self._record_file.append(line([number, record.as_json()]))
        super().commit_tuning_record(record)

    def _keep_program(self, record: TuningRecord) -> None:
        key = _key(record)
        if record.program is not None and self._programs.get(key) != record.program:
            self._program_file.append(line([f"{key:016x}", f"{record.program:016x}"]))
            self._programs[key] = record.program

    def _numbered_workload(self, workload: Workload) -> Workload:
        """The workload, of which there is a line in the file."""
        committed = self._find(workload.mod, workload.shash)
        if committed is None or workload.shash not in self._numbers:
            # Where the file of workloads was damaged, records may have numbers that are no more:
            # they must not become another program's.
            while len(self._numbered) in self._missing:
                self._workload_file.append(line(None))
                self._numbered.append(None)
            self._workload_file.append(line(workload.as_json()))
            committed = self._with_number(committed or workload)
        return committed

    def _with_number(self, workload: Workload) -> Workload:
        # Files that were put together may hold one program several times.
        committed = self._find(workload.mod, workload.shash) or self._add_workload(workload)
        self._numbers.setdefault(committed.shash, len(self._numbered))
        self._numbered.append(committed)
        return committed

    def _read_workload(self, item: Any) -> Workload:
        workload = Workload.from_json(item)
        workload.shash = self._hash(workload.mod)
        return workload

    def _numbered_record(self, item: Any) -> TuningRecord:
        if isinstance(item, list) and item and type(item[0]) is int:
            if item[0] >= len(self._numbered):
                self._missing.add(item[0])
        record = read_record(item, self._numbered)
        record.program = self._programs.get(_key(record))
        return record

    def _read_news(self) -> None:
        if self._workload_file.shrank or self._record_file.shrank:
            # Somebody removed the files. What is in memory stays; numbers are those of new files.
            self._numbered.clear()
            self._numbers.clear()
            self._missing.clear()
            self._workload_file.start_over()
            self._record_file.start_over()
        for workload in self._workload_file.news():
            if workload is None:
                self._numbered.append(None)
            else:
                self._with_number(workload)
        if self._program_file.shrank:
            self._program_file.start_over()
        self._programs.update(filter(None, self._program_file.news()))
        for record in self._record_file.news():
            if record is not None:
                super().commit_tuning_record(record)


def _key(record: TuningRecord) -> int:
    """The key of a schedule of a workload in the file of programs."""
    text = f"{record.workload.shash:016x}{record.trace_text}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _read_program(item: Any) -> tuple[int, int]:
    key, program = item
    return int(key, 16), int(program, 16)
