"""Loops with nearly as many iterations as an int32 counts are scheduled, though nobody runs them:
whatever is accepted covers all elements and overflows nowhere."""

from math import prod
from random import Random

import pytest

from mlcweb.ir import assert_structural_equal
from mlcweb.schedule import ScheduleError
from mlcweb.script import from_source
from mlcweb.tir import Schedule

SHAPES = (
    (2**31 - 1,), (2**30,), (65537,), (46341, 46341), (65536, 32768), (2048, 2048, 512),
    (2**30, 1), (3, 2**29),
)  # fmt: skip
FACTORS = ([None, 2], [None, 3], [46341, None], [None, 65536], [2, None, 2**20], [2**16, 2**16])


def program(shape):
    loops = [f"for i{n} in range({extent}):" for n, extent in enumerate(shape)]
    axes = [f"v{n} = T.axis.spatial({extent}, i{n})" for n, extent in enumerate(shape)]
    place = ", ".join(f"v{n}" for n in range(len(shape)))
    lines = [
        "@T.prim_func",
        f"def main(A: T.Buffer({shape}, 'int8'), B: T.Buffer({shape}, 'int8')):",
    ]
    lines += ["    " * (n + 1) + loop for n, loop in enumerate(loops)]
    inside = [
        'with T.block("B"):',
        *(f"    {axis}" for axis in axes),
        f"    B[{place}] = A[{place}]",
    ]
    lines += ["    " * (len(shape) + 1) + line for line in inside]
    return from_source("\n".join(lines) + "\n")


def step(sch, random):
    loops = sch.get_loops("B")
    kind = random.choice(["split", "split", "fuse", "reorder", "unit"])
    if kind == "split":
        sch.split(random.choice(loops), random.choice(FACTORS))
    elif kind == "fuse":
        start = random.randrange(len(loops))
        sch.fuse(*loops[start : start + 2])
    elif kind == "reorder":
        sch.reorder(*random.sample(loops, len(loops)))
    else:
        sch.add_unit_loop(random.choice(loops))


@pytest.mark.parametrize("shape", SHAPES)
def test_accepted_steps_cover_all_elements(shape):
    for seed in range(8):
        random = Random(seed)
        sch = Schedule(program(shape), error_render_level="none")
        for _ in range(6):
            try:
                step(sch, random)
            except ScheduleError:
                continue
        extents = [int(sch.get(loop).extent) for loop in sch.get_loops("B")]
        assert all(0 < extent < 2**31 for extent in extents), sch.mod.script()
        assert prod(extents) >= prod(shape), sch.mod.script()
        assert_structural_equal(from_source(sch.mod.script()), sch.mod)
