"""Which parallel loops become functions of their own, and what these take."""

import pytest

from mlcweb.lower import lower
from mlcweb.lower import outline_parallel as module
from mlcweb.lower.optimize.accesses import of_distinct_arrays
from mlcweb.lower.outline_parallel import outline_parallel
from mlcweb.script import from_source


@pytest.fixture(autouse=True)
def _small_loops_count(monkeypatch):
    monkeypatch.setattr(module, "MIN_OPERATIONS", 0)


ARRAYS = 'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")'


def outlined(body, arguments=ARRAYS, distinct=True):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    func = lower(from_source(f"@T.prim_func\ndef main({arguments}):\n{lines}"))
    return outline_parallel(of_distinct_arrays(func) if distinct else func)


SHARED = {
    "elementwise": "for i in T.parallel(64):\n    B[i] = A[i] + 1.0",
    "of two loops in one": "for i in T.parallel(64):\n    B[i // 8 * 8 + (7 - i % 8)] = A[i]",
    "updated": "for i in T.parallel(64):\n    B[i] = B[i] + A[i]",
    "with a buffer of its own": (
        "for i in T.parallel(64):\n    t = T.alloc_buffer((1,))\n    t[0] = A[i]\n"
        "    B[i] = t[0] * t[0]"
    ),
    "two elements": (
        "for i in T.parallel(32):\n    B[i * 2] = A[i * 2]\n    B[i * 2 + 1] = A[i] + B[i * 2]"
    ),
    "inner parts": (
        "for i in T.parallel(8):\n    for j in range(8):\n        B[i * 8 + j] = A[i * 8 + j]"
    ),
    "columns": (
        "for i in T.parallel(2):\n    for j, k in T.grid(4, 8):\n"
        "        B[j * 16 + i * 8 + k] = 0.0"
    ),
    "a part that does not divide, under its condition": (
        "for i in T.parallel(3):\n    for j, k in T.grid(6, 4):\n"
        "        if i * 4 + k < 10:\n            B[j * 10 + i * 4 + k] = 0.0"
    ),
    "vectors": "for i in T.parallel(8):\n    B[i * 8:i * 8 + 8] = A[i * 8:i * 8 + 8]",
    "two loops in one, tiled": (
        "for f in T.parallel(16):\n    for j in range(4):\n"
        "        B[f // 8 * 32 + j * 8 + f % 8] = A[f]"
    ),
}

SERIAL = {
    "one element": "for i in T.parallel(64):\n    B[0] = B[0] + A[i]",
    "an element for four": "for i in T.parallel(64):\n    B[i // 4] = B[i // 4] + A[i]",
    "the last one counts": "for i in T.parallel(64):\n    B[i % 16] = A[i]",
    "the neighbour": "for i in T.parallel(63):\n    B[i + 1] = B[i] + A[i]",
    "tiles that overlap": (
        "for i in T.parallel(8):\n    for j in range(8):\n        B[i * 4 + j] = A[i * 4 + j]"
    ),
    "vectors that overlap": "for i in T.parallel(8):\n    B[i * 4:i * 4 + 8] = A[0:8]",
    "tiles that overlap between their parts": (
        "for i in T.parallel(3):\n    for j in range(6):\n"
        "        B[i * 14 + j * 4:i * 14 + j * 4 + 4] = A[0:4]"
    ),
    "tiles that overlap between their vectors": (
        "for i in T.parallel(3):\n    for j in range(3):\n"
        "        B[i * 14 + j * 8:i * 14 + j * 8 + 4] = A[0:4]\n"
        "        B[i * 14 + j * 8 + 4:i * 14 + j * 8 + 8] = A[0:4]"
    ),
    "one iteration": "for i in T.parallel(1):\n    B[i] = A[i]",
    "no mark": "for i in range(64):\n    B[i] = A[i]",
}


@pytest.mark.parametrize("name", SHARED)
def test_loops_with_elements_of_their_own_are_outlined(name):
    assert len(outlined(SHARED[name])) == 1


@pytest.mark.parametrize("name", SERIAL)
def test_loops_whose_iterations_meet_are_not(name):
    assert not outlined(SERIAL[name])


def test_a_place_that_memory_tells_is_taken_for_shared():
    arguments = 'I: T.Buffer((64,), "int32"), B: T.Buffer((64,), "float32")'
    assert not outlined("for i in T.parallel(64):\n    B[I[i]] = 1.0", arguments)


def test_arrays_that_may_overlap_are_taken_to_meet():
    assert not outlined(SHARED["elementwise"], distinct=False)


def test_a_small_loop_stays(monkeypatch):
    monkeypatch.setattr(module, "MIN_OPERATIONS", 1000)
    assert not outlined(SHARED["elementwise"])
    assert outlined("for i in T.parallel(8):\n    for k in range(900):\n        B[i] = B[i] * A[i]")


def test_the_outermost_parallel_loop_is_outlined():
    regions = outlined(
        "for i in T.parallel(8):\n    for j in T.parallel(8):\n        B[i * 8 + j] = A[i * 8 + j]"
    )
    assert [loop.loop_var.name for loop in regions] == ["i"]


def test_what_a_loop_uses_is_captured():
    (region,) = outlined(
        "for k in range(4):\n    for i in T.parallel(16):\n        B[k * 16 + i] = A[k * 16 + i]"
    ).values()
    names = [param.name for param in region.function.params]
    assert names[:2] == ["i_first", "i_last"]
    assert sorted(var.name for var in region.captured) == ["A", "B", "k"]
    assert {b.name for b in region.function.buffer_map.values()} == {"A", "B"}


@pytest.mark.parametrize(("row", "shared"), [(14, True), (13, False)])
def test_a_tile_stored_element_by_element_is_compared_with_those_of_other_iterations(row, shared):
    body = "for i in T.parallel(2):\n" + "".join(
        f"    B[{channel * row + x} + i * 7] = A[i]\n" for channel in range(16) for x in range(7)
    )
    arguments = 'A: T.Buffer((2,), "float32"), B: T.Buffer((224,), "float32")'
    assert bool(outlined(body, arguments)) is shared
