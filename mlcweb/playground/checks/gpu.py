"""The exercises of chapter 6: threads, shared memory, and instructions that compute tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb.playground.checks.common import blocks_of, expect, loop_text, run, same, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.playground.gpu.profile import profiles
from mlcweb.schedule import Schedule
from mlcweb.tir import PrimFunc
from mlcweb.tir.arithmetic import constant_value

EXTENT = 256
LEAST = 4
"""Transactions of 32 bytes for 32 neighbours of float32."""


def gpu_coalesce(variables: Mapping[str, Any]) -> str:
    """Threads of a warp that read and write neighbours."""
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    function = schedule.mod["main"]
    assert isinstance(function, PrimFunc)
    loops = [loop_text(loop) for _, nest in blocks_of(function) for loop in nest]
    for axis in ("blockIdx.x", "threadIdx.x"):
        binding = f'T.thread_binding({EXTENT}, thread="{axis}")'
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
    a, r = np.random.default_rng(7).integers(-9, 10, (2, EXTENT, EXTENT)).astype("float32")
    if not same(run(schedule.mod, [a, r[0]], np.zeros_like(a), target=None), a + r[0]):
        raise Wrong("B is no longer A with R added to each of its rows.")
    return f"{LEAST} transactions for each access of a warp, {kernel.sectors:,.0f} in all."


THREADS = 256


def thread_blocks(variables: Mapping[str, Any]) -> str:
    """A window sum on blocks of 256 threads."""
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


ORDER = ("get_loops", "split", "reorder", "blockize", "decompose_reduction", "tensorize")
TILES = ["range(4)", "range(4)", "range(4)"]


def tensorize(variables: Mapping[str, Any]) -> str:
    """A product in tiles of 16, each computed by one instruction."""
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    done = [inst.kind.method for inst in schedule.trace.insts]
    for step in ORDER:
        if step not in done:
            raise Wrong(f"The trace has no {step} yet. So far: {', '.join(done) or 'nothing'}.")
    [function] = schedule.mod.functions.values()
    if '"tmm16"' not in schedule.mod.script():
        raise Wrong("No statement calls tmm16: tensorize should name the intrinsic tmm16.")
    nests = {
        block.name_hint: [loop_text(loop) for loop in loops] for block, loops in blocks_of(function)
    }
    update = next((loops for name, loops in nests.items() if name.endswith("_o_update")), None)
    if update != TILES:
        raise Wrong(
            f"Around the call there should be 4 x 4 x 4 tiles: {', '.join(TILES)}; "
            f"there are {', '.join(update or ['none'])}."
        )
    return "64 calls of tmm16 compute the product, 16 x 16 x 16 multiplications each."


SIDE = 64
ROWS = (16, 4)
"""What one step of the instruction takes of the weights."""


def pack_weights(variables: Mapping[str, Any]) -> str:
    """Weights that a program packs for an instruction of processors."""
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


CALLS = {
    "init": "tvm_fill_fragment",
    "load_a, load_b": "tvm_load_matrix_sync",
    "compute": "tvm_mma_sync",
    "store": "tvm_store_matrix_sync",
}
LOADS = 2


def tensor_cores(variables: Mapping[str, Any]) -> str:
    """A linear layer on tensor cores, whose second factor is transposed."""
    schedule = variable(variables, "sch", Schedule, "a Schedule")
    text = schedule.mod.script()
    missing = [parts for parts, call in CALLS.items() if call not in text]
    if not missing and text.count("tvm_load_matrix_sync") < LOADS:
        missing = ["one of load_a, load_b"]
    if missing:
        raise Wrong(f"Still loops: {'; '.join(missing)}. Tensorize each by its instruction.")
    a, b = np.random.default_rng(5).integers(-4, 5, (2, SIDE, SIDE)).astype("float16")
    c = run(schedule.mod, [a, b], np.zeros((SIDE, SIDE), "float32"), "simulated")
    expected = a.astype("float32") @ b.astype("float32").T
    expect("C", c, expected)
    return "Five loops are instructions of tensor cores now, and the layer is right."
