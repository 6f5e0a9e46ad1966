"""Tuning records in two files, in TVM's layout: one line for each item."""

from __future__ import annotations

from pathlib import Path

from mlcweb.ir import IRModule, structural_hash
from mlcweb.meta_schedule.database.json_lines import append_line, read_records, read_workloads
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase, line
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"


class JSONDatabase(MemoryDatabase):
    """Tuning records in files. A line of the first file is a workload, and a line of the second the
    number of one and a record; records are written as they come.

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
        self._lines: dict[int, int] = {}
        workloads = read_workloads(_content(self.path_workload, allow_missing), WORKLOADS)
        for number, workload in enumerate(workloads.items):
            # Files that were put together may hold one program several times.
            if workload is not None and workload.shash not in self._by_hash:
                self._add_workload(workload)
                self._lines[workload.shash] = number
        self._workload_lines = len(workloads.items)
        self._workload_end = workloads.good_bytes, workloads.ends_with_newline
        content = _content(self.path_tuning_record, allow_missing)
        records = read_records(content, RECORDS, workloads.items)
        for record in records.items:
            if record is not None:
                super().commit_tuning_record(record)
        self._record_end = records.good_bytes, records.ends_with_newline

    def commit_workload(self, mod: IRModule) -> Workload:
        shash = structural_hash(mod)
        known = self._find(mod, shash)
        if known is not None:
            return known
        workload = Workload(mod, shash)
        text = line(workload.as_json())
        self.path_workload.parent.mkdir(parents=True, exist_ok=True)
        length = append_line(self.path_workload, text, *self._workload_end)
        self._workload_end = length, True
        self._lines[shash] = self._workload_lines
        self._workload_lines += 1
        return self._add_workload(workload)

    def commit_tuning_record(self, record: TuningRecord) -> None:
        if record.workload.shash not in self._lines:
            raise ValueError("The record's workload is not in this database; commit it first")
        text = line([self._lines[record.workload.shash], record.as_json()])
        self.path_tuning_record.parent.mkdir(parents=True, exist_ok=True)
        length = append_line(self.path_tuning_record, text, *self._record_end)
        self._record_end = length, True
        super().commit_tuning_record(record)


def _content(path: Path, allow_missing: bool) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if allow_missing:
            return b""
        raise
