"""`te.create_prim_func`: the programs are those that TVM 0.27 makes of the same tensors."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te
from mlcweb.script import tir as T


def same(tensors, expected, **options):
    func = te.create_prim_func(tensors, **options)
    tvm.ir.assert_structural_equal(func, expected.with_attr("global_symbol", "main"))
    return func


def run(func, *arrays):
    arguments = [tvm.nd.array(array) for array in arrays]
    tvm.build(func)["main"](*arguments)
    return arguments[-1].numpy()


def test_matmul_and_relu():
    @T.prim_func
    def expected(
        A: T.Buffer((128, 64), "float32"),
        B: T.Buffer((64, 32), "float32"),
        D: T.Buffer((128, 32), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        C = T.alloc_buffer((128, 32))
        for i, j, k in T.grid(128, 32, 64):
            with T.block("C"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[v_i, v_j] = T.float32(0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
        for i, j in T.grid(128, 32):
            with T.block("D"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                D[v_i, v_j] = T.max(C[v_i, v_j], T.float32(0))

    A = te.placeholder((128, 64), name="A")
    B = te.placeholder((64, 32), name="B")
    k = te.reduce_axis((0, 64), "k")
    C = te.compute((128, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((128, 32), lambda i, j: te.max(C[i, j], 0.0), name="D")
    func = same([A, B, D], expected)
    a, b = np.random.default_rng(0).standard_normal((2, 64, 128), dtype="float32")
    a, b = a.T.copy(), b[:, :32].copy()
    got = run(func, a, b, np.zeros((128, 32), "float32"))
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_several_outputs_share_their_loops():
    @T.prim_func
    def expected(
        A: T.Buffer((4, 6), "float32"),
        X: T.Buffer((4, 6), "float32"),
        Y: T.Buffer((4, 6), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(4, 6):
            with T.block("XY_v0"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                X[v_i, v_j] = A[v_i, v_j] + T.float32(1)
            with T.block("XY_v1"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Y[v_i, v_j] = A[v_i, v_j] * T.float32(2)

    A = te.placeholder((4, 6), name="A")
    X, Y = te.compute((4, 6), lambda i, j: (A[i, j] + 1, A[i, j] * 2), name="XY")
    func = same([A, X, Y], expected)
    assert [buffer.name for buffer in func.parameter_buffers] == ["A", "XY_v0", "XY_v1"]


def test_argmax_is_a_reduction_of_pairs():
    @T.prim_func
    def expected(
        idx: T.Buffer((8, 5), "int32"),
        A: T.Buffer((8, 5), "float32"),
        T_v0: T.Buffer((8,), "int32"),
        T_v1: T.Buffer((8,), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        for i, k in T.grid(8, 5):
            with T.block("T"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(A[v_i, v_k], idx[v_i, v_k])
                T.writes(T_v0[v_i], T_v1[v_i])
                with T.init():
                    T_v0[v_i] = -1
                    T_v1[v_i] = T.min_value("float32")
                a: T.int32 = T.Select(T_v1[v_i] >= A[v_i, v_k], T_v0[v_i], idx[v_i, v_k])
                b: T.float32 = T.Select(T_v1[v_i] >= A[v_i, v_k], T_v1[v_i], A[v_i, v_k])
                T_v0[v_i] = a
                T_v1[v_i] = b

    def combine(x, y):
        first = x[1] >= y[1]
        return tvm.tir.Select(first, x[0], y[0]), tvm.tir.Select(first, x[1], y[1])

    argmax = te.comm_reducer(
        combine, lambda i, v: (tvm.tir.const(-1, i), te.min_value(v)), name="argmax"
    )
    idx, A = te.placeholder((8, 5), "int32", "idx"), te.placeholder((8, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    best = te.compute((8,), lambda i: argmax((idx[i, k], A[i, k]), axis=k), name="T")
    func = same([idx, A, *best], expected)
    values = np.random.default_rng(1).standard_normal((8, 5), dtype="float32")
    positions = tvm.nd.array(np.zeros(8, "int32"))
    index = np.broadcast_to(np.arange(5, dtype="int32"), (8, 5)).copy()
    tvm.build(func)["main"](
        tvm.nd.array(index), tvm.nd.array(values), positions, tvm.nd.array(np.zeros(8, "float32"))
    )
    assert positions.numpy().tolist() == values.argmax(1).tolist()


def test_symbolic_shapes():
    @T.prim_func
    def expected(a: T.handle, e: T.handle):
        T.func_attr({"tir.noalias": True})
        n, m = T.int64(), T.int32()
        A = T.match_buffer(a, (n, m))
        E = T.match_buffer(e, (m, n))
        for i0, i1 in T.grid(m, n):
            with T.block("E"):
                v_i0 = T.axis.spatial(m, i0)
                v_i1 = T.axis.spatial(n, i1)
                E[v_i0, v_i1] = A[v_i1, v_i0]

    n, m = te.var("n", "int64"), te.var("m")
    A = te.placeholder((n, m), name="A")
    same([A, te.compute((m, n), lambda *i: A(*i[::-1]), name="E")], expected)


def test_reduction_axis_that_does_not_start_at_zero_and_scalar_output():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((2, 5), "k")
    func = te.create_prim_func([A, te.compute((), lambda: te.max(A[k, k], axis=k), name="M")])
    values = np.random.default_rng(2).standard_normal((6, 8), dtype="float32")
    assert run(func, values, np.zeros((), "float32")) == values.diagonal()[2:5].max()


def test_condition_and_initial_value_of_a_reduction_count():
    # TVM drops both without a word.
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k, where=k > 3, init=2.0), name="B")
    values = np.random.default_rng(3).standard_normal((6, 8), dtype="float32")
    got = run(te.create_prim_func([A, B]), values, np.zeros(6, "float32"))
    np.testing.assert_allclose(got, values[:, 4:].sum(1) + 2, rtol=1e-5)


def test_intermediate_output_is_written_once_and_order_follows_dependences():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] * 2.0, name="C")
    D = te.compute((4,), lambda i: C[i] + A[i], name="D")
    func = te.create_prim_func([D, A, C])
    d, a, c = (tvm.nd.array(np.arange(4, dtype="float32")) for _ in range(3))
    tvm.build(func)["main"](d, a, c)
    assert d.numpy().tolist() == [0, 3, 6, 9]
    assert c.numpy().tolist() == [0, 2, 4, 6]


def test_wide_indices():
    @T.prim_func
    def expected(
        A: T.Buffer((T.int64(4), T.int64(6)), "float32"),
        B: T.Buffer((T.int64(4), T.int64(6)), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(T.int64(4), T.int64(6)):
            with T.block("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                B[v_i, v_j] = A[v_i, v_j] + T.Cast("float32", v_j)

    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + j.astype("float32"), name="B")
    same([A, B], expected, index_dtype_override="int64")


def test_what_is_wide_is_not_cast_to_be():
    A = te.placeholder((tvm.tir.const(8, "int64"),), name="A")
    B = te.compute(
        (8,), lambda i: A[tvm.tir.Cast("int64", i) % tvm.tir.const(4, "int64")], name="B"
    )
    func = te.create_prim_func([A, B], index_dtype_override="int64")
    assert "B[v_i] = A[v_i % T.int64(4)]" in func.script()


def test_indices_that_are_rounded_are_wide_from_the_rounding_on():
    A, x = te.placeholder((8,), name="A"), te.placeholder((4,), name="x")
    B = te.compute((4,), lambda i: A[te.max(te.min(tvm.tir.Cast("int32", x[i]), 7), 0)], name="B")
    func = te.create_prim_func([A, x, B], index_dtype_override="int64")
    index = 'A[T.max(T.min(T.Cast("int64", x[v_i]), T.int64(7)), T.int64(0))]'
    assert f"B[v_i] = {index}" in func.script()
    inputs = np.arange(8, dtype="float32"), np.array([-3, 2.5, 7, 1e6], "float32")
    assert run(func, *inputs, np.zeros(4, "float32")).tolist() == [0, 2, 7, 7]


def test_fewer_indices_than_dimensions_and_rest_arguments():
    A = te.placeholder((3,), name="A")
    B = te.compute((3, 2), lambda i: A[i], name="B")
    assert [axis.var.name for axis in B.op.axis] == ["i", "i0"]
    C = te.compute((3, 2, 2), lambda i, *rest: A[i] + rest[0] * 10 + rest[1], name="C")
    got = run(te.create_prim_func([A, C]), np.ones(3, "float32"), np.zeros((3, 2, 2), "float32"))
    assert got[2].tolist() == [[1, 2], [11, 12]]


def test_equal_names_stay_apart():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="A")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="A")
    func = te.create_prim_func([A, C])
    assert 'T.block("A_1")' in func.script()
    assert run(func, np.ones(4, "float32"), np.zeros(4, "float32")).tolist() == [4] * 4


def test_extern_calls_a_function():
    @tvm.register_func("test.te.twice", override=True)
    def twice(source, target):
        target.copyfrom(source.numpy() * 2)

    A = te.placeholder((4, 2), name="A")
    B = te.compute((4, 2), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.extern(
        (4, 2),
        [B],
        lambda ins, outs: tvm.tir.call_packed("test.te.twice", ins[0], outs[0]),
        name="C",
    )
    D = te.compute((4, 2), lambda i, j: C[i, j] - 1.0, name="D")
    func = te.create_prim_func([A, D])
    assert "T.writes(C[0:4, 0:2])" in func.script()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda A, k: te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1.0), "whole element"),
        (lambda A, k: te.compute((4,), lambda i, j: A[i, j]), r"1 dimension\(s\)"),
        (lambda A, k: te.compute((4,), lambda i: None), "returned nothing"),
        (lambda A, k: te.compute((4,), lambda i: A), "index it"),
        (lambda A, k: te.compute((4,), lambda i: A[i]), r"1 index\(es\) given"),
        (lambda A, k: te.compute((4,), lambda i: A[i, 0:2]), "strided_slice"),
        (lambda A, k: te.compute((4,), lambda i: A[i, k, 0]), r"3 index\(es\) given"),
        (lambda A, k: te.create_prim_func([A]), "nothing to compute"),
        (lambda A, k: te.create_prim_func([A, "B"]), "not str"),
        (
            lambda A, k: te.create_prim_func([te.compute((4,), lambda i: A[i, 0], name="B")]),
            'placeholder "A" is read',
        ),
        (lambda A, k: te.reduce_axis((1, 2, 3)), "begin to end"),
    ],
)
def test_refusals(build, message):
    A = te.placeholder((4, 8), name="A")
    with pytest.raises(tvm.TVMError, match=message):
        build(A, te.reduce_axis((0, 8), "k"))


def test_inputs_and_names_of_operations():
    A = te.placeholder((4,), name="A")
    B = te.placeholder((4,), name="B")
    C = te.compute((4,), lambda i: B[i] * A[i] + B[i], name="C", tag="t", attrs={"x": 1})
    assert [tensor.name for tensor in C.op.input_tensors] == ["B", "A"]
    assert (C.op.tag, C.op.attrs, C.ndim, C.dtype) == ("t", {"x": 1}, 1, "float32")
    assert repr(C) == "Tensor(shape=[4], op.name=C)"


def test_bodies_of_operations_print() -> None:
    """`print(B.op.body)`: a tuple, whose elements are expressions over elements of tensors."""
    A = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4,), lambda i: te.sum(A[i, k] * 2.0, axis=k), name="C")
    assert str(B.op.body) == "(A[i, j] + T.float32(1),)"
    assert str(C.op.body) == "(reduce(A[i, k] * T.float32(2), axis=[k]),)"


def test_a_shape_of_relax_is_a_shape():
    shape = relax.ShapeExpr([2, 3])
    a = te.placeholder(shape, "float32", "A")
    b = te.compute(shape, lambda i, j: a[i, j] + 1, "B")
    assert [int(extent) for extent in b.shape] == [2, 3]


def test_the_layout_of_intermediate_tensors_is_free_at_their_consumer():
    """Of parameters the function says it, by their positions; both as in TVM."""
    a, b = (te.placeholder((8, 8), name=name) for name in "AB")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute(
        (8, 8),
        lambda x, y: te.sum(a[x, k] * b[y, k], axis=k),
        name="C",
        attrs={"layout_free_placeholders": [b]},
    )
    d = te.compute(
        (8, 8), lambda x, y: c[x, y] + 1, name="D", attrs={"layout_free_placeholders": [c]}
    )
    for index_dtype in (None, "int64"):
        func = te.create_prim_func([a, b, d], index_dtype)
        assert func.attrs["layout_free_buffers"] == [1]
        root = func.body.block
        of_c, of_d = (nest.body.body for nest in root.body.seq)
        assert "layout_free_placeholders" not in of_c.body.block.annotations
        assert of_d.block.annotations["layout_free_placeholders"] == [root.alloc_buffers[0]]
        tvm.ir.assert_structural_equal(func, tvm.script.from_source(func.script()))


@pytest.mark.parametrize("order", [1, -1])
def test_extents_that_depend_on_other_axes(order):
    """The loops come outermost first, however the axes are listed, and may be empty."""
    x = te.placeholder((4, 3, 5, 5), name="x")

    def triangle(i, j):
        first = te.reduce_axis((0, i), "first")
        second = te.reduce_axis((first.var, first.var + 2), "second")
        return te.sum(x[i, j, first, second], axis=[first, second][::order])

    func = te.create_prim_func([x, te.compute((4, 3), triangle, name="y")])
    values = np.random.default_rng(0).random((4, 3, 5, 5)).astype("float32")
    expected = np.zeros((4, 3))
    for i, j in np.ndindex(4, 3):
        expected[i, j] = sum(values[i, j, a, a : a + 2].sum() for a in range(i))
    np.testing.assert_allclose(run(func, values, np.ones((4, 3), "float32")), expected, 1e-6)
    tvm.ir.assert_structural_equal(func, tvm.script.from_source(func.script()))
