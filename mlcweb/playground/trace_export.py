"""Traces to take along: as a Python program, and as a record in the layout of TVM's databases."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from mlcweb.ir import TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.playground.trace_replay import replay
from mlcweb.playground.trace_timing import scheduled_function
from mlcweb.playground.trace_view import find, register, replayed, starting_program
from mlcweb.schedule import Schedule, Trace
from mlcweb.user_code import namespace


def python(identifier: str, changes: Mapping[str, Any]) -> str:
    """A program that runs as it stands, here and in a TVM of the courses' spelling: the module, and
    the steps of the trace with their decisions."""
    record = find(identifier)
    start = starting_program(record)
    done = replayed(identifier, changes)
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


def record(
    identifier: str, changes: Mapping[str, Any], run_secs: list[float] | None = None
) -> dict[str, Any]:
    """The trace as TVM's databases keep it.

    Args:
        run_secs: the measured seconds, if it was measured.

    Returns:
        Plain JSON: ``workload`` (hash and module) and ``record`` (trace, run_secs, target,
        args_info): a line of ``database_workload.json`` and, but for the number of that line in
        front, of ``database_tuning_record.json``.
    """
    from mlcweb.meta_schedule.arg_info import ArgInfo
    from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload

    done = replayed(identifier, changes)
    start = done.start.module
    name = the_function_name(start, scheduled_function(done))
    entry = TuningRecord(
        done.schedule.trace,
        Workload(start),
        run_secs,
        "llvm",
        ArgInfo.from_prim_func(start[name]),
    )
    return {"workload": entry.workload.as_json(), "record": entry.as_json()}


def steps_json(identifier: str, changes: Mapping[str, Any]) -> list[Any]:
    """The trace alone, to be found again by `load`."""
    return replayed(identifier, changes).schedule.trace.as_json()


def load(title: str, steps: list[Any]) -> dict[str, Any]:
    """Register a trace in JSON form (of `steps_json`, or of a record of TVM), of a module of the
    program that ran last; returns what `trace_view.register` does.

    Raises:
        TVMError: it fits none of the program's modules.
    """
    reason = "the program has no module"
    for module in namespace.modules(vars(sys.modules["__main__"])).values():
        schedule = Schedule(module)
        try:
            Trace.apply_json_to_schedule(json.loads(json.dumps(steps)), schedule)
        except (TVMError, ValueError, IndexError, TypeError, KeyError) as error:
            reason = str(error)
            continue
        if replay(schedule.trace, module).failure is None:
            return register("link", title, schedule.trace, [module], schedule.mod)
    raise TVMError(f"the trace fits no module of this program: {reason}")
