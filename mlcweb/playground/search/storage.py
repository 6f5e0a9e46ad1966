"""Records as the page's storage keeps them, and TVM's files as records."""

from __future__ import annotations

import json
import statistics
import warnings
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.meta_schedule.database import TuningRecord, Workload
from mlcweb.meta_schedule.database.exchange import load
from mlcweb.meta_schedule.database.tuning_record import FAILED_SECONDS
from mlcweb.meta_schedule.trial import Trial
from mlcweb.playground.protocol.search import (
    ReadRecords,
    RecordGroup,
    StoredRecord,
    WorkloadKey,
)
from mlcweb.playground.search.kept import KeptTrial


class Recorder:
    """Makes records of the trials of one program.

    Attributes:
        workload: the program as databases know it.
        workload_key: how the page's storage knows it.
    """

    def __init__(self, program: IRModule, target: str = "llvm") -> None:
        self.workload = Workload(program)
        self.target = target
        self.workload_key = _key_of(self.workload)

    def record(self, trial: Trial, kept: KeptTrial) -> TuningRecord:
        """A trial as a record; `kept` has its own steps."""
        run_secs = trial.run_secs or (FAILED_SECONDS,)
        return TuningRecord(kept.text, self.workload, run_secs, self.target)

    def stored(self, record: TuningRecord, kept: KeptTrial) -> StoredRecord:
        """A record as the page stores it."""
        return _stored(record, self.workload_key.key, f"{kept.shash:x}")


def read_files(files: Mapping[str, str]) -> ReadRecords:
    """The records of files in TVM's layout.

    Raises:
        TVMError: there is no record in the files.
    """
    groups: dict[int, RecordGroup] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = load(files).get_standing_records()
    for record in records:
        shash = record.workload.shash
        if shash not in groups:
            known = _key_of(record.workload)
            groups[shash] = RecordGroup(known.key, known.line, [])
        groups[shash].records.append(_stored(record, groups[shash].key, None))
    if not groups:
        raise TVMError(
            "no record can be read from these files; there should be two, "
            "database_workload.json and database_tuning_record.json"
        )
    return ReadRecords(list(groups.values()), [str(warning.message) for warning in caught])


def _stored(record: TuningRecord, key: str, program: str | None) -> StoredRecord:
    seconds = statistics.median(record.run_secs or (0.0,)) if record.is_valid else None
    identifier = _digest(key + record.trace_text)
    return StoredRecord(identifier, key, program, seconds, _compact(record.as_json()))


def _key_of(workload: Workload) -> WorkloadKey:
    return WorkloadKey(_digest(workload.mod.script()), _compact(workload.as_json()))


def _compact(item: Any) -> str:
    return json.dumps(item, separators=(",", ":"))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
