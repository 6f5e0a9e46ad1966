"""Cases of one primitive in a text file: a program, a schedule, and what comes of them.

A file is a sequence of

    === name
    <a TVMScript function>
    --- schedule
    <Python, with `sch`>
    --- gives | refused | gives, unlike TVM | refused, unlike TVM
    <the scheduled function, or the reason of the refusal>

The answers are those of Apache TVM 0.27, but where the heading says so; a comment then says why.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from mlcweb.tir.buffer import constant_shape

FOLDER = Path(__file__).parent / "cases"


class Case(NamedTuple):
    """One program and schedule, and the answer."""

    name: str
    program: str
    schedule: str
    accepted: bool
    answer: str


def cases(file: str) -> list[Case]:
    """The cases of a file in the folder `cases`."""
    found = []
    for chunk in re.split(r"^=== ", (FOLDER / file).read_text(), flags=re.M)[1:]:
        name, rest = chunk.split("\n", 1)
        parts = re.split(r"^--- (.+)\n", rest, flags=re.M)
        program, _, schedule, heading, answer = parts
        found.append(Case(name, program, schedule, heading.startswith("gives"), answer.strip()))
    return found


def programs(file: str) -> dict[str, str]:
    """The programs of a file that has nothing else, by name."""
    chunks = re.split(r"^=== ", (FOLDER / file).read_text(), flags=re.M)[1:]
    return dict(chunk.split("\n", 1) for chunk in chunks)


def module(function: str) -> IRModule:
    """A module with one function."""
    made = from_source("@I.ir_module\nclass Module:\n" + textwrap.indent(function, "    "))
    assert isinstance(made, IRModule)
    return made


def reason(case: Case) -> str:
    """The reason of a refusal, without the comment."""
    return "\n".join(line for line in case.answer.splitlines() if not line.startswith("#"))


def outputs(
    mod: IRModule, arrays: list[np.ndarray], target: str = "interpreter"
) -> list[np.ndarray]:
    """All parameters after the program has run on copies of `arrays`."""
    given = [mlcweb.nd.array(array) for array in arrays]
    mlcweb.build(mod, target=target)["main"](*given)
    return [array.numpy() for array in given]


def random_inputs(mod: IRModule) -> list[np.ndarray] | None:
    """Small integers for every parameter, so that sums are exact; None for symbolic shapes."""
    rng = np.random.default_rng(0)
    arrays = []
    for buffer in mod["main"].parameter_buffers:
        shape = constant_shape(buffer)
        if shape is None:
            return None
        arrays.append(rng.integers(-8, 8, shape).astype(buffer.dtype))
    return arrays


def check(case: Case) -> None:
    """Apply the schedule; compare the module, and its numbers with the unscheduled program's."""
    before = module(case.program)
    sch = Schedule(before)
    if not case.accepted:
        with pytest.raises(ScheduleError) as refusal:
            exec(case.schedule, {"sch": sch})
        assert refusal.value.reason == reason(case)
        return
    exec(case.schedule, {"sch": sch})
    assert_structural_equal(sch.mod, module(case.answer))
    arrays = random_inputs(before)
    if arrays is not None:
        for got, want in zip(outputs(sch.mod, arrays), outputs(before, arrays), strict=True):
            np.testing.assert_array_equal(got, want)
