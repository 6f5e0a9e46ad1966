"""Errors name the operator, the argument and the shapes or element types."""

import pytest

from mlcweb import relax, tir
from mlcweb.relax import TensorStructInfo as T
from mlcweb.relax import op
from mlcweb.relax.errors import DTypeError, ShapeError

F, I = "float32", "int64"


def var(name, shape, dtype=F):
    return relax.Var(name, T(shape, dtype))


x, y, ids = var("x", (2, 3)), var("y", (2, 4)), var("ids", (2, 3), I)
img, weight = var("img", (1, 4, 8, 8)), var("weight", (6, 3, 3, 3))
vector = var("vector", (3,))
K = tir.Var("K", I)
rank2, SHAPE1 = relax.Var("r", T(ndim=2)), relax.ShapeStructInfo(ndim=1)

SHAPES = [
    (lambda: op.add(x, y), r"relax.add: x1 of shape \(2, 3\) and x2 of shape \(2, 4\) cannot be"),
    (
        lambda: op.matmul(x, y),
        r"relax.matmul: x1 of shape \(2, 3\) and x2 of shape \(2, 4\) cannot",
    ),
    (lambda: op.sum(x, 2), "relax.sum: axis 2 is not an axis of a tensor of 2"),
    (lambda: op.sum(x, [0, -2]), r"relax.sum: axis \[0, -2\] names an axis twice"),
    (lambda: op.cumsum(x, 5), "relax.cumsum: axis 5"),
    (lambda: op.permute_dims(x, [0, 1, 2]), r"axes \[0, 1, 2\] are not those of x of shape"),
    (
        lambda: op.reshape(x, (4, 4)),
        r"x of shape \(2, 3\) has 6 elements, the shape \(4, 4\) has 16",
    ),
    (lambda: op.broadcast_to(rank2, relax.Var("s", SHAPE1)), "it has more dimensions"),
    (lambda: op.collapse_sum_like(var("a", (3, K)), var("b", (3, K + 1))), "is no broadcast of"),
    (lambda: op.take(rank2, vector.astype(I)), "without axis, x of 2 dimension.s. must be a vec"),
    (lambda: op.full((2,), relax.Var("v", T())), "fill_value of an unknown shape must be a scalar"),
    (lambda: op.broadcast_to(x, (3, 3)), r"x of shape \(2, 3\) to \(3, 3\) cannot be broadcast"),
    (lambda: op.concat([x, y]), r"relax.concat: shapes must agree outside axis 0, but axis 1"),
    (lambda: op.concat([x, vector]), r"relax.concat: all tensors must have the same rank"),
    (lambda: op.stack([x, y]), "relax.stack: shapes must agree, but axis 1 differs"),
    (lambda: op.split(x, 0), "relax.split: indices_or_sections is 0"),
    (lambda: op.strided_slice(x, [0], [0], [1], [0]), "the stride of axis 0 is 0"),
    (lambda: op.strided_slice(x, [0, 1], [0], [1]), "name 2, 1, 1 and 2 numbers"),
    (lambda: op.take(x, ids), "without axis, x of shape"),
    (lambda: op.gather_elements(x, vector.astype(I)), "must have the same rank"),
    (lambda: op.gather_nd(x, ids), "names 3 axes of data"),
    (lambda: op.layout_transform(vector, lambda i, j: (j, i)), "must have 2 dimension"),
    (lambda: op.tril(vector), "is no matrix"),
    (lambda: op.arange(0, 5, 0), "step must not be 0"),
    (lambda: op.nn.softmax(x, 2), "relax.nn.softmax: axis 2"),
    (lambda: op.nn.conv2d(img, weight), r"weight of shape \(6, 3, 3, 3\) do not fit with groups=1"),
    (lambda: op.nn.conv2d(x, weight), "must have 4 dimension.*NCHW"),
    (lambda: op.nn.conv2d(img, weight, data_layout="NCHX"), 'an order of the letters "NCHW"'),
    (lambda: op.nn.conv2d(img, var("w", (6, 4, 9, 9))), "a window of 9 does not fit into 8"),
    (lambda: op.nn.conv2d_transpose(img, weight), "the weight is for 6 channels, the data has 4"),
    (lambda: op.nn.max_pool2d(img, (2, 2, 2)), "pool_size needs 2"),
    (
        lambda: op.nn.conv2d(var("i", (1, K * 6, 8, 8)), var("w", (K * 6 + 4, K, 3, 3)), groups=6),
        "K \\* 6 \\+ 4 filters are no 6 equal groups",
    ),
    (lambda: op.nn.layer_norm(x, x, x, -1), r"gamma of shape \(2, 3\) must have 1 dimension"),
    (lambda: op.nn.layer_norm(y, vector, vector, -1), "axis 1 of data is 4"),
    (lambda: op.nn.group_norm(img, *[var("g", (4,))] * 2, 3, 1, [2, 3]), "are no 3 groups"),
    (lambda: op.nn.pad(x, [1, 1]), "pad_width needs two numbers per axis"),
    (lambda: op.nn.prelu(x, var("a", (2,)), 1), "do not fit on axis 1"),
    (lambda: op.nn.attention(img, img, x), "must have 4 dimension"),
    (lambda: op.image.resize2d(img, (4, 4), layout="NC"), "an order of the letters"),
    (lambda: op.einsum([x, y], "ij,jk->ik"), "the axis j is both 3 and 2"),
    (lambda: op.einsum([x], "ijk->i"), "names 3 axes of an operand of 2"),
]
TYPES = [
    (lambda: op.add(x, ids), "relax.add.*one element type.*x1 float32, x2 int64"),
    (lambda: op.exp(ids), "relax.exp: x must be float, not int64"),
    (lambda: op.nn.softmax(ids), "relax.nn.softmax: data must be float"),
    (lambda: op.logical_and(x, x), "relax.logical_and: x1 must be bool, not float32"),
    (lambda: op.bitwise_and(x, x), "relax.bitwise_and: x1 must be of integers, not float32"),
    (lambda: op.where(x, x, x), "relax.where: condition must be bool"),
    (lambda: op.take(x, x, 0), "relax.take: indices must be of integers"),
    (lambda: op.concat([x, ids]), "relax.concat: all tensors must have one element type"),
    (lambda: op.concat(x), "relax.concat: tensors must be a tuple"),
    (lambda: op.one_hot(ids, 1.0, 0, 5), "on_value is float64, off_value is int64"),
    (lambda: op.scatter_elements(x, ids, ids), "updates must be float32 as data is"),
    (lambda: op.reshape(x, vector), "shape must be a shape"),
    (lambda: op.nn.pad(x, [0] * 4, "mirror"), "pad_mode is one of"),
]


