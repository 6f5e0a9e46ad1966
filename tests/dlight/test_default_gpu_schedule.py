"""DefaultGPUSchedule: each block in threads. The launches expected are those of TVM 0.27."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError
from mlcweb.lower.transform import DefaultGPUSchedule
from mlcweb.script import from_source
from mlcweb.tir.stmt import For, statements_in

SCALED = """
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), C: T.Buffer(({n},), "float32")):
    B = T.alloc_buffer(({n},))
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = B[{n} - 1 - vi] + T.float32(1)
"""
COLUMN_SUMS = """
@T.prim_func
def main(A: T.Buffer((30, 20), "float32"), C: T.Buffer((20,), "float32")):
    for k, i in T.grid(30, 20):
        with T.block("C"):
            vk, vi = T.axis.remap("RS", [k, i])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk, vi]
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((30,), "float32"), C: T.Buffer((), "float32")):
    for k in range(30):
        with T.block("C"):
            vk = T.axis.reduce(30, k)
            with T.init():
                C[()] = T.float32(0)
            C[()] = C[()] + A[vk]
"""


def scheduled(source: str, target: str = "cuda") -> IRModule:
    with tvm.target.Target(target):
        return DefaultGPUSchedule()(IRModule({"main": from_source(source)}))


def launches(mod: IRModule) -> list[int]:
    """The extents of the loops that are bound, from the outside and from the first on."""
    loops = (part for part in statements_in(mod["main"].body) if isinstance(part, For))
    return [int(loop.extent) for loop in loops if loop.thread_binding is not None]


@pytest.mark.parametrize(
    ("source", "target", "threads"),
    [
        (SCALED.format(n=72), "cuda", [1, 72, 1, 72]),
        (SCALED.format(n=600), "metal", [3, 256, 3, 256]),
        (SCALED.format(n=300000), "cuda", [256, 1024, 256, 1024]),
        (COLUMN_SUMS, "cuda", [1, 20]),
        (SUM, "cuda", [1, 1]),
    ],
)
def test_what_is_launched(source: str, target: str, threads: list[int]) -> None:
    mod = scheduled(source, target)
    assert launches(mod) == threads
    assert mod["main"].attrs["tir.is_scheduled"] is True


@pytest.mark.parametrize("source", [SCALED.format(n=600), COLUMN_SUMS, SUM])
def test_numbers(source: str) -> None:
    func = from_source(source)
    mod = scheduled(source, "metal")
    shapes = [tuple(map(int, func.buffer_map[var].shape)) for var in func.params]
    arrays = [np.arange(np.prod(shape), dtype="float32").reshape(shape) % 7 for shape in shapes]
    results = []
    for program, target in ((func, "interpreter"), (mod, "simulated")):
        args = [tvm.nd.array(array) for array in arrays]
        tvm.build(program, target)["main"](*args)
        results.append(args[-1].numpy())
    np.testing.assert_array_equal(*results)


def test_functions_that_are_scheduled_or_for_other_targets_stay() -> None:
    once = scheduled(SUM)
    with tvm.target.Target("cuda"):
        assert DefaultGPUSchedule()(once)["main"] is once["main"]
    assert launches(scheduled(SUM, "llvm")) == []


def test_a_target_is_needed() -> None:
    with pytest.raises(TVMError, match="DefaultGPUSchedule does not know the target"):
        DefaultGPUSchedule()(IRModule({"main": from_source(SUM)}))
