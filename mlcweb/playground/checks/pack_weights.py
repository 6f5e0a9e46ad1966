"""Chapter 6: weights that a program packs for an instruction of processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import blocks_of, expect, run, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule
from mlcweb.tir.arithmetic import constant_value

SIDE = 64
ROWS = (16, 4)
"""What one step of the instruction takes of the weights."""


def check(variables: Mapping[str, Any]) -> str:
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    function = schedule.mod["main"]
    views = [
        match.source.buffer
        for block, _ in blocks_of(function)
        for match in block.match_buffers
        if tuple(map(constant_value, match.buffer.shape)) == ROWS
    ]
    if not views:
        raise Wrong("No block calls the instruction yet: pack B first, then by_dot_products(sch).")
    for buffer in views:
        shape = tuple(map(constant_value, buffer.shape))
        if shape[-2:] != ROWS:
            raise Wrong(
                f"The instruction is given rows of {buffer.name}, whose shape is {shape}: they are "
                f"not neighbours in memory. The last two extents should be {ROWS}."
            )
    rng = np.random.default_rng(11)
    a = rng.integers(0, 256, (SIDE, SIDE)).astype("uint8")
    b = rng.integers(-128, 128, (SIDE, SIDE)).astype("int8")
    shapes = [tuple(map(constant_value, p.shape)) for p in function.parameter_buffers]
    if shapes != [(SIDE, SIDE)] * 3:
        raise Wrong(
            "B is a parameter of another shape now. Copy it by cache_read, and give the copy the "
            "layout of tiles."
        )
    c = run(schedule.mod, [a, b], np.full((SIDE, SIDE), -1, "int32"))
    expected = a.astype("int32") @ b.astype("int32").T
    expect("C", c, expected)
    return "B is packed once, and 4,096 steps of the instruction compute the product."
