"""Several databases as one."""

from __future__ import annotations

from mlcweb.ir import IRModule
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload
from mlcweb.runtime.target import Target


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
        found = [r for each in self.databases for r in each.get_top_k(workload, top_k)]
        return sorted(found, key=lambda record: record.seconds)[: max(top_k, 0)]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return [r for each in self.databases for r in each.get_all_tuning_records()]

    def __len__(self) -> int:
        return sum(len(database) for database in self.databases)

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        found = (each.query_tuning_record(mod, target, workload_name) for each in self.databases)
        valid = [record for record in found if record is not None]
        return min(valid, key=lambda record: record.seconds, default=None)


class OrderedUnionDatabase(UnionDatabase):
    """The first of several databases that knows a program answers."""

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        found = (each.query_tuning_record(mod, target, workload_name) for each in self.databases)
        return next((record for record in found if record is not None), None)
