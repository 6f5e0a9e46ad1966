"""Chapter 6: kernels for a GPU that are written thread by thread, run by the simulated one.

Each is checked with random inputs against NumPy, with the barriers that the reader has written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from mlcweb.analysis.threads import is_shared
from mlcweb.ir import Node, TVMError
from mlcweb.ir.transform import PassContext
from mlcweb.ir.visitor import walk
from mlcweb.playground.checks.common import Signature, expect, run, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.playground.gpu.profile import profiles
from mlcweb.tir import PrimFunc
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import constant_value

Array = np.ndarray[Any, Any]
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Puzzle:
    """A kernel to write: the shapes of its inputs and of its output, its launch, its result."""

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    launch: Mapping[str, int]
    expected: Callable[..., Array]
    shares: bool = False

    @property
    def signature(self) -> Signature:
        return [(shape, "float32") for shape in (*self.inputs, self.output)]


def check(name: str, variables: Mapping[str, Any]) -> str:
    """Judge the kernel of a puzzle, which the reader's variable of its name holds."""
    puzzle = PUZZLES[name]
    kernel = variable(variables, name, PrimFunc, "a function with @T.prim_func")
    _check_form(name, kernel, puzzle)
    rng = np.random.default_rng(7)
    for _ in range(ROUNDS):
        inputs = [rng.integers(-9, 10, shape).astype("float32") for shape in puzzle.inputs]
        actual = _run(kernel, inputs, np.full(puzzle.output, np.nan, "float32"))
        out = kernel.parameter_buffers[-1].name
        if np.isnan(actual).any():
            where = ", ".join(str(i) for i in np.argwhere(np.isnan(actual))[0])
            raise Wrong(
                f"{out}[{where}] has no number: no thread writes it, or what is written comes "
                "from memory that nothing was written to."
            )
        expect(out, actual, puzzle.expected(*inputs))
    threads = np.prod([n for tag, n in puzzle.launch.items() if tag.startswith("threadIdx")])
    blocks = np.prod([n for tag, n in puzzle.launch.items() if tag.startswith("blockIdx")])
    grid = f"{blocks:.0f} blocks of {threads:.0f} threads" if blocks > 1 else f"{threads} threads"
    return (
        f"{grid} agree with NumPy on {ROUNDS} random inputs, and no two of them race. "
        f"{_transactions(kernel, name)}"
    )


def _transactions(kernel: PrimFunc, name: str) -> str:
    """What memory makes of the kernel; nothing where no GPU runs it as it is."""
    try:
        [profile] = profiles(kernel, name)
    except TVMError:
        return ""
    costs = [(site, cost) for site, cost in zip(profile.sites, profile.counts, strict=True) if cost]
    sectors = profile.sectors
    least = sum(cost.ideal for site, cost in costs if not site.shared)
    together = (
        "; the bytes of each access lie together"
        if sectors <= least
        else f", where {least:,.0f} would do if the bytes of each access lay together"
    )
    conflict = max((cost.most for site, cost in costs if site.shared), default=1)
    banks = f" One bank of shared memory gives {conflict} words at a time." if conflict > 1 else ""
    return (
        f"Warps make {sectors:,.0f} transactions of 32 bytes with global memory{together}.{banks}"
    )


def _check_form(name: str, kernel: PrimFunc, puzzle: Puzzle) -> None:
    buffers = kernel.parameter_buffers
    signature = [
        (tuple(constant_value(extent) for extent in buffer.shape), str(buffer.dtype))
        for buffer in buffers
    ]
    if signature != puzzle.signature:
        raise Wrong(f"Leave the parameters of {name} as they are: the check calls it with arrays.")
    parts = list(walk(kernel.body))
    launch = dict(filter(None, map(_axis, parts)))
    if launch != puzzle.launch:
        expected = ", ".join(f"{n} along {tag}" for tag, n in puzzle.launch.items())
        there = ", ".join(f"{n} along {tag}" for tag, n in launch.items()) or "none"
        raise Wrong(f"This puzzle is for the launch {expected}; yours is {there}.")
    loads = (part for part in parts if isinstance(part, E.BufferLoad))
    if puzzle.shares and not any(is_shared(load.buffer) for load in loads):
        raise Wrong(
            "The answer should go through shared memory: write to S what the threads of the block "
            "need of each other, wait, and read it from there."
        )


