"""Chapter 6: a window sum on blocks of 256 threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.playground.checks.common import blocks_of, loop_text, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule

THREADS = 256


def check(variables: Mapping[str, Any]) -> str:
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    [function] = schedule.mod.functions.values()
    nests = {block.name_hint: loops for block, loops in blocks_of(function)}
    if "C" not in nests or "A_shared" not in nests:
        raise Wrong(
            "sch should hold the window sum's block C and the block A_shared that cache_read "
            f"makes; it has {', '.join(nests)}."
        )
    expected = [
        f'T.thread_binding({1024 // THREADS}, thread="blockIdx.x")',
        f'T.thread_binding({THREADS}, thread="threadIdx.x")',
    ]
    loops = [loop_text(loop) for loop in nests["C"]]
    if loops != expected:
        raise Wrong(
            f"Around C there should be {' and '.join(expected)}; there is {' and '.join(loops)}."
        )
    fetch = [loop_text(loop) for loop in nests["A_shared"]]
    threads = [text for text in fetch if "threadIdx.x" in text]
    if len(threads) < 2:
        raise Wrong(
            "Each thread still fetches the whole window by itself. Split the innermost loop around "
            f"A_shared by {THREADS} and bind its inner part to threadIdx.x, so that they share it."
        )
    if any(text != expected[1] for text in threads):
        raise Wrong(
            f"Every threadIdx.x needs extent {THREADS}; around A_shared: {', '.join(fetch)}."
        )
    return f"{1024 // THREADS} blocks of {THREADS} threads fetch together and sum."
