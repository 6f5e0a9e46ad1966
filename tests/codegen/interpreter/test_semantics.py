"""What the interpreter computes: each type's own arithmetic, and errors for what has no meaning."""

import numpy as np
import pytest

from mlcweb.codegen.errors import AssertionFailed, IndexOutOfBounds
from mlcweb.ir.errors import TVMError
from mlcweb.runtime import build, nd, register_func, remove_global_func
from mlcweb.script import from_source
from mlcweb.script import tir as T


def run(func, *arrays):
    """Call a function with copies of the arrays; return what they hold afterwards."""
    arguments = [nd.array(np.asarray(values)) for values in arrays]
    build(func, "interpreter")(*arguments)
    return [argument.numpy() for argument in arguments]


def test_integers_wrap():
    @T.prim_func
    def main(A: T.Buffer((3,), "int8"), B: T.Buffer((2,), "uint32")):
        A[0] = A[0] + A[1]
        A[1] = A[1] * A[1]
        A[2] = -A[2]
        B[0] = B[0] - B[1]

    a, b = run(main, np.array([100, 100, -128], "int8"), np.array([1, 2], "uint32"))
    assert a.tolist() == [-56, 16, -128]
    assert b.tolist() == [2**32 - 1, 2]


def test_each_operation_rounds_to_its_own_type():
    @T.prim_func
    def main(A: T.Buffer((3,), "float32"), B: T.Buffer((1,), "float64")):
        B[0] = T.cast(A[0] + A[1] - A[0], "float64")

    _, b = run(main, np.array([1e8, 1.0, 0], "float32"), np.zeros(1))
    assert b[0] == 0.0


def test_divisions():
    @T.prim_func
    def main(A: T.Buffer((2,), "int32"), B: T.Buffer((4,), "int32")):
        B[0] = A[0] // A[1]
        B[1] = A[0] % A[1]
        B[2] = T.truncdiv(A[0], A[1])
        B[3] = T.truncmod(A[0], A[1])

    _, b = run(main, np.array([-7, 2], "int32"), np.zeros(4, "int32"))
    assert b.tolist() == [-4, 1, -3, -1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-1.9, -1), (1.9, 1), (300.0, 127), (-1e30, -128), (float("nan"), 0), (float("inf"), 127)],
)
def test_casts_of_floats_round_to_zero_and_saturate(value, expected):
    @T.prim_func
    def main(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "int8")):
        B[0] = T.cast(A[0], "int8")

    assert run(main, np.array([value], "float32"), np.zeros(1, "int8"))[1].tolist() == [expected]


def test_a_choice_computes_only_what_it_takes():
    @T.prim_func
    def main(A: T.Buffer((4,), "int32"), B: T.Buffer((5,), "int32")):
        for i in range(5):
            B[i] = T.if_then_else(i > 0, A[i - 1], -1)

    _, b = run(main, np.arange(4, dtype="int32"), np.zeros(5, "int32"))
    assert b.tolist() == [-1, 0, 1, 2, 3]


def test_minimum_and_maximum_keep_nan():
    @T.prim_func
    def main(A: T.Buffer((2,), "float32"), B: T.Buffer((4,), "float32")):
        B[0] = T.max(A[0], A[1])
        B[1] = T.max(A[1], A[0])
        B[2] = T.min(A[0], A[1])
        B[3] = T.min(A[1], A[0])

    _, b = run(main, np.array([1, np.nan], "float32"), np.zeros(4, "float32"))
    assert np.isnan(b).all()


def test_halves_round_to_even():
    @T.prim_func
    def main(
        A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "float32")
    ):
        for i in range(3):
            B[i] = T.round(A[i])
            C[i] = T.nearbyint(A[i])

    _, b, c = run(main, np.array([0.5, 1.5, -2.5], "float32"), *np.zeros((2, 3), "float32"))
    assert b.tolist() == c.tolist() == [0, 2, -2]