def _axis(part: Node) -> tuple[str, int | float | None] | None:
    """The axis of a loop over blocks or threads, or of a launch, and its extent."""
    if isinstance(part, S.For) and part.thread_binding:
        return part.thread_binding.thread_tag, constant_value(part.extent)
    if isinstance(part, S.AttrStmt) and isinstance(part.node, S.IterVar):
        return part.node.thread_tag, constant_value(part.value)
    return None


def _run(kernel: PrimFunc, inputs: list[Array], output: Array) -> Array:
    """What the kernel writes, with no barriers but its own."""
    try:
        with PassContext(disabled_pass=["tir.ThreadSync"]):
            return run(kernel, inputs, output, "simulated")
    except TVMError as error:
        raise Wrong(error.message, error.span) from None


def _one(n: int) -> dict[str, int]:
    return {"threadIdx.x": n}


def _grid(blocks: int, threads: int) -> dict[str, int]:
    return {"blockIdx.x": blocks, "threadIdx.x": threads}


def _last_three(a: Array) -> Array:
    before = np.concatenate([np.zeros(2, a.dtype), a])
    return before[:-2] + before[1:-1] + before[2:]


def _convolution(a: Array, k: Array) -> Array:
    after = np.concatenate([a, np.zeros(len(k) - 1, a.dtype)])
    return np.lib.stride_tricks.sliding_window_view(after, len(k)) @ k


PUZZLES: Mapping[str, Puzzle] = MappingProxyType(
    {
        "gpu_map": Puzzle(((16,),), (16,), _one(16), lambda a: a + 10),
        "gpu_zip": Puzzle(((16,), (16,)), (16,), _one(16), lambda a, b: a * b),
        "gpu_guard": Puzzle(((10,),), (10,), _one(16), lambda a: a + 10),
        "gpu_broadcast": Puzzle(
            ((6,), (5,)), (6, 5), {"threadIdx.y": 8, "threadIdx.x": 8},
            lambda a, b: a[:, None] + b[None, :],
        ),
        "gpu_blocks": Puzzle(((50,),), (50,), _grid(4, 16), lambda a: a * 2 + 1),
        "gpu_shared": Puzzle(
            ((32,),), (32,), _grid(4, 8), lambda a: a.reshape(4, 8)[:, ::-1].reshape(-1), True
        ),
        "gpu_pooling": Puzzle(((16,),), (16,), _one(16), _last_three, True),
        "gpu_dot": Puzzle(((16,), (16,)), (1,), _one(16), lambda a, b: np.array([a @ b]), True),
        "gpu_conv1d": Puzzle(((32,), (4,)), (32,), _grid(4, 8), _convolution, True),
        "gpu_prefix_sum": Puzzle(((16,),), (16,), _one(16), np.cumsum, True),
        "gpu_axis_sum": Puzzle(((4, 16),), (4,), _grid(4, 16), lambda a: a.sum(1), True),
        "gpu_matmul": Puzzle(
            ((16, 16), (16, 16)), (16, 16),
            {"blockIdx.y": 4, "blockIdx.x": 4, "threadIdx.y": 4, "threadIdx.x": 4},
            lambda a, b: a @ b, True,
        ),
        "gpu_find_race": Puzzle(
            ((64,),), (64,), _grid(4, 16),
            lambda a: np.roll(a.reshape(4, 16), -3, 1).reshape(-1), True,
        ),
    }
)  # fmt: skip
"""The kernels by their names: the puzzles from easy to hard, and one of the lesson before."""
