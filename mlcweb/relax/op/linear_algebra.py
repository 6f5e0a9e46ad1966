"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike, constant_int
from mlcweb.relax.op import infer
from mlcweb.relax.op.elementwise import add
from mlcweb.relax.op.legalize import attribute, by, fields_of, te, topi
from mlcweb.relax.op.manipulate import permute_dims
from mlcweb.relax.op.registry import ALWAYS, builder, call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir.expr import PrimExpr


def _infer_matmul(call: Call, context: Context) -> StructInfo:
    a, b = infer.tensors(call, context)
    dtype = infer.dtype_or(call, "", "out_dtype") or infer.common_dtype(call, [a, b])
    for index, info in enumerate((a, b)):
        if info.ndim == 0:
            raise infer.shape_error(
                call, f"{infer.argument_name(call, index)} is a scalar, not a matrix or vector"
            )
    if a.ndim == -1 or b.ndim == -1:
        return TensorStructInfo(None, dtype)
    ndim = max(a.ndim, b.ndim, 2) - (a.ndim == 1) - (b.ndim == 1)
    if a.values is None or b.values is None:
        return TensorStructInfo(None, dtype, ndim=ndim)
    shape = _matmul_shape(call, a, b, a.values, b.values)
    return TensorStructInfo(shape, dtype, ndim=ndim)


def _matmul_shape(
    call: Call,
    a: TensorStructInfo,
    b: TensorStructInfo,
    left: Sequence[PrimExpr],
    right: Sequence[PrimExpr],
) -> list[PrimExpr] | None:
    both = f"{infer.described(call, 0, a)} and {infer.described(call, 1, b)}"
    row, column = [*left[-2:-1]], [*right[-1:]] if len(right) > 1 else []
    inner = right[-2] if len(right) > 1 else right[0]
    if dims.differ(left[-1], inner):
        raise infer.shape_error(
            call,
            f"{both} cannot be multiplied: the extents of the sum are "
            f"{dims.shape_text((left[-1],))[1:-2]} and {dims.shape_text((inner,))[1:-2]}",
        )
    outer = infer.broadcast_shapes(call, left[:-2], right[:-2], both)
    return None if outer is None else [*outer, *row, *column]


def _product(x1: te.Tensor, x2: te.Tensor, out_dtype: str) -> te.Tensor:
    return topi.matmul(x1, x2, out_dtype=out_dtype)


def _legalize_matmul(builder: BlockBuilder, call: Call) -> Expr:
    """Extents of the sum that are not seen to be equal are compared in a run."""
    infos = [infer.tensor(call, index, builder.context) for index in (0, 1)]
    args = list(call.args)
    shapes = [list(info.values) for info in infos if info.values is not None]
    if len(shapes) == 2:
        places = (-1, -2 if len(shapes[1]) > 1 else -1)
        left, right = (shape[place] for shape, place in zip(shapes, places, strict=True))
        if not dims.equal(left, right):
            side = int(constant_int(left) is not None)
            shapes[side][places[side]] = left if side else right
            info = TensorStructInfo(shapes[side], infos[side].dtype)
            args[side] = builder.match_cast(args[side], info)
    return builder.call_te(
        _product, *args, attribute(call, "out_dtype"), primfunc_name_hint="matmul"
    )


@operator(
    "relax.matmul", "x1", "x2", infer=_infer_matmul, legalize=_legalize_matmul, precision=ALWAYS
)  # fmt: skip
def matmul(x1: ExprLike, x2: ExprLike, out_dtype: str | None = None) -> Call:
    """The product of matrices in the last two axes; the others are broadcast.

    A vector is a row on the left and a column on the right, and that axis is dropped. `out_dtype`
    (default: that of the arguments) is the type of sums and result.
    """
    return call(matmul, x1, x2, out_dtype=str(out_dtype or "void"))


@builder("relax.linear")
def linear(
    data: ExprLike, weight: ExprLike, bias: ExprLike | None = None, out_dtype: str | None = None
) -> Call:
    """data @ weight.T + bias, as calls of `matmul`, `permute_dims` and `add`."""
    product = matmul(data, permute_dims(weight), out_dtype)
    return product if bias is None else add(product, bias)


def _infer_outer(call: Call, context: Context) -> StructInfo:
    a, b = infer.tensors(call, context)
    dtype = infer.common_dtype(call, [a, b])
    for index, info in enumerate((a, b)):
        infer.need_rank(call, index, info, 1, "a vector")
    if a.values is None or b.values is None:
        return TensorStructInfo(None, dtype, ndim=2)
    return TensorStructInfo([*a.values, *b.values], dtype)


def _outer(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return te.compute((a.shape[0], b.shape[0]), lambda i, j: a(i) * b(j), "outer")


@operator("relax.outer", infer=_infer_outer, legalize=by(_outer, hint="outer"), precision=ALWAYS)
def outer(x1: ExprLike, x2: ExprLike) -> Call:
    """The matrix of all products of elements of two vectors."""
    return call(outer, x1, x2)


def _infer_einsum(call: Call, context: Context) -> StructInfo:
    infos = infer.tensors_of_tuple(call, 0, context)
    dtype = infer.common_dtype(call, infos)
    from mlcweb.topi.einsum import subscripts_of

    try:
        terms, result = subscripts_of(
            infer.attribute(call, "subscripts"), [info.ndim for info in infos]
        )
    except DiagnosticError as error:
        raise infer.shape_error(call, error.message) from None
    extents: dict[str, PrimExpr] = {}
    for info, term in zip(infos, terms, strict=True):
        if info.values is None:
            return TensorStructInfo(None, dtype, ndim=len(result))
        for letter, extent in zip(term, info.values, strict=True):
            first = extents.setdefault(letter, extent)
            if getattr(first, "value", None) == 1:
                extents[letter] = extent
            elif getattr(extent, "value", None) != 1 and dims.differ(first, extent):
                shapes = ", ".join(dims.shape_text(i.values, i.ndim) for i in infos)
                raise infer.shape_error(
                    call,
                    f"the axis {letter} is both {infer.text(first)} and {infer.text(extent)}: "
                    f"{shapes}",
                )
    return TensorStructInfo([extents[letter] for letter in result], dtype)


def _legalize_einsum(builder: BlockBuilder, call: Call) -> Expr:
    operands = fields_of(builder, call.args[0])
    return builder.call_te(topi.einsum, attribute(call, "subscripts"), *operands)


@operator("relax.einsum", "operands", infer=_infer_einsum, legalize=_legalize_einsum)
def einsum(operands: ExprLike, subscripts: str) -> Call:
    """Sums of products by the names of axes, as `numpy.einsum`: "ij,jk->ik"."""
    return call(einsum, operands, subscripts=subscripts)
