"""Arrays that share memory are one memory for a kernel, wherever they lie; or a clear error."""

import numpy as np
import pytest

from mlcweb.runtime import build, cpu, from_dlpack, nd
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.script import from_source

TARGETS = ["interpreter", "numpy", *(["wasm"] if available() else [])]
TARGETS += ["llvm -mcpu=host"] if has_llvm() else []

TEXT = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": ALONE})
    for i in range(7):
        B[i + 1] = A[i] + 1
"""
SHARED, ALONE = (from_source(TEXT.replace("ALONE", text)) for text in ("False", "True"))

READER = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    T.func_attr({"tir.noalias": True})
    for i in range(8):
        C[i] = A[i] * 10 + B[i]
""")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("borrowed", [False, True])
def test_one_array_passed_twice(target, borrowed):
    values = np.zeros(8, "int32")
    array = from_dlpack(values) if borrowed else nd.array(values)
    build(SHARED, target)["main"](array, array)
    assert array.numpy().tolist() == list(range(8))


@pytest.mark.parametrize("target", TARGETS)
def test_views_of_one_array_that_overlap_in_part(target):
    memory = np.zeros(12, "int32")
    a, b = from_dlpack(memory[2:10]), from_dlpack(memory[:8])
    build(SHARED, target)["main"](a, b)
    # B[i + 1] is A[i - 1]: every sum is of what has not been written yet.
    assert memory.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    memory[:] = 0
    a, b = from_dlpack(memory[:8]), from_dlpack(memory[1:9])
    build(SHARED, target)["main"](a, b)
    # B[i + 1] is A[i + 2]: sums build upon each other.
    assert memory.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 0, 0, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_a_view_of_an_array_of_ours(target):
    array = nd.array(np.zeros(8, "int32"))
    build(SHARED, target)["main"](array, from_dlpack(array))
    assert array.numpy().tolist() == list(range(8))


@pytest.mark.parametrize("target", TARGETS)
def test_overlap_breaks_the_promise_of_noalias(target):
    memory = np.zeros(12, "int32")
    lib = build(ALONE, target)
    with pytest.raises(ValueError, match='A and B share memory, but "main" is declared'):
        lib["main"](from_dlpack(memory[2:10]), from_dlpack(memory[:8]))
    array = nd.array(memory[:8])
    with pytest.raises(ValueError, match='A and B are the same array, but "main" is declared'):
        lib["main"](array, array)
    lib["main"](from_dlpack(memory[:8]), nd.array(memory[4:]))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_only_read_may_overlap(target):
    memory = np.arange(12, dtype="int32")
    c = nd.empty((8,), "int32")
    build(READER, target)["main"](from_dlpack(memory[:8]), from_dlpack(memory[4:]), c)
    assert c.numpy().tolist() == [11 * i + 4 for i in range(8)]


@pytest.mark.parametrize("target", TARGETS)
def test_neighbours_do_not_overlap(target):
    memory = np.zeros(16, "int32")
    build(ALONE, target)["main"](from_dlpack(memory[:8]), from_dlpack(memory[8:]))
    assert memory.tolist() == [0] * 9 + [1] * 7


@pytest.mark.parametrize("target", TARGETS)
def test_empty_arrays_share_nothing(target):
    func = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    T.func_attr({"tir.noalias": True})
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    for i in range(n):
        B[i] = A[i]
""")
    empty = from_dlpack(np.zeros(0, "int32"))
    build(func, target)["main"](empty, empty)
    build(func, target)["main"](nd.empty((0,), "int32"), from_dlpack(np.zeros(0, "int32")))


@pytest.mark.parametrize("target", TARGETS)
def test_a_read_only_array_is_copied_when_it_comes_in(target):
    values = np.arange(8, dtype="int32")
    values.flags.writeable = False
    try:
        array = from_dlpack(values)
    except BufferError:
        pytest.skip("this NumPy exports no read-only arrays")
    build(SHARED, target)["main"](array, array)
    assert values.tolist() == list(range(8))


@pytest.mark.skipif(not available(), reason="no WebAssembly engine")
def test_code_is_made_for_distinct_arrays_and_timed_for_those_that_are_given():
    lanes = from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i_0 in range(16):
        for i_1 in T.vectorized(4):
            B[i_0 * 4 + i_1] = A[i_0 * 4 + i_1] + T.float32(1)
""")
    built = build(lanes, "wasm")
    assert "f32x4.add" in built.get_source()
    array = nd.array(np.zeros(64, "float32"))
    built.time_evaluator("main", cpu(), number=1)(array, array)
    assert len({*array.numpy()}) == 1
    assert array.numpy()[0] > 1
