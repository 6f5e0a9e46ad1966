"""Reports of where the time goes."""

import json
from dataclasses import replace

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.runtime import host
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import MyModule, image, on_device, vm_of, weights

VM = vm_of(MyModule, profile=True)
ARGUMENTS = [tvm.nd.array(image()), *on_device(weights()).values()]


def test_rows_for_each_function_and_shape():
    report = VM.profile("main", *ARGUMENTS)
    rows = {row["Name"]: row for row in report.calls if "784" in row["Argument Shapes"]}
    assert [row["Name"] for row in report.calls] == ["linear0", "relu0", "linear0"]
    assert rows["linear0"]["Argument Shapes"] == (
        "float32[1, 784], float32[128, 784], float32[128], float32[1, 128]"
    )
    assert all(row["Count"] == 1 and row["Device"] == "cpu0" for row in report.calls)
    spent = sum(row["Duration (us)"] for row in report.calls)
    total = report.device_metrics["cpu0"]["Duration (us)"]
    assert 0 < spent <= total
    assert sum(row["Percent"] for row in report.calls) == pytest.approx(100 * spent / total)


def test_the_table():
    report = VM.profile("main", *ARGUMENTS)
    records = zip(report.records, (2e-6, 1e-6, 3e-6), strict=True)
    timed = tuple(replace(record, seconds=seconds) for record, seconds in records)
    lines = str(replace(report, records=timed)).splitlines()
    assert lines[0].split("  ")[0] == "Name"
    for column in ("Duration (us)", "Percent", "Device", "Count", "Argument Shapes"):
        assert column in lines[0]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["linear0", "3.00"], ["linear0", "2.00"], ["relu0", "1.00"],
    ]  # fmt: skip
    assert {line.split()[0] for line in lines[4:7]} == {"----------", "Sum", "Total"}
    assert "Executor: VM" in lines
    widths = {len(line) for line in lines[:7]}
    assert len(widths) == 1


def test_other_forms():
    report = VM.profile("main", *ARGUMENTS)
    assert report.csv().splitlines()[0] == (
        "Name,Duration (us),Percent,Device,Count,Argument Shapes"
    )
    assert len(report.csv().splitlines()) == 4
    assert json.loads(report.json())["calls"][1]["Name"] == "relu0"


@tvm.script.ir_module
class Impure:
    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    @R.function
    def twice(x: R.Tensor((4,), "float32")):
        cls = Impure
        a = R.call_tir(cls.copy, (x,), R.Tensor((4,), "float32"))
        b = R.call_tir(cls.copy, (a,), R.Tensor((4,), "float32"))
        return b

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        cls = Impure
        a = cls.twice(x)
        b = R.call_packed("test.count", a, sinfo_args=R.Tensor((4,), "float32"))
        return b


def test_calls_inside_of_calls_are_seen_and_effects_happen_once():
    calls = []
    tvm.register_func("test.count", lambda x: calls.append(1) or x, override=True)
    vm = vm_of(Impure)
    report = vm.profile("main", tvm.nd.array(np.ones(4, "float32")))
    assert {row["Name"]: row["Count"] for row in report.calls} == {"copy": 2, "test.count": 1}
    assert (report.runs, len(calls)) == (1, 1)
    tvm.runtime.remove_global_func("test.count")


def test_a_coarse_clock_is_averaged_out(monkeypatch):
    """A clock that steps once in 97 readings: single calls take no time by it, or much."""
    readings = iter(range(10**9))
    monkeypatch.setattr(host, "clock_source", lambda: lambda: next(readings) // 97 * 1e-4)
    monkeypatch.setattr(host, "clock_step", lambda: 1e-4)
    report = VM.profile("main", *ARGUMENTS)
    assert report.runs > 1000
    # Each call is between two readings, so each gets the same share.
    for row in report.calls:
        assert row["Duration (us)"] == pytest.approx(100 / 97, rel=0.2)


def test_time_evaluator():
    result = VM.time_evaluator("main", tvm.cpu(), number=3, repeat=2)(*ARGUMENTS)
    assert len(result.results) == 2
    with pytest.raises(tvm.TVMError, match="runs on cpu:0"):
        VM.time_evaluator("main", tvm.runtime.cuda())
