"""Tuning records in memory."""

from __future__ import annotations

import heapq

from mlcweb.ir import IRModule, structural_equal, structural_hash
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload


class MemoryDatabase(Database):
    """Tuning records in memory."""

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._workloads: list[Workload] = []
        self._records: list[TuningRecord] = []
        self._by_hash: dict[int, list[Workload]] = {}
        self._state: dict[int, dict[str, TuningRecord]] = {}

    def has_workload(self, mod: IRModule) -> bool:
        return self._find(mod, structural_hash(mod)) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        shash = structural_hash(mod)
        return self._find(mod, shash) or self._add_workload(Workload(mod, shash))

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self._records.append(record)
        of_workload = self._state.setdefault(record.workload.shash, {})
        if record.replaces(of_workload.get(record.trace_text)):
            of_workload[record.trace_text] = record

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        standing = self._state.get(workload.shash, {}).values()
        valid = (record for record in standing if record.is_valid)
        return heapq.nsmallest(max(top_k, 0), valid, key=lambda record: record.seconds)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._records)

    def get_standing_records(self) -> list[TuningRecord]:
        return [record for known in self._state.values() for record in known.values()]

    def get_records_of(self, workload: Workload) -> list[TuningRecord]:
        return list(self._state.get(workload.shash, {}).values())

    def find_record(self, workload: Workload, trace_text: str) -> TuningRecord | None:
        return self._state.get(workload.shash, {}).get(trace_text)

    def __len__(self) -> int:
        return len(self._records)

    def _find(self, mod: IRModule, shash: int) -> Workload | None:
        same_hash = self._by_hash.get(shash, ())
        return next((w for w in same_hash if w.mod is mod or structural_equal(w.mod, mod)), None)

    def _add_workload(self, workload: Workload) -> Workload:
        self._workloads.append(workload)
        self._by_hash.setdefault(workload.shash, []).append(workload)
        return workload
