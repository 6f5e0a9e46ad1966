"""Tuning records in memory, with export and import as text."""

from __future__ import annotations

import json

from mlcweb.ir import IRModule, structural_equal, structural_hash
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.json_lines import read_records, read_workloads
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload


class MemoryDatabase(Database):
    """Tuning records in memory."""

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._workloads: list[Workload] = []
        self._records: list[TuningRecord] = []
        self._by_hash: dict[int, list[Workload]] = {}
        self._of_workload: dict[int, list[TuningRecord]] = {}

    def has_workload(self, mod: IRModule) -> bool:
        return self._find(mod, structural_hash(mod)) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        shash = structural_hash(mod)
        return self._find(mod, shash) or self._add_workload(Workload(mod, shash))

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self._records.append(record)
        self._of_workload.setdefault(record.workload.shash, []).append(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        valid = [r for r in self._of_workload.get(workload.shash, ()) if r.is_valid]
        return sorted(valid, key=lambda record: record.seconds)[: max(top_k, 0)]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._records)

    def get_records_of(self, workload: Workload) -> list[TuningRecord]:
        return list(self._of_workload.get(workload.shash, ()))

    def __len__(self) -> int:
        return len(self._records)

    def export_text(self) -> tuple[str, str]:
        """The content of the two files of a `JSONDatabase`: workloads, and records."""
        position = {w.shash: number for number, w in enumerate(self._workloads)}
        workloads = [line(workload.as_json()) for workload in self._workloads]
        records = [line([position[r.workload.shash], r.as_json()]) for r in self._records]
        return "".join(workloads), "".join(records)

    def import_text(self, workloads: str, records: str) -> None:
        """Add what `export_text` or TVM wrote, but for what is here already. Lines that are broken
        are skipped with a warning."""
        source = MemoryDatabase()
        found = read_workloads(workloads.encode(), "workloads")
        for workload in found.items:
            if workload is not None:
                source._add_workload(workload)
        for record in read_records(records.encode(), "tuning records", found.items).items:
            if record is not None:
                source.commit_tuning_record(record)
        self.merge(source)

    def _find(self, mod: IRModule, shash: int) -> Workload | None:
        same_hash = self._by_hash.get(shash, ())
        return next((w for w in same_hash if structural_equal(w.mod, mod)), None)

    def _add_workload(self, workload: Workload) -> Workload:
        self._workloads.append(workload)
        self._by_hash.setdefault(workload.shash, []).append(workload)
        return workload


def line(item: object) -> str:
    """A line of a file of records."""
    return json.dumps(item, separators=(",", ":")) + "\n"
