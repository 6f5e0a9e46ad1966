"""Databases of tuning records."""

from mlcweb.meta_schedule.database.database import Database, PyDatabase
from mlcweb.meta_schedule.database.json_database import JSONDatabase
from mlcweb.meta_schedule.database.memory_database import MemoryDatabase
from mlcweb.meta_schedule.database.schedule_fn_database import ScheduleFnDatabase
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload
from mlcweb.meta_schedule.database.union_database import OrderedUnionDatabase, UnionDatabase

KINDS: dict[str, type[Database]] = {
    "json": JSONDatabase,
    "memory": MemoryDatabase,
    "union": UnionDatabase,
    "ordered_union": OrderedUnionDatabase,
}
"""The databases by the names that `Database.create` takes."""

create = Database.create
