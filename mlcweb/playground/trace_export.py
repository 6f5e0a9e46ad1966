"""Traces to take along: as a Python program, and as a record in the layout of TVM's databases."""

from __future__ import annotations

import json
from typing import Any

from mlcweb.ir import TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.playground.protocol.titled import Titled
from mlcweb.playground.protocol.trace import Changes, ExportedRecord
from mlcweb.playground.session import session
from mlcweb.playground.trace_replay import replay
from mlcweb.playground.trace_timing import scheduled_function
from mlcweb.playground.trace_view import register, replayed, starting_program
from mlcweb.schedule import Schedule, Trace
from mlcweb.schedule.errors import REPLAY_ERRORS
from mlcweb.user_code import namespace


def python(trace_id: str, changes: Changes) -> str:
    """A program that runs as it stands, here and in a TVM of the courses' spelling: the module, and
    the steps of the trace with their decisions."""
    record = session.trace(trace_id)
    start = starting_program(record)
    done = replayed(trace_id, changes)
    script = "\n".join(
        line for line in start.script().rstrip("\n").split("\n") if not line.startswith("# from")
    ).strip("\n")
    return "\n".join(
        [
            f"# {record.title}: {len(done.steps)} steps on the module below.",
            "import tvm",
            "from tvm.script import ir as I",
            "from tvm.script import tir as T",
            "",
            "",
            script,
            "",
            "",
            "sch = tvm.tir.Schedule(Module)",
            *done.schedule.trace.as_python(),
            "print(sch.mod.script())",
            "",
        ]
    )


def record(trace_id: str, changes: Changes, run_secs: list[float] | None = None) -> ExportedRecord:
    """The trace as TVM's databases keep it; `run_secs` are its measured seconds, if there are."""
    from mlcweb.meta_schedule.arg_info import ArgInfo
    from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload

    done = replayed(trace_id, changes)
    start = done.start.module
    name = the_function_name(start, scheduled_function(done))
    entry = TuningRecord(
        done.schedule.trace,
        Workload(start),
        run_secs,
        "llvm",
        ArgInfo.from_prim_func(start[name]),
    )
    return ExportedRecord(entry.workload.as_json(), entry.as_json())


def steps_json(trace_id: str, changes: Changes) -> list[Any]:
    """The trace alone, to be found again by `load`."""
    return replayed(trace_id, changes).schedule.trace.as_json()


def load(document_name: str, title: str, steps: list[Any]) -> Titled:
    """Register a trace in JSON form (of `steps_json`, or of a record of TVM), of a module that a
    document has defined.

    Raises:
        TVMError: it fits none of the program's modules.
    """
    reason = "the program has no module"
    document = session.open(document_name)
    for module in namespace.modules(document.offered).values():
        schedule = Schedule(module)
        try:
            Trace.apply_json_to_schedule(json.loads(json.dumps(steps)), schedule)
        except (*REPLAY_ERRORS, KeyError) as error:
            reason = str(error)
            continue
        if replay(schedule.trace, module).failure is None:
            return register(document, "link", title, schedule.trace, [module], schedule.mod)
    raise TVMError(f"the trace fits no module of this program: {reason}")
