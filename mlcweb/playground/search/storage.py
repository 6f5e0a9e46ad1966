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
from mlcweb.playground.search.kept import KeptTrial


class Recorder:
    """Makes records of the trials of one program.

    Attributes:
        workload: the program as databases know it.
        key: how the page's storage knows it.
        line: its line of TVM's file of workloads.
    """

    def __init__(self, program: IRModule, target: str = "llvm") -> None:
        self.workload = Workload(program)
        self.target = target
        self.key, self.line = _known_as(self.workload)

    def record(self, trial: Trial, kept: KeptTrial) -> TuningRecord:
        """A trial as a record; `kept` has its own steps."""
        run_secs = trial.run_secs or (FAILED_SECONDS,)
        return TuningRecord(kept.text, self.workload, run_secs, self.target)

    def stored(self, record: TuningRecord, kept: KeptTrial) -> dict[str, Any]:
        """A record as the page stores it."""
        return _stored(record, self.key, f"{kept.shash:x}")


def read_files(files: Mapping[str, str]) -> dict[str, Any]:
    """The records of files in TVM's layout.

    Returns:
        Plain JSON: ``groups``, for each program its ``key`` and ``line``, and its ``records`` as
        they are stored; and ``warnings``, sentences about lines that were skipped.

    Raises:
        TVMError: there is no record in the files.
    """
    groups: dict[int, dict[str, Any]] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = load(files).get_standing_records()
    for record in records:
        shash = record.workload.shash
        if shash not in groups:
            key, line = _known_as(record.workload)
            groups[shash] = {"key": key, "line": line, "records": []}
        group = groups[shash]
        group["records"].append(_stored(record, group["key"], None))
    if not groups:
        raise TVMError(
            "no record can be read from these files; there should be two, "
            "database_workload.json and database_tuning_record.json"
        )
    told = [str(warning.message) for warning in caught]
    return {"groups": list(groups.values()), "warnings": told}


def _stored(record: TuningRecord, key: str, program: str | None) -> dict[str, Any]:
    """The ``id`` is that of the schedule: a later time of it takes the place of the first.
    ``program`` is the structural hash of what was measured, where it is known; ``seconds`` is None
    for a schedule that failed."""
    seconds = statistics.median(record.run_secs or (0.0,)) if record.is_valid else None
    return {
        "id": _digest(key + record.trace_text),
        "workload": key,
        "program": program,
        "seconds": seconds,
        "record": _compact(record.as_json()),
    }


def _known_as(workload: Workload) -> tuple[str, str]:
    return _digest(workload.mod.script()), _compact(workload.as_json())


def _compact(item: Any) -> str:
    return json.dumps(item, separators=(",", ":"))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
