"""Databases without files: in memory, of a function, and several as one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.database.database import Database, equal_workloads, workload_hash
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule


class MemoryDatabase(Database):
    """Tuning records in memory."""

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._workloads: list[Workload] = []
        self._by_hash: dict[int, list[Workload]] = {}
        self.forget_records()

    def forget_records(self) -> None:
        """Let go of all records, but of no workload."""
        self._records: list[TuningRecord] = []
        self._state: dict[int, dict[str, TuningRecord]] = {}
        self._beside: dict[int, list[TuningRecord]] = {}

    @property
    def workloads(self) -> list[Workload]:
        return list(self._workloads)

    @property
    def records(self) -> list[TuningRecord]:
        return list(self._records)

    def has_workload(self, mod: IRModule) -> bool:
        return self._find(mod, self._hash(mod)) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        shash = self._hash(mod)
        return self._find(mod, shash) or self._add_workload(Workload(mod, shash))

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self._records.append(record)
        of_workload = self._state.setdefault(record.workload.shash, {})
        older = of_workload.get(record.trace_text)
        replaced = record.replaces(older)
        if replaced:
            of_workload[record.trace_text] = record
        if older is not None and record.program is None and older.program is None:
            self._beside.setdefault(record.workload.shash, []).append(older if replaced else record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest valid records of a workload, fastest first. Of what searches measured, each
        schedule has one; records that do not know their program all count, as in TVM."""
        standing = self._state.get(workload.shash, {})
        beside = (
            record
            for record in self._beside.get(workload.shash, ())
            if standing[record.trace_text].program is None
        )
        valid = (record for record in (*standing.values(), *beside) if record.is_valid)
        return heapq.nsmallest(max(top_k, 0), valid, key=lambda record: record.seconds)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._records)

    def get_standing_records(self) -> list[TuningRecord]:
        return [record for by_trace in self._state.values() for record in by_trace.values()]

    def get_records_of(self, workload: Workload) -> list[TuningRecord]:
        return list(self._state.get(workload.shash, {}).values())

    def find_record(self, workload: Workload, trace_text: str) -> TuningRecord | None:
        return self._state.get(workload.shash, {}).get(trace_text)

    def __len__(self) -> int:
        return len(self._records)

    def _find(self, mod: IRModule, shash: int) -> Workload | None:
        same_hash = self._by_hash.get(shash, ())
        equality = self.module_equality
        return next(
            (w for w in same_hash if w.mod is mod or equal_workloads(w.mod, mod, equality)), None
        )

    def _hash(self, mod: IRModule) -> int:
        return workload_hash(mod, self.module_equality)

    def _add_workload(self, workload: Workload) -> Workload:
        self._workloads.append(workload)
        self._by_hash.setdefault(workload.shash, []).append(workload)
        return workload


class ScheduleFnDatabase(MemoryDatabase):
    """`schedule_fn` changes the schedule that it is given, and says by False that it has none."""

    def __init__(
        self, schedule_fn: Callable[[Schedule], Any], module_equality: str = "structural"
    ) -> None:
        super().__init__(module_equality)
        self.schedule_fn = schedule_fn

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        schedule = self.query_schedule(mod, target, workload_name)
        if schedule is None:
            return None
        return TuningRecord(schedule.trace, self.commit_workload(mod), (0.0,), target)

    def query_schedule(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> Schedule | None:
        schedule = Schedule(mod)
        return None if self.schedule_fn(schedule) is False else schedule


class UnionDatabase(Database):
    """The fastest record of any of several databases answers. Nothing can be added to a union."""

    def __init__(self, *databases: Database) -> None:
        super().__init__()
        self.databases = databases

    def has_workload(self, mod: IRModule) -> bool:
        return any(database.has_workload(mod) for database in self.databases)

    def commit_workload(self, mod: IRModule) -> Workload:
        for database in self.databases:
            if database.has_workload(mod):
                return database.commit_workload(mod)
        raise TypeError("A union of databases takes no new programs; add them to one of its parts")

    def commit_tuning_record(self, record: TuningRecord) -> None:
        raise TypeError("A union of databases takes no records; add them to one of its parts")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        records = [r for each in self.databases for r in each.get_top_k(workload, top_k)]
        return sorted(records, key=lambda record: record.seconds)[: max(top_k, 0)]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return [r for each in self.databases for r in each.get_all_tuning_records()]

    def __len__(self) -> int:
        return sum(len(database) for database in self.databases)

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        answers = self._answers(mod, target, workload_name)
        return min(answers, key=lambda record: record.seconds, default=None)

    def _answers(self, *query: Any) -> Iterator[TuningRecord]:
        answers = (each.query_tuning_record(*query) for each in self.databases)
        return (record for record in answers if record is not None)


class OrderedUnionDatabase(UnionDatabase):
    """The first of several databases that knows a program answers."""

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        return next(self._answers(mod, target, workload_name), None)
