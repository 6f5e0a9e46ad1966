"""Operators that move, join, cut and pick elements, against NumPy."""

import numpy as np
import pytest

from mlcweb import relax, runtime, tir
from mlcweb.ir.module import IRModule
from mlcweb.relax import op
from mlcweb.script import relax as R
from mlcweb.script import tir as T


def cases(*pairs):
    return pytest.mark.parametrize(("build", "reference"), pairs)


@cases(
    (lambda x: op.permute_dims(x), lambda x: x.transpose()),
    (lambda x: op.permute_dims(x, [1, -1, 0]), lambda x: x.transpose(1, 2, 0)),
    (lambda x: op.reshape(x, (4, 6)), lambda x: x.reshape(4, 6)),
    (lambda x: op.reshape(x, (0, -1)), lambda x: x.reshape(2, -1)),
    (lambda x: op.reshape(x, relax.ShapeExpr([24])), lambda x: x.reshape(24)),
    (lambda x: op.flatten(x), lambda x: x.reshape(-1)),
    (lambda x: op.nn.batch_flatten(x), lambda x: x.reshape(2, 12)),
    (lambda x: op.expand_dims(x, 1), lambda x: x[:, None]),
    (lambda x: op.expand_dims(x, [0, -1]), lambda x: x[None, ..., None]),
    (lambda x: op.squeeze(op.expand_dims(x, [0, 2])), lambda x: x),
    (lambda x: op.squeeze(op.expand_dims(x, [0, 2]), -3), lambda x: x[None]),
    (lambda x: op.squeeze(x, 1), lambda x: x),
    (lambda x: op.broadcast_to(x, (5, 2, 3, 4)), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    (lambda x: op.tile(x, 2), lambda x: np.tile(x, 2)),
    (lambda x: op.tile(x, (2, 1, 3, 1)), lambda x: np.tile(x, (2, 1, 3, 1))),
    (lambda x: op.repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1)),
    (lambda x: op.repeat(x, 2), lambda x: np.repeat(x, 2)),
    (lambda x: op.flip(x, -2), lambda x: np.flip(x, 1)),
    (lambda x: op.tril(x), np.tril),
    (lambda x: op.triu(x, 1), lambda x: np.triu(x, 1)),
    (lambda x: op.tril(x, -1), lambda x: np.tril(x, -1)),
    (lambda x: op.strided_slice(x, [1], [1], [3]), lambda x: x[:, 1:3]),
    (lambda x: op.strided_slice(x, [0, 2], [0, -1], [9, 0], [1, -2]), lambda x: x[0:9, :, -1:0:-2]),
    (lambda x: op.strided_slice(x, [1], [-2], [-1]), lambda x: x[:, -2:-1]),
    (lambda x: op.strided_slice(x, [1], [2], [1]), lambda x: x[:, 2:1]),
    (lambda x: op.strided_slice(x, [-1], [0], [4], [3], True), lambda x: x[..., ::3]),
    (lambda x: op.layout_transform(x, lambda a, b, c: (c, a, b)), lambda x: x.transpose(2, 0, 1)),
    (
        lambda x: op.layout_transform(x, lambda a, b, c: (a, c // 2, b, c % 2)),
        lambda x: x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3),
    ),
    (
        lambda x: op.layout_transform(x, lambda a, b, c: (a, b // 2, c, b % 2), pad_value=7),
        lambda x: np.pad(x, ((0, 0), (0, 1), (0, 0)), constant_values=7)
        .reshape(2, 2, 2, 4).transpose(0, 1, 3, 2),
    ),
)  # fmt: skip
def test_of_one_tensor(build, reference, check, random):
    x = random(2, 3, 4)
    check(build, [x], np.ascontiguousarray(reference(x)))


@cases(
    (lambda x: op.concat([x, x, x], 1), lambda x: np.concatenate([x, x, x], 1)),
    (lambda x: op.concat((x, x)), lambda x: np.concatenate([x, x], 0)),
    (lambda x: op.stack([x, x], -1), lambda x: np.stack([x, x], -1)),
    (lambda x: op.stack([x, x], 1), lambda x: np.stack([x, x], 1)),
    (lambda x: op.split(x, 2, 1), lambda x: np.split(x, 2, 1)),
    (lambda x: op.split(x, [1, 3], -1), lambda x: np.split(x, [1, 3], -1)),
    (lambda x: op.split(x, [1, 3, 9], 1), lambda x: np.split(x, [1, 3, 9], 1)),
    (lambda x: op.split(x, 3, 1), lambda x: [x[:, :2], x[:, 2:4], x[:, 4:]]),
    (lambda x: op.split(x, 1, 1), lambda x: [x]),
    (lambda x: op.split(x, 2, 1)[1], lambda x: x[:, 2:]),
)  # fmt: skip
def test_joining_and_cutting(build, reference, check, random):
    x = random(3, 4)
    check(build, [x], reference(x))


def test_a_tuple_variable_is_joined():
    info = relax.TensorStructInfo((2, 3), "float32")
    pair = relax.Var("pair", relax.TupleStructInfo([info, info]))
    builder = relax.BlockBuilder()
    with builder.function("main", [pair]):
        builder.emit_func_output(builder.emit(op.concat(pair)))
    lowered = relax.transform.LegalizeOps()(builder.get())
    assert "pair[0]" in lowered.script()
    assert [int(b.shape[0]) for b in lowered["concatenate"].parameter_buffers] == [2, 2, 4]
    assert relax.analysis.well_formed(lowered)


def test_tensors_without_elements(check, random):
    x = random(0, 3)
    check(lambda v: op.concat([v, v], 1), [x], np.zeros((0, 6), "float32"))
    check(lambda v: op.reshape(v, (3, 0)), [x], np.zeros((3, 0), "float32"))
    check(lambda v: op.permute_dims(v), [x], np.zeros((3, 0), "float32"))
    check(lambda v: op.tile(v, (2, 2)), [x], np.zeros((0, 6), "float32"))


def test_meshgrid(check, random):
    a, b = random(2), random(3)
    for indexing in ("ij", "xy"):
        check(
            lambda x, y, i=indexing: op.meshgrid([x, y], i), [a, b],
            [np.ascontiguousarray(g) for g in np.meshgrid(a, b, indexing=indexing)],
        )  # fmt: skip


INDICES = np.array([[4, 0, 2], [1, 1, 3]], "int64")


@cases(
    (lambda x, i: op.take(x, i, 0), lambda x, i: np.take(x, i, 0)),
    (lambda x, i: op.take(x, i, -1), lambda x, i: np.take(x, i, -1)),
    (lambda x, i: op.take(x, i, 1, "clip"), lambda x, i: np.take(x, i, 1, mode="clip")),
    (lambda x, i: op.gather_nd(x, op.reshape(i, (3, 2))), lambda x, i: x[tuple(i.reshape(3, 2).T)]),
    (lambda x, i: op.index_tensor(x, [i]), lambda x, i: x[i]),
    (lambda x, i: op.index_tensor(x, [i, i]), lambda x, i: x[i, i]),
)
def test_picking(build, reference, check, random):
    x = random(5, 5, 5)
    check(build, [x, INDICES], reference(x, INDICES))


def test_gather_elements_and_vectors(check, random):
    x = random(5, 3)
    check(lambda v, i: op.gather_elements(v, i), [x, INDICES], np.take_along_axis(x, INDICES, 0))
    low = INDICES % 3
    check(lambda v, i: op.gather_elements(v, i, 1), [x[:2], low],
          np.take_along_axis(x[:2], low, 1))  # fmt: skip
    check(lambda v, i: op.take(v, i), [x[:, 0].copy(), INDICES], x[:, 0][INDICES])
    check(lambda v: op.take(v, relax.const(2, "int64"), 0), [x], x[2])


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "min", "max"])
def test_scatter_elements(reduction, check, random):
    x, new = random(5, 3), random(2, 3)
    combine = {
        "update": lambda old, value: value, "add": np.add, "mul": np.multiply, "min": np.minimum,
        "max": np.maximum,
    }[reduction]  # fmt: skip
    expected = x.copy()
    for i, j in np.ndindex(2, 3):
        expected[INDICES[i, j], j] = combine(expected[INDICES[i, j], j], new[i, j])
    check(lambda v, i, u: op.scatter_elements(v, i, u, 0, reduction), [x, INDICES, new], expected)


def test_scatter_nd(check, random):
    x, new, where = random(5, 3), random(2, 3), np.array([[4], [1]], "int64")
    expected = x.copy()
    expected[[4, 1]] += new
    check(lambda v, i, u: op.scatter_nd(v, i, u, "add"), [x, where, new], expected)


def test_one_hot(check):
    ids = np.array([[0, 2], [3, 1]], "int64")
    expected = np.eye(5, dtype="float32")[ids]
    check(lambda i: op.one_hot(i, relax.PrimValue(1.0), relax.PrimValue(0.0), 5), [ids],
          expected.astype("float64"))  # fmt: skip
    check(lambda i: op.one_hot(i, 9, -1, 5, 0), [ids],
          np.where(np.moveaxis(expected, -1, 0) > 0, 9, -1).astype("int64"))  # fmt: skip


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: op.zeros((2, 3), "float32"), np.zeros((2, 3), "float32")),
        (lambda: op.ones((4,), "int32"), np.ones(4, "int32")),
        (lambda: op.full((2, 2), 1.5), np.full((2, 2), 1.5, "float32")),
        (lambda: op.full((2,), relax.const(3), "float64"), np.full(2, 3.0)),
        (lambda: op.arange(5), np.arange(5)),
        (lambda: op.arange(1, 10, 3), np.arange(1, 10, 3)),
        (lambda: op.arange(5, 0, -2), np.arange(5, 0, -2)),
        (lambda: op.arange(0, 3.5, 0.5), np.arange(0, 3.5, 0.5, "float32")),
        (lambda: op.arange(3, 3), np.arange(0)),
        (lambda: op.eye(3), np.eye(3, dtype="float32")),
        (lambda: op.eye(3, 4, 1, "int32"), np.eye(3, 4, 1, "int32")),
    ],
)
def test_created(build, expected, check):
    check(build, [], expected)