@pytest.mark.parametrize(("build", "message"), SHAPES)
def test_shapes(build, message):
    with pytest.raises(ShapeError, match=message):
        _ = build().struct_info


@pytest.mark.parametrize(("build", "message"), TYPES)
def test_element_types(build, message):
    with pytest.raises(DTypeError, match=message):
        _ = build().struct_info


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: op.nn.conv2d(img, weight, groups=0), "number of groups, at least 1, not 0"),
        (lambda: op.nn.conv2d(img, weight, strides=(1, 2, 3)), "strides needs 2 number"),
        (lambda: op.nn.conv2d_transpose(img, weight, padding=(1, 2, 3)), "padding needs 4 number"),
        (lambda: op.nn.avg_pool2d(img, dilation=(1, 2, 3)), "dilation needs 2 number"),
    ],
)
def test_numbers_for_axes_are_checked_when_a_call_is_written(build, message):
    with pytest.raises(ShapeError, match=message):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: op.repeat(x, 1.5),
        lambda: op.tile(x, (2, 1.5)),
        lambda: op.nn.softmax(x, 0.5),
        lambda: op.nn.conv2d(img, weight, strides=(1, 1.5)),
        lambda: op.topk(x, 2.5),
    ],
)
def test_numbers_with_a_fraction_are_not_cut_off(build):
    with pytest.raises(TypeError, match=r"A whole number is needed here, not [0-9]\.5"):
        build()
    op.repeat(x, tir.IntImm("int64", 2))


def test_reshape_takes_no_single_number_and_no_negative_extents():
    for shape in (6, K):
        with pytest.raises(TypeError, match="A shape is a tuple or list"):
            op.reshape(x, shape)
    for shape in ((-2, -3), relax.ShapeExpr((6, -1))):
        with pytest.raises(relax.errors.DiagnosticError, match=r"has the extent -[12]"):
            relax.BlockBuilder().normalize(op.reshape(x, shape))


def test_reshape_says_what_it_needs():
    with pytest.raises(relax.errors.DiagnosticError, match="need the shape of x"):
        op.reshape(relax.Var("x", T(None, F, ndim=2)), (-1,))
    with pytest.raises(relax.errors.DiagnosticError, match="does not say how to reshape"):
        op.reshape(x, (-1, -1))
