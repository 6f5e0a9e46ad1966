"""Drawing from distributions."""

from __future__ import annotations

from mlcweb.relax import dims
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import by, te, topi
from mlcweb.relax.op.registry import call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import IntImm, PrimExpr


def _infer_samples(call: Call, context: Context) -> StructInfo:
    probabilities, uniform, rows = infer.tensors(call, context)
    infer.need_rank(call, 0, probabilities, 2, "(distributions, values)")
    infer.need_float(call, 0, probabilities)
    infer.need_float(call, 1, uniform)
    infer.need_integer(call, 2, rows)
    one = IntImm("int64", 1)
    for index, tensor in ((1, uniform), (2, rows)):
        infer.need_rank(call, index, tensor, 2, "(samples, 1)")
        if tensor.values is not None and dims.differ(tensor.values[1], one):
            text = infer.described(call, index, tensor)
            raise infer.shape_error(call, f"{text} must be (samples, 1)")
    dtype = infer.attribute(call, "dtype")
    if uniform.values is None or rows.values is None:
        return TensorStructInfo(None, dtype, ndim=2)
    if dims.differ(uniform.values[0], rows.values[0]):
        both = (infer.described(call, *each) for each in ((1, uniform), (2, rows)))
        raise infer.shape_error(call, " and ".join(both) + " must be one shape, (samples, 1)")
    return TensorStructInfo(uniform.values, dtype)


def _drawn(prob: te.Tensor, uniform: te.Tensor, rows: te.Tensor, dtype: str) -> te.Tensor:
    """How many running sums of probabilities are not above the uniform number."""
    sums = topi.cumsum(prob, axis=1, dtype=prob.dtype)
    values = prob.shape[1]
    k = te.reduce_axis((0, values), "k")

    def count(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        below = sums[rows[i, j], k] <= arithmetic.cast(prob.dtype, uniform[i, j])
        return te.sum(arithmetic.cast(dtype, below), axis=k)

    below = te.compute(uniform.shape, count, "below")

    def chosen(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        return arithmetic.minimum(below[i, j], arithmetic.cast(dtype, values - 1))

    return te.compute(uniform.shape, chosen, "T_get_sample_index")


@operator(
    "relax.multinomial_from_uniform", "prob", "uniform_sample", "sample_indices",
    infer=_infer_samples, legalize=by(_drawn, "dtype", hint="get_sample_index"),
    differentiable=False, dispatched="DispatchSampling",
)  # fmt: skip
def multinomial_from_uniform(
    prob: ExprLike, uniform_sample: ExprLike, sample_indices: ExprLike, dtype: str = "int64"
) -> Call:
    """Values drawn from distributions: for each uniform number the first value at which the running
    sum of probabilities is above it, the last value if there is none.

    Args:
        prob: (distributions, values) of floats; a row sums to 1.
        uniform_sample: (samples, 1) of floats, from 0 to 1.
        sample_indices: (samples, 1) of integers: the rows of `prob` to draw from.
        dtype: of the result, (samples, 1).
    """
    return call(multinomial_from_uniform, prob, uniform_sample, sample_indices, dtype=str(dtype))
