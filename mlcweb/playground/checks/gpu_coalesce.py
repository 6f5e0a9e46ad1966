"""Chapter 6: threads of a warp that read and write neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import blocks_of, loop_text, run, same, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.playground.gpu.profile import profiles
from mlcweb.schedule import Schedule
from mlcweb.tir import PrimFunc

SIDE = 256
LEAST = 4
"""Transactions of 32 bytes for 32 neighbours of float32."""


def check(variables: Mapping[str, Any]) -> str:
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    function = schedule.mod["main"]
    assert isinstance(function, PrimFunc)
    loops = [loop_text(loop) for _, nest in blocks_of(function) for loop in nest]
    for axis in ("blockIdx.x", "threadIdx.x"):
        binding = f'T.thread_binding({SIDE}, thread="{axis}")'
        if binding not in loops:
            raise Wrong(f"There should be {binding}; there is {', '.join(loops)}.")
    [kernel] = profiles(function, "main")
    for site, counts in zip(kernel.sites, kernel.counts, strict=True):
        if counts is not None and counts.most > LEAST:
            verb = "reads" if site.kind == "load" else "writes"
            raise Wrong(
                f"A warp still makes {counts.most} transactions where it {verb} "
                f"{site.buffer.name}, and {LEAST} would do: its threads are not neighbours there."
            )
    a, r = np.random.default_rng(7).integers(-9, 10, (2, SIDE, SIDE)).astype("float32")
    if not same(run(schedule.mod, [a, r[0]], np.zeros_like(a), target=None), a + r[0]):
        raise Wrong("B is no longer A with R added to each of its rows.")
    return f"{LEAST} transactions for each access of a warp, {kernel.sectors:,.0f} in all."
