"""What searches before this one have measured, as the page keeps it: never measured a second time.

The page holds records in the browser's storage and hands over those of the program: all by the hash
of what they measured, the fastest as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir import IRModule, TVMError, structural_hash
from mlcweb.meta_schedule.database import TuningRecord
from mlcweb.meta_schedule.measure.artifact import Artifact, ModuleArtifact
from mlcweb.meta_schedule.measure.measuring import Build
from mlcweb.meta_schedule.measure.runner import Runner, Seconds
from mlcweb.meta_schedule.trial import Trial
from mlcweb.playground.protocol.search import EarlierRecords
from mlcweb.playground.search.fastest import FastestRecords

REPLAYED = 64
"""So many records that came without the hash of their program are replayed to find it."""


class FailedEarlier(TVMError):
    """The program failed in an earlier search."""


@dataclass(slots=True)
class Earlier:
    """Records of earlier searches of a program.

    Attributes:
        database: the fastest of them and of the present search.
        seconds: the batches of each program that was measured, by its structural hash; empty for
            one that failed.
    """

    database: FastestRecords
    seconds: dict[int, Seconds] = field(default_factory=dict)

    @staticmethod
    def of(records: EarlierRecords | None, program: IRModule) -> Earlier:
        """Read what the page keeps."""
        found = Earlier(FastestRecords(program))
        if not records:
            return found
        for shash, seconds in records.programs:
            found.seconds[int(shash, 16)] = () if seconds is None else (seconds,)
        workload = found.database.commit_workload(program)
        for number, line in enumerate(records.lines):
            try:
                record = TuningRecord.from_json(json.loads(line.record), workload)
                if line.program is None and number < REPLAYED:
                    shash = structural_hash(record.schedule().mod)
                    found.seconds[shash] = record.run_secs or ()
            except (TVMError, ValueError, IndexError, TypeError):
                continue  # a record of another version, or one that no longer fits
            found.database.commit_tuning_record(record)
        return found

    def best(self, program: IRModule, count: int) -> list[Trial]:
        """The fastest as trials, numbered from 0."""
        workload = self.database.commit_workload(program)
        found: list[Trial] = []
        for record in self.database.get_top_k(workload, count):
            try:
                sch = record.schedule()
            except (TVMError, ValueError, IndexError, TypeError):
                continue
            run_secs = record.run_secs or ()
            found.append(Trial(len(found), 0, sch.trace, sch.mod, run_secs=run_secs))
        return found


class _Known(ModuleArtifact):
    """Stands for code that need not run."""


class Remembering:
    """Building and running in which programs that were measured earlier are not measured again."""

    def __init__(self, build: Build, runner: Runner, earlier: Mapping[int, Seconds]) -> None:
        self._build = build
        self._runner = runner
        self._earlier = dict(earlier)
        self.workers = runner.workers

    def build(self, module: IRModule) -> Any:
        """As the builder given does it."""
        if structural_hash(module) in self._earlier:
            return _Known(module, "", "")
        return self._build(module)

    def knows(self, module: IRModule) -> bool:
        """Whether a program's time comes from an earlier search."""
        return structural_hash(module) in self._earlier

    async def begin(self, reference: Artifact) -> Seconds:
        return await self._runner.begin(reference)

    async def run(self, artifact: Artifact) -> Seconds:
        if not isinstance(artifact, _Known):
            return await self._runner.run(artifact)
        seconds = self._earlier[structural_hash(artifact.module)]
        if not seconds:
            raise FailedEarlier("it failed in an earlier search")
        return seconds

    def close(self) -> None:
        self._runner.close()
