"""Trials, records and workloads as the page keeps them, and TVM's files as records."""

from __future__ import annotations

import json
import statistics
import tempfile
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mlcweb.ir import IRModule, TVMError, structural_hash
from mlcweb.meta_schedule.database import JSONDatabase, TuningRecord, Workload
from mlcweb.meta_schedule.database.json_lines import RECORDS, WORKLOADS
from mlcweb.meta_schedule.database.tuning_record import replay_text, trace_text
from mlcweb.meta_schedule.events import Trial
from mlcweb.playground.protocol.search import ReadRecords, RecordGroup, StoredRecord, WorkloadKey
from mlcweb.schedule import Schedule


@dataclass(frozen=True, slots=True)
class PackedTrial:
    """A trial without its program, which its trace makes again: a few hundred bytes.

    Attributes:
        trace: its steps as JSON, compressed.
        shash: the structural hash of its program.
    """

    trace: bytes
    shash: int
    seconds: float | None

    @staticmethod
    def of(trial: Trial) -> PackedTrial:
        """What is kept of a trial for as long as the page shows it."""
        text = trace_text(trial.trace) if trial.record is None else trial.record.trace_text
        shash = structural_hash(trial.module) if trial.shash is None else trial.shash
        return PackedTrial(zlib.compress(text.encode()), shash, trial.seconds)

    def schedule(self, program: IRModule) -> Schedule:
        """The trial's schedule again.

        Raises:
            TVMError: its function returned a schedule of something else than the program.
        """
        sch = Schedule(program)
        replay_text(zlib.decompress(self.trace).decode(), sch)
        if structural_hash(sch.mod) != self.shash:
            raise TVMError("the schedule of this trial does not start from the program")
        return sch


def stored(record: TuningRecord, key: str) -> StoredRecord:
    """A record as the page stores it.

    Args:
        key: how the page's storage knows the workload.
    """
    return StoredRecord(
        id=_digest(key + record.trace_text),
        workload=key,
        program=None if record.program is None else f"{record.program:x}",
        seconds=statistics.median(record.run_secs or (0.0,)) if record.is_valid else None,
        record=_compact(record.as_json()),
    )


def stored_workload(workload: Workload) -> WorkloadKey:
    """How the page's storage knows a program."""
    return WorkloadKey(_digest(workload.mod.script()), _compact(workload.as_json()))


def read_files(files: Mapping[str, str]) -> ReadRecords:
    """The records of files in TVM's layout.

    Raises:
        TVMError: there is no record in the files.
    """
    groups: dict[int, RecordGroup] = {}
    with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        for name in (WORKLOADS, RECORDS):
            Path(folder, name).write_text(files.get(name, ""), encoding="utf-8")
        records = JSONDatabase(work_dir=folder).get_standing_records()
    for record in records:
        shash = record.workload.shash
        if shash not in groups:
            workload = stored_workload(record.workload)
            groups[shash] = RecordGroup(workload.key, workload.line, [])
        groups[shash].records.append(stored(record, groups[shash].key))
    if not groups:
        raise TVMError(
            "no record can be read from these files; there should be two, "
            "database_workload.json and database_tuning_record.json"
        )
    return ReadRecords(list(groups.values()), [str(warning.message) for warning in caught])


def _compact(item: Any) -> str:
    return json.dumps(item, separators=(",", ":"))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
