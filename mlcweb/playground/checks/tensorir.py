"""The exercises of chapter 2: programs in TensorIR, and schedules of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from mlcweb.ir import IRModule, structural_equal
from mlcweb.playground.checks.common import (
    blocks_of,
    expect,
    loop_text,
    prim_func,
    reduced_axes,
    run,
    variable,
)
from mlcweb.playground.checks.programs import bmm_relu_target
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.schedule import Schedule
from mlcweb.tir.stmt import Block, For


def first_program(variables: Mapping[str, Any]) -> str:
    """B = 2 A + 1 on 128 elements."""
    shape = (128,)
    function = prim_func(variables, "MyModule", "main", [(shape, "float32")] * 2)
    for data in (np.arange(128), np.linspace(-3, 3, 128)):
        a = data.astype("float32")
        b = run(function, [a], np.full(shape, np.nan, "float32"))
        expect(
            "B",
            b,
            2 * a + 1,
            (a + 1, "B is still A + 1. Multiply A[vi] by T.float32(2) first."),
            (2 * (a + 1), "B is 2 * (A + 1): the 1 should be added after the multiplication."),
        )
    return "B is 2 A + 1 for every input tried. The Machine code view shows what became of it."


EXTENT = 128
MEASURED = 5


def jfactor(variables: Mapping[str, Any]) -> str:
    """How the width of a tile changes the time of a matrix product."""
    times = variable(variables, "times", dict, "a dictionary from jfactor to seconds")
    if not times:
        raise Wrong("times is empty: measure some factors and write times[jfactor] = seconds.")
    for factor, seconds in times.items():
        if not isinstance(factor, int) or factor < 1 or EXTENT % factor:
            raise Wrong(
                f"{factor!r} is no divisor of {EXTENT}, so a tile of that width leaves a rest; "
                "take powers of two from 1 to 128."
            )
        if not isinstance(seconds, float | int) or not seconds > 0:
            raise Wrong(
                f"times[{factor}] is {seconds!r}; it should be a number of seconds above 0."
            )
    if len(times) < MEASURED:
        raise Wrong(
            f"You have measured {len(times)} factor(s). Measure at least {MEASURED}, small and "
            "large, so that the shape of the curve shows."
        )
    best = variable(variables, "best", int, "the jfactor with the least time")
    least = min(times, key=lambda factor: times[factor])
    if best != least:
        raise Wrong(f"best is {best}, but among your times that of {least} is the least.")
    worst = max(times, key=lambda factor: times[factor])
    ratio = times[worst] / times[best]
    return (
        f"Of {len(times)} widths {best} is the fastest here, {ratio:.1f} times as fast as {worst}."
    )


def broadcast_add(variables: Mapping[str, Any]) -> str:
    """Adding a row to every row of a matrix."""
    signature = [((4, 4), "int64"), ((4,), "int64"), ((4, 4), "int64")]
    function = prim_func(variables, "MyAdd", "add", signature)
    rng = np.random.default_rng(0)
    cases = [
        (np.arange(16).reshape(4, 4), np.arange(4, 0, -1)),
        (rng.integers(-99, 99, (4, 4)), rng.integers(-99, 99, 4)),
        (np.zeros((4, 4)), np.array([1, 10, 100, 1000])),
    ]
    for case in cases:
        # In a browser NumPy's integers have 32 bits unless told otherwise.
        a, b = (array.astype("int64") for array in case)
        c = run(function, [a, b], np.full((4, 4), -(10**6), "int64"))
        if (c == -(10**6)).any():
            raise Wrong("Some elements of C are never written: the loops must reach all 4 x 4.")
        by_rows = (
            "You add B[vi], one number for each row. NumPy lines shapes up at the last axis, "
            "so the row B is added to every row: it is indexed by the column, B[vj]."
        )
        copied = "C is a copy of A so far. Add the element of B that belongs to it."
        expect("C", c, a + b, (a + b[:, None], by_rows), (a, copied))
    return "C equals NumPy's a + b for three pairs of inputs."


DATA, WEIGHT, OUT = (1, 1, 8, 8), (2, 1, 3, 3), (1, 2, 6, 6)


def conv2d(variables: Mapping[str, Any]) -> str:
    """A convolution in two dimensions, NCHW, stride 1, no padding."""
    signature = [(DATA, "int64"), (WEIGHT, "int64"), (OUT, "int64")]
    function = prim_func(variables, "MyConv", "conv", signature)
    blocks = [block for block, _ in blocks_of(function)]
    if not any(reduced_axes(block) for block in blocks):
        raise Wrong(
            "No block has a reduction axis. The output sums over di, dj and q, so these three axes "
            'are "R" in T.axis.remap, and the other four are "S".'
        )
    rng = np.random.default_rng(0)
    cases = [
        (np.arange(64).reshape(DATA), np.arange(18).reshape(WEIGHT)),
        (rng.integers(-9, 9, DATA), rng.integers(-9, 9, WEIGHT)),
        (np.ones(DATA), np.eye(3) * np.ones(WEIGHT)),
    ]
    for case in cases:
        # In a browser NumPy's integers have 32 bits unless told otherwise.
        data, weight = (array.astype("int64") for array in case)
        expected = _convolution(data, weight)
        poison = np.full(OUT, 10**6, "int64")
        out = run(function, [data, weight], poison)
        expect(
            "The output",
            out,
            expected,
            (
                expected + poison,
                "The sums are right, but they are added to what the output held before. Set it to "
                "zero in a `with T.init():` at the head of the block.",
            ),
            (
                _convolution(data, weight[:, :, ::-1, ::-1]),
                "The kernel is flipped: element (di, dj) of it meets A at (vi+di, vj+dj).",
            ),
            (
                _convolution(data, weight.swapaxes(2, 3)),
                "di and dj are exchanged: di goes with rows (vi), dj with columns (vj).",
            ),
        )
    return "The output equals the convolution that NumPy computes for three pairs of inputs."


def _convolution(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(data, weight.shape[2:], axis=(2, 3))
    return np.einsum("bqijde,kqde->bkij", windows, weight)


def bmm_relu(variables: Mapping[str, Any]) -> str:
    """Transforming a batched product with ReLU into a given program."""
    module = variable(variables, "sch", Schedule, "a Schedule").mod
    expected = bmm_relu_target()
    if structural_equal(module, expected):
        return "sch.mod is the target program, statement for statement."
    yours, target = _nests(module), _nests(expected)
    if missing := [name for name in target if name not in yours]:
        raise Wrong(_about_blocks(list(yours), missing))
    if _shared(yours)["Y_update", "C"] == 0:
        raise Wrong(
            "Block C is still in loops of its own, after all of Y. In the target it is where its "
            "tile has just been made: sch.reverse_compute_at(C, loop)."
        )
    for name, (block, loops) in target.items():
        _compare_loops(name, yours[name][1], loops)
        if not structural_equal(yours[name][0].body, block.body, map_free_vars=True):
            raise Wrong(f"Block {name} computes something else than in the target program.")
    mine, theirs = _shared(yours), _shared(target)
    for pair, count in theirs.items():
        if mine[pair] != count:
            first, second = pair
            raise Wrong(
                f"Blocks {first} and {second} share {mine[pair]} loop(s); in the target they share "
                f"{count}. Which loop does decompose_reduction or reverse_compute_at name?"
            )
    raise Wrong(
        f"The loops are those of the target, but not all else:\n{_first_line(module, expected)}"
    )


Nests = dict[str, tuple[Block, tuple[For, ...]]]


def _nests(module: IRModule) -> Nests:
    [function] = module.functions.values()
    return {block.name_hint: (block, loops) for block, loops in blocks_of(function)}


def _about_blocks(names: list[str], missing: list[str]) -> str:
    if "Y" in names and "Y_init" in missing:
        return (
            "Block Y still has its initial value inside. The target sets it in a block of its own, "
            "Y_init: sch.decompose_reduction(Y, loop) does that, before the loop that it names."
        )
    return f"The target has a block {missing[0]}; yours are {', '.join(names)}."


def _compare_loops(name: str, yours: tuple[For, ...], target: tuple[For, ...]) -> None:
    mine, theirs = [[loop_text(loop) for loop in loops] for loops in (yours, target)]
    if mine == theirs:
        return
    nest = f"\nyours:  {' → '.join(mine)}\ntarget: {' → '.join(theirs)}"
    for position, (have, want) in enumerate(zip(mine, theirs, strict=False), 1):
        if have != want:
            raise Wrong(
                f"First difference: loop {position} around block {name} is {have}, "
                f"the target has {want}.{nest}"
            )
    raise Wrong(
        f"First difference: block {name} is inside {len(mine)} loops, "
        f"in the target inside {len(theirs)}.{nest}"
    )


def _shared(nests: Nests) -> dict[tuple[str, str], int]:
    """For pairs of blocks that follow each other, how many loops are around both."""
    names = ["Y_init", "Y_update", "C"]
    return {
        (one, two): sum(loop in nests[two][1] for loop in nests[one][1])
        for one, two in pairwise(names)
    }


def _first_line(module: IRModule, expected: IRModule) -> str:
    texts = module.script().splitlines(), expected.script().splitlines()
    for mine, theirs in zip(*texts, strict=False):
        if mine != theirs:
            return f"yours:  {mine.strip()}\ntarget: {theirs.strip()}"
    return ""
