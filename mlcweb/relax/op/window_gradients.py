"""The gradients of convolutions and pooling, as those of other operators in gradients.py."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.expr import Call, Expr, RelaxExpr, Var, constant_int
from mlcweb.relax.op.grad import register_gradient
from mlcweb.relax.op.index import strided_slice
from mlcweb.relax.op.infer import attribute, op_of, shape_of
from mlcweb.relax.op.manipulate import permute_dims, reshape
from mlcweb.relax.op.nn.convolution import conv2d, conv2d_transpose
from mlcweb.relax.op.window_grad import avg_pool2d_backward, max_pool2d_backward
from mlcweb.tir.expr import PrimExpr


@register_gradient("relax.nn.max_pool2d")
@register_gradient("relax.nn.avg_pool2d")
def _pool(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    kind = op_of(call).name.rpartition(".")[2]
    backward = {"max_pool2d": max_pool2d_backward, "avg_pool2d": avg_pool2d_backward}[kind]
    return [backward(grad, call.args[0], **(call.attrs or {}))]


def _numbers(call: Call, name: str) -> list[int]:
    return [int(number) for number in attribute(call, name)]


def _arranged(value: RelaxExpr, layout: str, target: str) -> RelaxExpr:
    if layout == target:
        return value
    return permute_dims(value, [layout.index(letter) for letter in target])


def _sizes(extents: Sequence[PrimExpr]) -> list[int]:
    sizes = [constant_int(extent) for extent in extents]
    if None in sizes:
        raise DiagnosticError("Gradient of relax.nn.conv2d: it needs images of known sizes")
    return [number for number in sizes if number is not None]


@register_gradient("relax.nn.conv2d")
def _conv2d(var: Var, call: Call, grad: Var, builder: BlockBuilder) -> Sequence[Expr]:
    """As convolutions of data and filters whose channels come first."""
    layouts = [attribute(call, name) for name in ("data_layout", "kernel_layout", "out_layout")]
    firsts = ("NCHW", "OIHW", "NCHW")
    operands = zip((*call.args, grad), layouts, firsts, strict=True)
    data, weight, arrived = (
        builder.normalize_argument(_arranged(value, *both)) for value, *both in operands
    )
    gradients = [_of_data(call, data, weight, arrived), _of_weight(call, data, weight, arrived)]
    back = zip(gradients, firsts, layouts, strict=False)
    arranged = [_arranged(part, *both) for part, *both in back]
    return [part for part in arranged if isinstance(part, Expr)]


def _of_data(call: Call, data: RelaxExpr, weight: RelaxExpr, grad: RelaxExpr) -> Expr:
    """Each element of the gradient puts a filter. What a stride left over at the end is added."""
    strides, dilation, padding = (_numbers(call, n) for n in ("strides", "dilation", "padding"))
    image, filters, result = (_sizes(shape_of(each)[2:]) for each in (data, weight, grad))
    left = [
        image[d] + padding[d] + padding[2 + d]
        - ((result[d] - 1) * strides[d] + (filters[d] - 1) * dilation[d] + 1)
        for d in range(2)
    ]  # fmt: skip
    return conv2d_transpose(
        grad, weight, strides, padding, left, dilation, attribute(call, "groups"),
        out_dtype=attribute(call, "out_dtype"),
    )  # fmt: skip


def _of_weight(call: Call, data: RelaxExpr, weight: RelaxExpr, grad: RelaxExpr) -> Expr:
    """The data convolved by the gradient: batches are summed over as channels are, strides and
    dilation change places."""
    strides, dilation, padding = (_numbers(call, n) for n in ("strides", "dilation", "padding"))
    groups = int(attribute(call, "groups"))
    if groups > 1:
        batch, channels, *image = shape_of(data)
        own = dims.simplify(channels // groups)
        apart = permute_dims(reshape(data, [batch, groups, own, *image]), [1, 0, 2, 3, 4])
        data = reshape(apart, [dims.simplify(batch * groups), own, *image])
    result = conv2d(
        data, grad, dilation, padding, strides, groups, "CNHW", "IOHW", "CNHW",
        attribute(call, "out_dtype"),
    )  # fmt: skip
    shape = shape_of(weight)
    size, expected = _spatial_result(call, data, grad), _sizes(shape[2:])
    if size == expected:
        return result
    return strided_slice(result, [0, 1, 2, 3], [0, 0, 0, 0], shape)


def _spatial_result(call: Call, data: RelaxExpr, grad: RelaxExpr) -> list[int]:
    """The size of what the convolution by the gradient gives: at least that of the filters."""
    strides, dilation, padding = (_numbers(call, n) for n in ("strides", "dilation", "padding"))
    image, windows = (_sizes(shape_of(each)[-2:]) for each in (data, grad))
    return [
        (image[d] + padding[d] + padding[2 + d] - (windows[d] - 1) * strides[d] - 1) // dilation[d]
        + 1
        for d in range(2)
    ]
