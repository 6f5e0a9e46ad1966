"""A step of several schedules: a reduction of a row made in vector lanes."""

from __future__ import annotations

from typing import Any

from mlcweb.tir import Schedule


def reduce_in_lanes(sch: Schedule, name: str, lanes: int, row: Any) -> None:
    """The reduction of the rows by block `name` moves into the loop `row`, over rows or over groups
    of them, and goes on in `lanes` lanes of each row side by side, which are put together at the
    end."""
    block = sch.get_block(name)
    _, k = sch.get_loops(block)
    _, lane = sch.split(k, [None, lanes])
    parts = sch.rfactor(lane, factor_axis=1)
    sch.set_scope(parts, 0, "local")
    sch.compute_at(block, row)
    sch.compute_at(parts, row)
    _, lane, *together, steps = sch.get_loops(parts)
    sch.reorder(steps, *together, lane)
    for each in together:
        sch.unroll(each)
    sch.vectorize(lane)
    sch.decompose_reduction(parts, steps)
