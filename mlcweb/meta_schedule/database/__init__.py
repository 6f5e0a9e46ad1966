"""Databases of tuning records."""

from mlcweb.meta_schedule.database.database import KINDS, Database, PyDatabase
from mlcweb.meta_schedule.database.json_database import JSONDatabase
from mlcweb.meta_schedule.database.memory_database import (
    MemoryDatabase,
    OrderedUnionDatabase,
    ScheduleFnDatabase,
    UnionDatabase,
)
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload

KINDS |= {
    "json": JSONDatabase,
    "memory": MemoryDatabase,
    "union": UnionDatabase,
    "ordered_union": OrderedUnionDatabase,
}

create = Database.create
