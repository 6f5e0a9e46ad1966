"""Which parallel loops become functions of their own, and what these take."""

import pytest

from mlcweb.lower import lower
from mlcweb.lower import outline_parallel as module
from mlcweb.lower.outline_parallel import outline_parallel
from mlcweb.script import from_source


@pytest.fixture(autouse=True)
def _small_loops_count(monkeypatch):
    monkeypatch.setattr(module, "MIN_OPERATIONS", 0)


def outlined(body, arguments='A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")'):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return outline_parallel(lower(from_source(f"@T.prim_func\ndef main({arguments}):\n{lines}")))


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
}

SERIAL = {
    "one element": "for i in T.parallel(64):\n    B[0] = B[0] + A[i]",
    "an element for four": "for i in T.parallel(64):\n    B[i // 4] = B[i // 4] + A[i]",
    "the last one counts": "for i in T.parallel(64):\n    B[i % 16] = A[i]",
    "the neighbour": "for i in T.parallel(63):\n    B[i + 1] = B[i] + A[i]",
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
