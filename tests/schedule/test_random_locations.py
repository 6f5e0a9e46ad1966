"""Whatever random moves, caches and inlinings are accepted, the program computes the same."""

import random

import numpy as np
import pytest

from mlcweb.schedule import ScheduleError
from mlcweb.tir import Schedule
from tests import random_schedules
from tests.schedule.case_files import module, outputs, programs, random_inputs

STEPS = [
    random_schedules.compute_at,
    random_schedules.reverse_compute_at,
    random_schedules.cache,
    random_schedules.inline,
    random_schedules.split,
    random_schedules.fuse,
    random_schedules.reorder,
]
PROGRAMS = programs("programs.txt")


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_kept(name):
    before = module(PROGRAMS[name])
    arrays = random_inputs(before)
    assert arrays is not None
    wanted = outputs(before, arrays)
    for seed in range(12):
        chance = random.Random(seed)
        sch = Schedule(before)
        for _ in range(6):
            step = chance.choice(STEPS)
            try:
                step(sch, lambda options, chance=chance: chance.choice(list(options)))
            except (ScheduleError, IndexError):
                continue
        for got, want in zip(outputs(sch.mod, arrays), wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{sch.mod}\n{sch.trace}")
