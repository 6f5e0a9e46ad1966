"""Which arguments a call takes, beyond what `test_module` shows."""

import numpy as np
import pytest

from mlcweb.ir import IRModule
from mlcweb.runtime import build, nd
from mlcweb.script import from_source
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


@T.prim_func
def chosen(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (T.Select(n < 3 or n > 8, n * 2, n - 1) + 1,), "int32")
    B[0] = A[0]


@pytest.mark.parametrize(("n", "extent"), [(2, 5), (5, 5), (9, 19)])
def test_extents_that_depend_on_conditions_are_checked(n: int, extent: int) -> None:
    run = build(chosen)["chosen"]
    source, result = nd.array(np.full(n, 7, "int32")), nd.empty((extent,), "int32")
    run(source, result)
    assert result.numpy()[0] == 7
    with pytest.raises(ValueError, match=rf"Expected B.shape\[0\] == {extent}"):
        run(source, nd.empty((extent + 1,), "int32"))


LAYOUT = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n, m, s, r, start = T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32", {})
    B = T.match_buffer(b, (n, m), "int32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 10 + {}
"""
TARGETS = ("interpreter", "numpy", "wasm", "llvm -mcpu=host")


def run_layout(layout: str, added: str, target: str) -> np.ndarray:
    a = nd.array(np.arange(12, dtype="int32").reshape(3, 4))
    b = nd.empty((3, 4), "int32")
    build(IRModule({"main": from_source(LAYOUT.format(layout, added))}), target=target)["main"](
        a, b
    )
    return b.numpy() - a.numpy() * 10


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("layout", "added", "expected"),
    [
        ("strides=[s, r]", "s * 100 + r", 401),
        ("strides=[s, 1]", "s", 4),
        ("strides=[m, 1]", "m", 4),
        ("strides=[m, r]", "n - r", 2),
        ("strides=[4, 1]", "0", 0),
        ("elem_offset=start", "start", 0),
        ("strides=[s, r], elem_offset=start, offset_factor=1", "s + start", 4),
    ],
)
def test_symbols_of_a_layout_are_those_of_arrays(
    target: str, layout: str, added: str, expected: int
) -> None:
    assert (run_layout(layout, added, target) == expected).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("strides=[5, 1]", r"Expected A.strides\[0\] == 5 but arrays are compact \(4 for"),
        ("strides=[1, 3]", r"Expected A.strides\[0\] == 1 but arrays are compact \(4 for"),
        ("strides=[n, 1]", r"Expected A.strides\[0\] == 3 but"),
        ("strides=[s, s]", r"Expected A.strides\[1\] == 4 but arrays are compact \(1 for"),
        ("elem_offset=3", "Expected A.elem_offset == 3 but arrays begin at element 0"),
    ],
)
def test_a_buffer_that_is_laid_out_as_no_array_is_refused(
    target: str, layout: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run_layout(layout, "0", target)


@pytest.mark.parametrize("target", TARGETS)
def test_constant_shapes_are_checked_too(target: str) -> None:
    @T.prim_func
    def copy(a: T.handle, B: T.Buffer((3, 4), "int32")):
        A = T.match_buffer(a, (3, 4), "int32", strides=[5, 1])
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    run = build(copy, target=target)["copy"]
    with pytest.raises(ValueError, match=r"Expected A.strides\[0\] == 5"):
        run(nd.empty((3, 4), "int32"), nd.empty((3, 4), "int32"))


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
def test_extents_in_terms_of_others_are_checked(target: str) -> None:
    """In whichever order the arguments come; the value of a choice counts, too."""

    @T.prim_func
    def halves(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (2 * n,))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (T.max(T.if_then_else(n < 0, n * 3, n - 1), 0),))
        for i in range(n - 1):
            C[i] = A[i] + A[n + i] + B[i]

    run = build(halves, target)["halves"]
    a, b, c = (nd.array(np.arange(n, dtype="float32")) for n in (6, 3, 2))
    run(a, b, c)
    assert c.numpy().tolist() == [3, 6]
    with pytest.raises(ValueError, match=r"Expected A.shape\[0\] == 6"):
        run(nd.empty((5,)), b, c)
    with pytest.raises(ValueError, match=r"Expected C.shape\[0\] == 2"):
        run(a, b, nd.empty((3,)))
