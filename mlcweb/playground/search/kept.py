"""The trials of searches, kept small for as long as the page shows them."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from mlcweb.ir import IRModule, TVMError, structural_hash
from mlcweb.meta_schedule.database.tuning_record import trace_text
from mlcweb.meta_schedule.trial import Trial
from mlcweb.schedule import Schedule, Trace


@dataclass(frozen=True, slots=True)
class KeptTrial:
    """A trial without its program, which its trace makes again: a few hundred bytes.

    Attributes:
        trace: its steps as JSON, compressed.
        shash: the structural hash of its program.
    """

    trace: bytes
    shash: int
    seconds: float | None
    reason: str | None

    @staticmethod
    def of(trial: Trial) -> KeptTrial:
        """What is kept of a trial."""
        packed = zlib.compress(trace_text(trial.trace).encode())
        return KeptTrial(packed, structural_hash(trial.module), trial.seconds, trial.reason)

    @property
    def text(self) -> str:
        """The trace as records hold it."""
        return zlib.decompress(self.trace).decode()

    def schedule(self, program: IRModule) -> Schedule:
        """The trial's schedule again.

        Raises:
            TVMError: its function returned a schedule of something else than the program.
        """
        sch = Schedule(program)
        Trace.apply_json_to_schedule(json.loads(self.text), sch)
        if structural_hash(sch.mod) != self.shash:
            raise TVMError("the schedule of this trial does not start from the program")
        return sch
