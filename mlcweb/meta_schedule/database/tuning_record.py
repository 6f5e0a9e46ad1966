"""What a database keeps: programs, and how long their schedules took."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from mlcweb.ir import IRModule, structural_hash
from mlcweb.meta_schedule.arg_info import ArgInfo
from mlcweb.meta_schedule.database import tvm_graph
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule, Trace

FAILED_SECONDS = 1e10
"""The time that a record gives a schedule which failed, so that nobody tries it again."""

DIALECT = "s_tir"
"""Records are written with the names that a TVM of today reads; both are read."""


class Workload:
    """A program as it was before any schedule, known by its structure."""

    __slots__ = ("mod", "shash")

    def __init__(self, mod: IRModule, shash: int | None = None) -> None:
        self.mod = mod
        self.shash = structural_hash(mod) if shash is None else shash

    def as_json(self) -> list[str]:
        """The hash, and the module as TVM's records hold one."""
        return [str(self.shash), tvm_graph.save(self.mod)]

    @staticmethod
    def from_json(json_obj: Any) -> Workload:
        """Read what `as_json` or TVM made; the hash is computed anew, since TVM's differs.

        Raises:
            ValueError: it is something else.
        """
        if not (isinstance(json_obj, list) and len(json_obj) == 2):
            raise ValueError("a workload is a list of a hash and a module")
        return Workload(tvm_graph.load(json_obj[1]))


class RunSeconds(float):
    """Seconds per call. A number as any other, which TVM's programs also ask for its `value`, since
    there it is a FloatImm."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The number itself."""
        return float(self)


def run_seconds(times: Iterable[float] | None) -> tuple[RunSeconds, ...] | None:
    """Times of batches; constants of TensorIR are taken, too."""
    return None if times is None else tuple(RunSeconds(float(time)) for time in times)


class TuningRecord:
    """A schedule of a workload, and what it took.

    Only the text of the trace is kept, since thousands of records are held at a time.

    Attributes:
        run_secs: seconds per call, one number for each batch; none before it was measured.
        program: the structural hash of the scheduled program, where it is known without a replay:
            several traces may lead to one program.
    """

    __slots__ = ("args_info", "program", "run_secs", "target", "trace_text", "workload")

    def __init__(
        self,
        trace: Trace | str,
        workload: Workload,
        run_secs: Sequence[float] | None = None,
        target: Target | str | None = None,
        args_info: Sequence[ArgInfo] | None = None,
        program: int | None = None,
    ) -> None:
        self.trace_text = trace if isinstance(trace, str) else trace_text(trace)
        self.workload = workload
        self.run_secs = run_seconds(run_secs)
        self.target = None if target is None else Target(target)
        self.args_info = None if args_info is None else tuple(args_info)
        self.program = program

    @property
    def trace(self) -> Trace:
        """The steps of the schedule."""
        return self.schedule().trace

    @property
    def seconds(self) -> float:
        """The median of the batches, as of a trial, or their mean, as TVM takes it, in a record
        that no search here made; infinite where there is none."""
        if not self.run_secs:
            return float("inf")
        middle = statistics.fmean if self.program is None else statistics.median
        return middle(self.run_secs)

    @property
    def is_valid(self) -> bool:
        """Whether it was measured, and did not fail."""
        return 0 <= self.seconds < FAILED_SECONDS

    def replaces(self, older: TuningRecord | None) -> bool:
        """Whether this record counts instead of an older one of the same schedule: it ran, and it
        was measured at least as often, as what is confirmed is. A lucky time does not last."""
        if older is None or not older.is_valid:
            return True
        return self.is_valid and len(self.run_secs or ()) >= len(older.run_secs or ())

    def schedule(self) -> Schedule:
        """The workload's schedule with all steps done.

        Raises:
            ScheduleError: the steps no longer fit.
            ValueError: they are none.
        """
        sch = Schedule(self.workload.mod)
        try:
            replay_text(self.trace_text, sch)
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"The trace of a record is damaged: {error}") from error
        return sch

    def as_json(self) -> list[Any]:
        """The layout of TVM's records: trace, run_secs, target, args_info."""
        return [
            json.loads(self.trace_text),
            None if self.run_secs is None else list(self.run_secs),
            None if self.target is None else self.target.export(),
            None if self.args_info is None else [info.as_json() for info in self.args_info],
        ]

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> TuningRecord:
        """Read what `as_json` or TVM made. The trace is not replayed yet.

        Raises:
            ValueError: it is something else.
        """
        try:
            trace, run_secs, target, args_info = json_obj
            steps, decisions = trace
            if not all(map(_is_step, steps)) or not all(map(_is_decision, decisions)):
                raise ValueError("its trace is no list of steps")
            return TuningRecord(
                json.dumps(trace, separators=(",", ":")),
                workload,
                None if run_secs is None else [float(second) for second in run_secs],
                None if target is None else _plain_target(target),
                None if args_info is None else [ArgInfo.from_json(info) for info in args_info],
            )
        except (TypeError, KeyError) as error:
            raise ValueError(f"no tuning record: {error}") from None


def _is_step(item: Any) -> bool:
    """Whether an item has the form of a step: a name, inputs, attributes, and outputs."""
    if not (isinstance(item, list) and len(item) == 4 and isinstance(item[0], str)):
        return False
    return all(isinstance(part, list) for part in item[1:])


def _is_decision(item: Any) -> bool:
    """Whether an item has the form of a decision: the number of a step, and what it decided."""
    return isinstance(item, list) and len(item) == 2 and type(item[0]) is int


def trace_text(trace: Trace, remove_postproc: bool = False) -> str:
    """A trace as a record holds it. Equal texts are equal schedules of one program."""
    return json.dumps(trace.as_json(remove_postproc, dialect=DIALECT), separators=(",", ":"))


NO_STEPS = trace_text(Trace())
"""The trace of a program that stays as builds schedule it."""


def replay_text(text: str, sch: Schedule) -> None:
    """Replay a trace as a record holds it. Its steps are spelled as the course does, whatever the
    TVM for which records are written."""
    Trace.apply_json_to_schedule(json.loads(text), sch, dialect="tir")


def _plain_target(target: Any) -> Target:
    """A target without what TVM adds of its own."""
    if not isinstance(target, dict):
        if not isinstance(target, str):
            raise ValueError(f"{target!r} is no target")
        return Target(target)
    ours = {k: v for k, v in target.items() if k not in ("keys", "tag", "mtriple", "host")}
    return Target(ours)
