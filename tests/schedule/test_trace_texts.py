"""Traces of primitives as TVM 0.27 prints and records them, and what comes of replaying these.

The file `cases/traces.txt` has a program, a schedule, TVM's printed trace and, in most cases, its
record.
"""

import json
import re

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import Trace
from mlcweb.tir import Schedule
from tests.schedule.case_files import FOLDER, module

CASES = {}
for chunk in re.split(r"^=== ", (FOLDER / "traces.txt").read_text(), flags=re.M)[1:]:
    name, rest = chunk.split("\n", 1)
    program, _, schedule, _, printed, *record = re.split(r"^--- (.+)\n", rest, flags=re.M)
    CASES[name] = program, schedule, printed.strip(), json.loads(record[1]) if record else None


@pytest.mark.parametrize("name", CASES)
def test_text_and_record(name):
    program, schedule, printed, record = CASES[name]
    sch = Schedule(module(program))
    exec(schedule, {"sch": sch})
    assert sch.trace.text("  ", "tir") == printed
    ours = sch.trace.as_json(dialect="s_tir")
    if record is not None:
        assert ours == record

    replayed = [Schedule(module(program)) for _ in range(3)]
    sch.trace.apply_to_schedule(replayed[0])
    Trace.apply_json_to_schedule(json.loads(json.dumps(ours)), replayed[1])
    names = {}
    exec(printed.replace(": tir.Schedule", ""), names)
    names["apply_trace"](replayed[2])
    for again in replayed:
        assert_structural_equal(again.mod, sch.mod)
        assert again.trace.text("  ", "tir") == printed
