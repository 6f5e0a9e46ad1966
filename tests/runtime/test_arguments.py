"""Which arguments a call takes, beyond what `test_module` shows."""

import numpy as np
import pytest

from mlcweb.runtime import build, nd
from mlcweb.script import tir as T


def test_integers_of_a_32_bit_host_stand_for_64_bits_where_they_are_only_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @T.prim_func
    def add(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64"), C: T.Buffer((4,), "int64")):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + B[vi]

    run = build(add)["add"]
    narrow = [nd.array(np.arange(4, dtype="int32")) for _ in range(3)]
    total = nd.empty((4,), "int64")
    with pytest.raises(TypeError, match="Expected dtype int64 but got int32"):
        run(narrow[0], narrow[1], total)
    monkeypatch.setattr("mlcweb.runtime.arguments.default_integer", lambda: "int32")
    run(narrow[0], narrow[1], total)
    np.testing.assert_array_equal(total.numpy(), [0, 2, 4, 6])
    with pytest.raises(TypeError, match="Expected dtype int64 but got int32"):
        run(narrow[0], narrow[1], narrow[2])


@pytest.mark.parametrize("shape", [(65536, 65536), (2**31, 1)])
def test_symbolic_shapes_with_more_elements_than_indices_reach_are_refused(
    shape: tuple[int, int],
) -> None:
    @T.prim_func
    def first(a: T.handle, b: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "int8")
        B = T.match_buffer(b, (1,), "int8")
        B[0] = A[0, 0]

    values, result = nd.array(np.full((1, 1), 7, "int8")), nd.empty((1,), "int8")
    run = build(first)["first"]
    run(values, result)
    assert result.numpy() == [7]
    values.shape = shape  # the memory of so many elements is not needed to refuse them
    with pytest.raises(ValueError, match="more elements than an index of int32 reaches"):
        run(values, result)
