"""Traces to take along."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mlcweb.ir import TVMError, structural_equal
from mlcweb.meta_schedule.database.tuning_record import TuningRecord, Workload
from mlcweb.playground import trace_export, trace_view
from tests.playground.texts import methods, sides

Run = Callable[[str], Any]
SCHEDULE = "sch = stochastic_schedule_mm(tvm.tir.Schedule(MyModule, seed=1))\n"


def test_the_exported_program_runs_by_itself(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    derived = trace_view.derive(trace.id, {3: [4, 4]})
    text = trace_export.python(trace.id, {3: [4, 4]})
    assert "decision=[4, 4]" in text
    result = run(text.replace("import tvm\n", "import mlcweb as tvm\n").replace(
        "from tvm.script", "from mlcweb.script"))  # fmt: skip
    assert result.ok, result.error
    [again] = result.traces
    last = trace_view.trace_steps(again.id)[-1]
    assert sides(last.diff)[1] == sides(derived.steps[-1].diff)[1]


def test_the_record_is_one_of_tvm(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    exported = trace_export.record(trace.id, {}, [1e-3, 2e-3])
    workload = Workload.from_json(exported.workload)
    record = TuningRecord.from_json(exported.record, workload)
    assert record.run_secs == (1e-3, 2e-3)
    module = trace_view.replayed(trace.id).modules[-1]
    assert structural_equal(record.schedule().mod, module)
    assert [info.as_json() for info in record.args_info or ()] == [
        ["TENSOR", "float32", [16, 16]]
    ] * 3


def test_a_trace_comes_back_from_its_steps(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    expected = methods(trace_view.trace_steps(trace.id))
    steps = json.loads(json.dumps(trace_export.steps_json(trace.id, {3: [4, 4]})))
    run("")  # another run of the program, with the same module
    again = trace_export.load("program", "trial 3", steps)
    assert again.title == "trial 3"
    assert methods(trace_view.trace_steps(again.id)) == expected
    assert "T.grid(16, 4)" in sides(trace_view.trace_steps(again.id)[-1].diff)[1]


def test_a_trace_that_fits_no_module_says_so(run: Run) -> None:
    [trace] = run(SCHEDULE).traces
    steps = trace_export.steps_json(trace.id, {})
    run("del MyModule")
    with pytest.raises(TVMError, match="fits no module"):
        trace_export.load("program", "lost", steps)
    run("")
    with pytest.raises(TVMError, match="fits no module"):
        trace_export.load("program", "broken", [[["NoSuchStep", [], [], []]], []])
