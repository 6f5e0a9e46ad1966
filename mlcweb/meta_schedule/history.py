"""What is known of the schedules of one program: records in a database, outcomes by program."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mlcweb.ir import IRModule, structural_hash
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.tuning_record import FAILED_SECONDS, TuningRecord
from mlcweb.meta_schedule.events import Trial
from mlcweb.meta_schedule.measure.runner import Seconds
from mlcweb.runtime.target import Target
from mlcweb.schedule.errors import REPLAY_ERRORS

REPLAYED = 64
"""Of records that came without the hash of their program, at most this many are replayed to find
it, which takes about as long as making a program."""

LOST = "WorkerDied"
"""How the reason of a trial begins whose worker ended for no known cause."""


class History:
    """The history of one program's schedules.

    Args:
        database: where records are, and where new ones go.
        module: the program.
        outcomes: seconds of the programs that were measured in earlier searches, by structural
            hash, empty for those that failed; by default those of the database's records.

    Attributes:
        best: seconds of the fastest record; infinite where there is none.
        size: how many schedules of the program were known at the beginning.
    """

    def __init__(
        self,
        database: Database,
        module: IRModule,
        outcomes: Mapping[int, Seconds] | None = None,
    ) -> None:
        self.database = database
        self.workload = database.commit_workload(module)
        fastest = database.get_top_k(self.workload, 1)
        self.best = fastest[0].seconds if fastest else float("inf")
        if outcomes is None:
            records = database.get_records_of(self.workload)
            outcomes = dict(outcomes_of(records))
            self.size = len(records)
        else:
            self.size = len(outcomes)
        self.outcomes = outcomes

    def fastest(self, count: int) -> Iterator[Trial]:
        """The fastest records as trials, numbered from 0."""
        index = 0
        for record in self.database.get_top_k(self.workload, count):
            try:
                sch = record.schedule()
            except REPLAY_ERRORS:
                continue
            run_secs = record.run_secs or ()
            yield Trial(index, 0, sch.trace, sch.mod, run_secs=run_secs, recalled=True)
            index += 1

    def has(self, trace_text: str) -> bool:
        """Whether a schedule was measured, in an earlier search or another at the same time."""
        return self.database.find_record(self.workload, trace_text) is not None

    def with_record(
        self, trial: Trial, trace_text: str, target: Target | None, args_info: Sequence[ArgInfo]
    ) -> Trial:
        """A trial with its record, unless there is nothing to keep: its time comes from here, or
        its worker was lost, which tells nothing of it."""
        if (trial.recalled and not trial.confirmed) or (trial.reason or "").startswith(LOST):
            return trial
        run_secs = trial.run_secs or (FAILED_SECONDS,)
        shash = structural_hash(trial.module) if trial.shash is None else trial.shash
        record = TuningRecord(trace_text, self.workload, run_secs, target, args_info, shash)
        return replace(trial, record=record)

    def commit(self, trial: Trial) -> None:
        """Keep a trial's record. One that repeats another schedule of the search is there."""
        record = trial.record
        repeats = trial.same_as is not None and not trial.confirmed
        if record is not None and not (repeats and self.has(record.trace_text)):
            self.database.commit_tuning_record(record)


def outcomes_of(records: Iterable[TuningRecord]) -> Iterator[tuple[int, Seconds]]:
    """The hashes of the programs of records, with their seconds, none for those that failed. Of
    records that do not say the hash, the fastest are replayed."""
    silent = []
    for record in records:
        if record.program is not None:
            yield record.program, _seconds(record)
        else:
            silent.append(record)
    for record in heapq.nsmallest(REPLAYED, silent, key=lambda record: record.seconds):
        try:
            yield structural_hash(record.schedule().mod), _seconds(record)
        except REPLAY_ERRORS:
            continue  # a record of another version, or one that no longer fits


def _seconds(record: TuningRecord) -> Seconds:
    return record.run_secs or () if record.is_valid else ()