def test_memory_that_was_never_written_shows():
    @T.prim_func
    def main(B: T.Buffer((1,), "float32")):
        Y = T.alloc_buffer((4,), "float32")
        Y[0] = T.float32(1)
        B[0] = Y[1]

    assert np.isnan(run(main, np.zeros(1, "float32"))[0][0])


def test_scalar_parameters_have_their_type():
    @T.prim_func
    def main(x: T.float32, n: T.int32, B: T.Buffer((4,), "float32")):
        for i in range(n):
            B[i] = x * x

    b = nd.array(np.zeros(4, "float32"))
    build(main, "interpreter")(0.1, 3, b)
    assert b.numpy().tolist() == [np.float32(0.1) * np.float32(0.1)] * 3 + [0]


def test_thread_loops_run_every_index():
    @T.prim_func
    def main(B: T.Buffer((12,), "int32")):
        for block in T.thread_binding(3, thread="blockIdx.x"):
            for thread in T.thread_binding(4, thread="threadIdx.x"):
                B[block * 4 + thread] = block * 10 + thread

    (b,) = run(main, np.zeros(12, "int32"))
    assert b.tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]


def test_an_index_out_of_bounds_names_buffer_block_and_line():
    source = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("shift"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi + 1]
"""
    with pytest.raises(IndexOutOfBounds) as caught:
        run(from_source(source), *np.zeros((2, 8), "float32"))
    message = str(caught.value)
    assert 'Reading A[8] in block "shift" is out of bounds: "A" has shape (8,)' in message
    assert ":7:21\n" in message


def test_negative_indices_do_not_wrap_around():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i - 1] = T.float32(0)

    with pytest.raises(IndexOutOfBounds, match=r"Writing A\[-1\]"):
        run(main, np.zeros(8, "float32"))


def test_an_iterator_outside_its_domain_is_an_error():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), order: T.Buffer((9,), "int32")):
        for i in range(9):
            with T.block("B"):
                vi = T.axis.opaque(8, order[i])
                A[vi] = T.float32(1)

    with pytest.raises(IndexOutOfBounds, match='Axis "vi" of block "B" is 8'):
        run(main, np.zeros(16, "float32"), np.arange(9, dtype="int32"))


def test_assertions():
    @T.prim_func
    def main(n: T.int32, A: T.Buffer((4,), "int32")):
        assert n < 5, "n must be small"
        A[0] = n

    array = nd.array(np.zeros(4, "int32"))
    kernel = build(main, "interpreter")
    kernel(3, array)
    assert array.numpy()[0] == 3
    with pytest.raises(AssertionFailed, match="n must be small"):
        kernel(7, array)


def test_external_calls_get_the_memory_that_a_pointer_reaches():
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0:4])
                T.writes(B[vi, 0:4])
                a = T.match_buffer(A[vi, 0:4], (4,), offset_factor=1)
                b = T.match_buffer(B[vi, 0:4], (4,), offset_factor=1)
                T.evaluate(
                    T.call_extern(
                        "test_double", b.access_ptr("w"), a.access_ptr("r"), dtype="int32"
                    )
                )

    def double(out, source):
        out[:4] = 2 * source[:4]
        return 0

    register_func("test_double", double)
    try:
        for target in ("interpreter", "numpy"):
            a, b = nd.array(np.arange(16, dtype="float32").reshape(4, 4)), nd.empty((4, 4))
            build(main, target)(a, b)
            np.testing.assert_array_equal(b.numpy(), 2 * a.numpy())
    finally:
        remove_global_func("test_double")


def test_an_array_over_something_else_than_a_buffers_data_is_refused() -> None:
    @T.prim_func
    def pass_on(A: T.Buffer((8,), "uint8")):
        T.call_packed(
            "take",
            T.tvm_stack_make_array(
                T.address_of(A[0]), T.tvm_stack_make_shape(8), 0, 1, T.uint8(0), 0
            ),
        )

    with pytest.raises(TVMError, match=r"T\.address_of\(A\[0\]\) is not the data of a buffer"):
        build(pass_on, target="interpreter")
