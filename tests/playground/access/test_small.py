"""Smaller programs: the same loops on smaller sizes, or a reason why not."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.ir import IRModule, structural_equal
from mlcweb.playground.access.recording import record
from mlcweb.playground.access.small import (
    NotShrinkable,
    access_count,
    nest,
    scaled,
    smaller,
    smaller_size,
)
from mlcweb.playground.compared import Derivation
from mlcweb.schedule import Schedule
from mlcweb.script import from_source
from mlcweb.tir.buffer import constant_shape
from tests.playground.access.profiles import tiled
from tests.programs import matmul


def shapes(module: IRModule) -> list[tuple[int, ...] | None]:
    return [constant_shape(buffer) for buffer in module["main"].parameter_buffers]


def loops(module: IRModule) -> list[int]:
    recording = record(module, "main")
    return [loop.extent for loop in recording.sites[-1].loops]


def test_sizes_become_smaller_and_loops_stay() -> None:
    module = matmul()
    small = smaller(module, "main", 16, None)
    assert small.sizes == {"128": 16}
    assert shapes(small.module) == [(16, 16)] * 3
    assert nest(small.module["main"]) == nest(module["main"])
    assert shapes(module) == [(128, 128)] * 3


def test_a_smaller_program_computes_what_it_says() -> None:
    from mlcweb.runtime import nd
    from mlcweb.runtime.build import build

    made = tiled(32)
    small = smaller(made.result, "main", 8, made)
    a, b = (np.arange(64, dtype="float32").reshape(8, 8) + n for n in (0, 1))
    c = nd.empty((8, 8))
    build(small.module, "interpreter")["main"](nd.array(a), nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b)


@pytest.mark.parametrize(
    ("factor", "extents"),
    [(4, [16, 4, 16, 4]), (32, [16, 2, 16, 8]), (64, [16, 2, 16, 8]), (1, [16, 16, 16, 1])],
)
def test_a_schedule_is_repeated_with_its_tiles_scaled(factor: int, extents: list[int]) -> None:
    made = tiled(factor)
    small = smaller(made.result, "main", 16, made)
    assert small.replayed
    assert loops(small.module) == extents


def test_sampled_tiles_are_scaled_along() -> None:
    module = matmul()
    schedule = Schedule(module, seed=0)
    block = schedule.get_block("C")
    i, j, k = schedule.get_loops(block)
    factors = schedule.sample_perfect_tile(j, n=3, decision=[4, 8, 4])
    j_0, j_1, j_2 = schedule.split(j, factors=factors)
    schedule.reorder(i, j_0, k, j_1, j_2)
    made = Derivation(schedule.trace, module, schedule.mod)
    assert loops(smaller(made.result, "main", 16, made).module) == [16, 2, 16, 2, 4]


def test_a_schedule_that_needs_its_sizes_is_refused() -> None:
    module = matmul()
    schedule = Schedule(module)
    loop = schedule.get_loops(schedule.get_block("C"))[1]
    schedule.split(loop, factors=[None, 48])  # with a predicate already
    made = Derivation(schedule.trace, module, schedule.mod)
    with pytest.raises(NotShrinkable, match="other loops of sizes up to 16"):
        smaller(made.result, "main", 16, made)


def test_batches_become_smaller_still() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 128, 64), "float32"), B: T.Buffer((16, 128, 64), "float32")):
        for n, i, j in T.grid(16, 128, 64):
            with T.block("B"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                B[vn, vi, vj] = A[vn, vi, vj]
""")
    small = smaller(module, "main", 16, None)
    assert small.sizes == {"128": 16, "64": 16, "16": 2}
    assert shapes(small.module) == [(2, 16, 16)] * 2


def test_a_rim_stays_as_wide() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((130,), "float32"), B: T.Buffer((128,), "float32")):
        for i, d in T.grid(128, 3):
            with T.block("B"):
                vi, vd = T.axis.remap("SR", [i, d])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi + vd]
""")
    small = smaller(module, "main", 16, None)
    assert small.sizes == {"130": 18, "128": 16}
    touched = {element for name, element in record(small.module, "main").elements() if name == "A"}
    assert touched == set(range(18))


def test_symbolic_sizes_become_numbers() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]
""")
    small = smaller(module, "main", 8, None)
    assert small.sizes == {"n": 8}
    assert len(record(small.module, "main").site) == 16


def test_sizes_in_indices_are_not_guessed() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        for i in range(100):
            with T.block("B"):
                vi = T.axis.spatial(100, i)
                B[vi] = A[99 - vi]
""")
    with pytest.raises(NotShrinkable, match="the number 99 stands in an index"):
        smaller(module, "main", 16, None)


def test_a_small_program_stays_as_it_is() -> None:
    module = smaller(matmul(), "main", 16, None).module
    again = smaller(module, "main", 16, None)
    assert again.sizes == {}
    assert structural_equal(again.module, module)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.data())
def test_scaled_factors_multiply_to_the_size(factors: list[int], data: st.DataObject) -> None:
    whole = prod(factors)
    size = data.draw(st.sampled_from([d for d in range(1, whole + 1) if whole % d == 0]))
    found = scaled(factors, size)
    assert prod(found) == size
    assert all(old % new == 0 for old, new in zip(factors, found, strict=True))


@pytest.mark.parametrize(
    ("size", "most", "expected"), [(128, 16, 16), (30, 16, 15), (100, 16, 10), (127, 16, 16)]
)
def test_sizes_are_divisors_where_these_are_not_too_small(
    size: int, most: int, expected: int
) -> None:
    assert smaller_size(size, most) == expected


def test_accesses_are_counted_beforehand() -> None:
    small = smaller(matmul(), "main", 16, None).module
    # At most: the zero is written once in 16 turns only.
    assert access_count(small["main"]) == 16**3 * 5
