"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import elementwise, shapes
from mlcweb.topi.shapes import Extent


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:
    """The product of (…, n, k) and (k, m), each transposed where asked, plus a bias (m,)."""
    name = f"T_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    shapes.need_rank("matmul", tensor_b, 2, "a matrix")
    if tensor_a.ndim < 2:
        raise DiagnosticError(f"matmul: {shapes.show(tensor_a.shape)} is no matrix")
    lead = tensor_a.shape[:-2]
    rows, inner = _matrix(tensor_a.shape[-2:], transpose_a)
    inner_b, columns = _matrix(tensor_b.shape, transpose_b)
    _check_inner("matmul", inner, inner_b, tensor_a, tensor_b)
    dtype = out_dtype or tensor_a.dtype
    k = reduce_axis((0, inner), "k")

    def element(*index: PrimExpr) -> PrimExpr:
        *outer, i, j = index
        left = (k.var, i) if transpose_a else (i, k.var)
        right = (j, k.var) if transpose_b else (k.var, j)
        return reducers.sum(_product(tensor_a(*outer, *left), tensor_b(*right), dtype), axis=k)

    product = compute((*lead, rows, columns), element, name, tag="matmul")
    if bias is None:
        return product
    return product + elementwise.cast(bias, dtype)


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None
) -> Tensor:
    """data (n, k) times weight (m, k) transposed, plus bias (m,): a linear layer."""
    return matmul(data, weight, bias, out_dtype, False, True)


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Sequence[Extent] | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """The products of b matrices: (b, n, k) by (b, m, k) transposed, or as the flags say. A batch
    of one is used for all."""
    shapes.need_rank("batch_matmul", tensor_a, 3, "(batch, n, k)")
    shapes.need_rank("batch_matmul", tensor_b, 3, "(batch, m, k)")
    name = f"T_batch_matmul_{'T' if transpose_a else 'N'}{'T' if transpose_b else 'N'}"
    (batch,) = shapes.broadcast("batch_matmul", tensor_a.shape[:1], tensor_b.shape[:1])
    rows, inner = _matrix(tensor_a.shape[1:], transpose_a)
    inner_b, columns = _matrix(tensor_b.shape[1:], transpose_b)
    _check_inner("batch_matmul", inner, inner_b, tensor_a, tensor_b)
    dtype = out_dtype or tensor_a.dtype
    k = reduce_axis((0, inner), "k")

    def element(b: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        (left,) = shapes.broadcast_index(tensor_a.shape[:1], (b,), (batch,))
        (right,) = shapes.broadcast_index(tensor_b.shape[:1], (b,), (batch,))
        first = tensor_a(left, *((k.var, i) if transpose_a else (i, k.var)))
        second = tensor_b(right, *((j, k.var) if transpose_b else (k.var, j)))
        return reducers.sum(_product(first, second, dtype), axis=k)

    return compute((batch, rows, columns), element, name, tag="batch_matmul")


def general_matmul(
    a: Tensor,
    b: Tensor,
    transp_a: bool = False,
    transp_b: bool = False,
    out_dtype: str | None = None,
) -> Tensor:
    """The product as `numpy.matmul` defines it: leading dimensions broadcast, vectors count as a
    row on the left and a column on the right. Matrices are transposed where asked."""
    if (transp_a and a.ndim != 2) or (transp_b and b.ndim != 2):
        raise DiagnosticError("matmul: only matrices are transposed")
    if transp_a or transp_b:
        return matmul(a, b, None, out_dtype, transp_a, transp_b)
    if not a.ndim or not b.ndim:
        raise DiagnosticError("matmul: a scalar is no operand; multiply it")
    row, column = a.ndim == 1, b.ndim == 1
    inner = a.shape[-1]
    _check_inner("matmul", inner, b.shape[0] if column else b.shape[-2], a, b)
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    lead = shapes.broadcast("matmul", lead_a, lead_b) if lead_a or lead_b else ()
    shape = [*lead, *(() if row else a.shape[-2:-1]), *(() if column else b.shape[-1:])]
    dtype = out_dtype or a.dtype
    k = reduce_axis((0, inner), "k")

    def element(*index: PrimExpr) -> PrimExpr:
        outer = index[: len(lead)]
        rest = list(index[len(lead) :])
        left = [] if row else [*shapes.broadcast_index(lead_a, outer, lead), rest.pop(0)]
        right = [] if column else [rest.pop(0)]
        return reducers.sum(
            _product(
                a(*left, k.var),
                b(*shapes.broadcast_index(lead_b, outer, lead), k.var, *right),
                dtype,
            ),
            axis=k,
        )

    axes = shapes.axis_names(len(shape))
    return compute(shape, element, "T_matmul", tag="matmul", varargs_names=axes)


general_matmul.__name__ = "matmul"  # TVM has one in topi and another in topi.nn


def _matrix(shape: Sequence[PrimExpr], transposed: bool) -> tuple[PrimExpr, PrimExpr]:
    return (shape[1], shape[0]) if transposed else (shape[0], shape[1])


def _product(a: PrimExpr, b: PrimExpr, dtype: str) -> PrimExpr:
    return arithmetic.cast(dtype, a) * arithmetic.cast(dtype, b)


def _check_inner(operator: str, a: PrimExpr, b: PrimExpr, left: Tensor, right: Tensor) -> None:
    if not shapes.same_extent(a, b):
        raise DiagnosticError(
            f"{operator}: the inner dimensions differ: {shapes.show(left.shape)} by "
            f"{shapes.show(right.shape)}"
        )
