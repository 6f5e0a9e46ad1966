"""The fastest records of one program: what a search needs of a database, in bounded memory."""

from __future__ import annotations

import heapq

from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.meta_schedule.database import Database, TuningRecord, Workload

MAX_RECORDS = 256


class FastestRecords(Database):
    """Keeps the fastest records of a program, and no others: all are in the page's storage.

    Args:
        program: the only program whose records it takes.
        max_records: how many records are kept.
    """

    def __init__(self, program: IRModule, max_records: int = MAX_RECORDS) -> None:
        super().__init__()
        self.workload = Workload(program)
        self.max_records = max_records
        self._by_trace: dict[str, TuningRecord] = {}

    def has_workload(self, mod: IRModule) -> bool:
        return mod is self.workload.mod or structural_equal(mod, self.workload.mod)

    def commit_workload(self, mod: IRModule) -> Workload:
        if not self.has_workload(mod):
            raise TVMError("these are the records of another program")
        return self.workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        if not record.is_valid or not record.replaces(self._by_trace.get(record.trace_text)):
            return
        self._by_trace[record.trace_text] = record
        if len(self._by_trace) >= 2 * self.max_records:
            kept = self.get_top_k(self.workload, self.max_records)
            self._by_trace = {record.trace_text: record for record in kept}

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        records = self._by_trace.values()
        return heapq.nsmallest(max(top_k, 0), records, key=lambda record: record.seconds)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._by_trace.values())

    def __len__(self) -> int:
        return len(self._by_trace)