def test_created_like_another(check, random):
    x = random(2, 3)
    check(lambda v: op.zeros_like(v), [x], np.zeros_like(x))
    check(lambda v: op.ones_like(v, "int32"), [x], np.ones_like(x, "int32"))
    check(lambda v: op.full_like(v, relax.const(2.0)), [x], np.full_like(x, 2))
    check(lambda v: op.size(v), [x], np.asarray(6, "int64"))
    check(lambda v: op.shape_to_tensor(relax.ShapeExpr([2, 3])), [x], np.array([2, 3], "int64"))


@pytest.mark.parametrize("periodic", [False, True])
def test_hamming_window(periodic, check):
    expected = np.hamming(10 + periodic)[:10].astype("float32")
    check(lambda: op.hamming_window(10, periodic, 0.54, 0.46, "float32"), [], expected)


def test_shapes_that_are_deduced_in_part():
    x = relax.Var("x", relax.TensorStructInfo(None, "float32"))
    assert infer(op.concat([x, x], axis=None)).ndim == 1
    shape = relax.Var("s", relax.ShapeStructInfo(ndim=3))
    y = relax.Var("y", relax.TensorStructInfo(shape, "float32"))
    assert infer(op.expand_dims(y, [])).shape is shape
    m = tir.Var("m", "int64")
    assert str(infer(op.arange(m)).shape) == "R.shape([m])"


def infer(call):
    return relax.BlockBuilder().normalize(call).struct_info


@R.function
def sliced(
    x: R.Tensor((8, 3), "float32"),
    begin: R.Prim(value="b"),
    end: R.Prim(value="e"),
    stride: R.Prim(value="s"),
):
    b, e, s = T.int64(), T.int64(), T.int64()
    return R.strided_slice(x, [0], [b], [e], [s])


def test_slices_by_symbolic_positions_and_strides_go_either_way(random):
    vm = relax.VirtualMachine(relax.build(IRModule({"main": sliced})), runtime.cpu())
    x = random(8, 3)
    for begin, end, stride in [
        (0, 8, 2), (6, 1, -2), (7, -9, -1), (-1, -9, -3), (1, 100, 3), (5, 2, 1), (2, 5, -1),
    ]:  # fmt: skip
        actual = vm["main"](runtime.array(x), begin, end, stride).numpy()
        np.testing.assert_array_equal(actual, x[begin:end:stride])
