"""What searches before this one have measured, as the page keeps it: never measured a second time.

The page holds records in the browser's storage and hands over those of the program: all by the hash
of what they measured, the fastest as a whole.
"""

from __future__ import annotations

import json

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.database import MemoryDatabase, TuningRecord, Workload
from mlcweb.meta_schedule.history import History, outcomes_of
from mlcweb.playground.protocol.search import EarlierRecords
from mlcweb.schedule.errors import REPLAY_ERRORS

MAX_RECORDS = 256


def history_of(earlier: EarlierRecords | None, program: IRModule) -> tuple[History, int]:
    """Read what the page keeps of a program; and how many records could not be read."""
    database = FastestRecords(program)
    silent: list[TuningRecord] = []
    unreadable = earlier.unreadable if earlier else 0
    for line in earlier.lines if earlier else ():
        try:
            record = TuningRecord.from_json(json.loads(line.record), database.workload)
        except REPLAY_ERRORS:
            unreadable += 1
            continue
        database.commit_tuning_record(record)
        if line.program is None:
            silent.append(record)
    outcomes = dict(outcomes_of(silent))
    for shash, seconds in earlier.programs if earlier else ():
        outcomes[int(shash, 16)] = () if seconds is None else (seconds,)
    return History(database, program, outcomes), unreadable


class FastestRecords(MemoryDatabase):
    """Keeps the fastest records of a program, and no others: all are in the page's storage.

    Args:
        program: the only program whose records it takes.
        max_records: how many records are kept.
    """

    def __init__(self, program: IRModule, max_records: int = MAX_RECORDS) -> None:
        super().__init__()
        self.workload = super().commit_workload(program)
        self.max_records = max_records

    def commit_workload(self, mod: IRModule) -> Workload:
        if not self.has_workload(mod):
            raise TVMError("these are the records of another program")
        return self.workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        if record.is_valid:
            super().commit_tuning_record(record)
        if len(self) >= 2 * self.max_records:
            fastest = self.get_top_k(self.workload, self.max_records)
            self.forget_records()
            for each in fastest:
                super().commit_tuning_record(each)
