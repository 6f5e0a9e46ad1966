"""The interface of databases of tuning records, and what follows from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self

from mlcweb.analysis.queries import find_anchor_block
from mlcweb.ir import IRModule, structural_equal, structural_hash
from mlcweb.meta_schedule.database.tuning_record import NO_STEPS, TuningRecord, Workload
from mlcweb.meta_schedule.trace_apply import schedule_using_anchor_trace
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule
from mlcweb.tir.schedule_provider import entered, innermost
from mlcweb.tir.stmt import Block

MODULE_EQUALITIES = ("structural", "ignore-tensor", "anchor-block")
"""How programs are compared: as a whole (programs of TensorIR hold no tensors, so the first two
mean the same), or by the reduction block that computes most, where they have one."""


def compared(mod: IRModule, module_equality: str) -> IRModule | Block:
    """What of a program counts where programs are compared; variables of a block are free."""
    anchor = find_anchor_block(mod) if module_equality == "anchor-block" else None
    return mod if anchor is None else anchor


def workload_hash(mod: IRModule, module_equality: str) -> int:
    """The hash of a program, which is that of others that are equal."""
    part = compared(mod, module_equality)
    return structural_hash(part, map_free_vars=part is not mod)


def equal_workloads(mod: IRModule, other: IRModule, module_equality: str) -> bool:
    """Whether programs of one hash are equal."""
    parts = [compared(each, module_equality) for each in (mod, other)]
    return structural_equal(*parts, map_free_vars=parts[0] is not mod)


DOUBT = 0.02
"""Times that differ by no larger share are equal: the fastest of many was lucky, too."""

KINDS: dict[str, type[Database]] = {}
"""The databases by the names that `Database.create` takes."""


class Database(ABC):
    """Programs and records of their schedules. As a context (`with database:`) it is what
    `Database.current()` gives."""

    def __init__(self, module_equality: str = "structural") -> None:
        if module_equality not in MODULE_EQUALITIES:
            raise ValueError(
                f'module_equality "{module_equality}" is not known here; '
                f"there are {', '.join(MODULE_EQUALITIES)}"
            )
        self.module_equality = module_equality

    @abstractmethod
    def has_workload(self, mod: IRModule) -> bool:
        """Whether a program of this structure is known."""

    @abstractmethod
    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a program, which is added where it is new."""

    @abstractmethod
    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record of one of the workloads."""

    @abstractmethod
    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest valid records of a workload, fastest first."""

    @abstractmethod
    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order in which they came."""

    @abstractmethod
    def __len__(self) -> int:
        """How many records there are."""

    def get_standing_records(self) -> list[TuningRecord]:
        """The record of each schedule that counts where it was measured several times."""
        counted: dict[tuple[int, str], TuningRecord] = {}
        for record in self.get_all_tuning_records():
            key = record.workload.shash, record.trace_text
            if record.replaces(counted.get(key)):
                counted[key] = record
        return list(counted.values())

    def get_records_of(self, workload: Workload) -> list[TuningRecord]:
        """The record of each schedule of a workload that counts, failed ones as well."""
        return [r for r in self.get_standing_records() if r.workload.shash == workload.shash]

    def find_record(self, workload: Workload, trace_text: str) -> TuningRecord | None:
        """The record of a schedule, a failed one as well; None where it was never measured."""
        records = self.get_records_of(workload)
        return next((record for record in records if record.trace_text == trace_text), None)

    def query_tuning_record(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> TuningRecord | None:
        """The fastest record of a program; None where there is none. One without steps, which
        leaves the program as builds schedule it, stays until another is faster beyond doubt."""
        return self._best(self.commit_workload(mod)) if self.has_workload(mod) else None

    def _best(self, workload: Workload) -> TuningRecord | None:
        best = next(iter(self.get_top_k(workload, 1)), None)
        default = self.find_record(workload, NO_STEPS)
        if best is None or default is None or not default.is_valid:
            return best
        return best if best.seconds < default.seconds * (1 - DOUBT) else default

    def query_schedule(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> Schedule | None:
        """The fastest schedule of a program; None where there is none."""
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None or structural_equal(record.workload.mod, mod):
            return None if record is None else record.schedule()

        sch = Schedule(mod)
        anchor = record.schedule().trace
        schedule_using_anchor_trace(sch, anchor, target or record.target or "llvm")
        return sch

    def query_ir_module(
        self, mod: IRModule, target: Target | str | None = None, workload_name: str = "main"
    ) -> IRModule | None:
        """The program with its fastest schedule; None where there is none."""
        schedule = self.query_schedule(mod, target, workload_name)
        return None if schedule is None else schedule.mod

    def query(
        self,
        mod: IRModule,
        target: Target | str | None = None,
        *,
        workload_name: str = "main",
        kind: Literal["schedule", "record", "ir_module"] = "schedule",
    ) -> Schedule | TuningRecord | IRModule | None:
        """The fastest of a program: its schedule, its record, or the scheduled program."""
        queries: dict[str, Callable[..., Any]] = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        if kind not in queries:
            raise ValueError(f'Unknown kind "{kind}"; there are {", ".join(queries)}')
        return queries[kind](mod, target, workload_name)

    def dump_pruned(self, destination: Database) -> None:
        """Write the fastest record of each workload to another database."""
        workloads = {r.workload.shash: r.workload for r in self.get_all_tuning_records()}
        for workload in workloads.values():
            _add(filter(None, [self._best(workload)]), destination)

    def merge(self, *sources: Database) -> None:
        """Add the records of other databases, but for those that are here already, and those that
        count no more because their schedule was measured again."""
        present = {_identity(record) for record in self.get_all_tuning_records()}
        for source in sources:
            fresh = []
            for record in source.get_standing_records():
                if _identity(record) not in present:
                    present.add(_identity(record))
                    fresh.append(record)
            _add(fresh, self)

    def __enter__(self) -> Self:
        entered.set((*entered.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        entered.set(entered.get()[:-1])

    @staticmethod
    def current() -> Database | None:
        """The database of the innermost `with`."""
        innermost_database = innermost()
        return innermost_database if isinstance(innermost_database, Database) else None

    @staticmethod
    def create(
        kind: str | Callable[[Schedule], Any] = "json", *args: Any, **kwargs: Any
    ) -> Database:
        """A database of a kind: "json", "memory", "union", "ordered_union", or a function that
        schedules every program."""
        from mlcweb.meta_schedule.database.memory_database import ScheduleFnDatabase

        if not isinstance(kind, str):
            return ScheduleFnDatabase(kind, *args, **kwargs)
        if kind not in KINDS:
            raise ValueError(f'Unknown database "{kind}"; there are {", ".join(KINDS)}')
        return KINDS[kind](*args, **kwargs)


def _add(records: Any, destination: Database) -> None:
    for record in records:
        workload = destination.commit_workload(record.workload.mod)
        destination.commit_tuning_record(
            TuningRecord(
                record.trace_text,
                workload,
                record.run_secs,
                record.target,
                record.args_info,
                record.program,
            )
        )


def _identity(record: TuningRecord) -> tuple[Any, ...]:
    return record.workload.shash, record.trace_text, record.run_secs


PyDatabase = Database
"""What databases of a program's own are subclasses of, in TVM."""
