"""Operators that the gradients of pooling are made of, in `relax.op.grad`."""

from __future__ import annotations

from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, te, topi
from mlcweb.relax.op.nn.layouts import Extents, pool_attrs
from mlcweb.relax.op.registry import Legalize, call, operator
from mlcweb.relax.struct_info import StructInfo


def _infer(call: Call, context: Context) -> StructInfo:
    infer.tensor(call, 0, context)
    return infer.tensor(call, 1, context)


def _legalize(kind: str) -> Legalize:
    def legalize(builder: BlockBuilder, call: Call) -> Expr:
        layout = attribute(call, "layout")

        def backward(grads: te.Tensor, data: te.Tensor) -> te.Tensor:
            out_layout = attribute(call, "out_layout")
            if out_layout != layout:
                grads = topi.layout_transform(grads, out_layout, layout)
            return topi.nn.pool_grad(
                grads,
                data,
                attribute(call, "pool_size"),
                attribute(call, "strides"),
                attribute(call, "padding"),
                kind,
                attribute(call, "ceil_mode"),
                attribute(call, "count_include_pad"),
                layout,
                attribute(call, "dilation"),
            )

        name = f"{kind}_pool2d_backward"
        return builder.call_te(backward, *call.args, primfunc_name_hint=name)

    return legalize


def _backward(kind: str):
    name = f"{kind}_pool2d_backward"

    @operator(
        f"relax.grad.{name}", "output_grad", "data", infer=_infer, legalize=_legalize(kind)
    )  # fmt: skip
    def build(
        output_grad: ExprLike, data: ExprLike, pool_size: Extents = (1, 1),
        strides: Extents = (1, 1), padding: Extents = (0, 0, 0, 0), dilation: Extents = (1, 1),
        ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW",
        out_layout: str | None = None,
    ) -> Call:  # fmt: skip
        return call(build, output_grad, data, **pool_attrs(
            2, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout,
            out_layout,
        ))  # fmt: skip

    build.__doc__ = f"The gradient of `nn.{kind}_pool2d` for its data, of that of its result."
    return build


max_pool2d_backward = _backward("max")
avg_pool2d_backward = _backward("avg")
