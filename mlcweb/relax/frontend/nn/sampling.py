"""Drawing tokens by uniform numbers: from all, or from the likeliest ones, as few as come to the
probability `top_p` and no more than `top_k`.

Probabilities have a row for each distribution; `top_p` and `top_k` have one column. Those that are
sorted have the highest first. The first token is always among those that are drawn from.
"""

from __future__ import annotations

from mlcweb.relax import expr as E
from mlcweb.relax import op as R
from mlcweb.relax.frontend.nn.calls import tensor_expr_op
from mlcweb.relax.frontend.nn.tensor import Tensor, wrap_nested
from mlcweb.relax.op.legalize import te
from mlcweb.tir.expr import PrimExpr


def multinomial_from_uniform(
    prob: Tensor, uniform_sample: Tensor, sample_indices: Tensor | None = None,
    dtype: str = "int64", name: str = "multinomial_from_uniform",
) -> Tensor:  # fmt: skip
    """Values drawn from the distributions that the rows of `prob` are, (distributions, values), by
    uniform numbers, (samples, 1); from row i for sample i without `sample_indices`."""
    rows = _rows(name, prob, uniform_sample, sample_indices)
    drawn = R.multinomial_from_uniform(prob._expr, uniform_sample._expr, rows._expr, dtype)
    return wrap_nested(drawn, name)


def _rows(what: str, prob: Tensor, uniform_sample: Tensor, sample_indices: Tensor | None) -> Tensor:
    """From which distribution each sample is drawn, (samples, 1)."""
    if sample_indices is not None:
        if sample_indices.shape != uniform_sample.shape:
            raise ValueError(
                f"{what}: sample_indices of shape {sample_indices.shape} must be of the shape of "
                f"uniform_sample, {uniform_sample.shape}"
            )
        return sample_indices
    rows, samples = prob.shape[0], uniform_sample.shape[0]
    if not (isinstance(rows, int) and rows == samples):
        raise ValueError(f"{what}: {samples} samples of {rows} distributions need sample_indices")
    return Tensor.from_const([[row] for row in range(rows)])


def _at_last(values: te.Tensor, sums: te.Tensor, top_p: te.Tensor, top_k: te.Tensor) -> te.Tensor:
    """In each row, the value of the last token that is drawn from. It is the first at which the
    running sum of probabilities comes to `top_p`, or which is the `top_k`-th."""
    rows, length = sums.shape
    j = te.reduce_axis((0, length - 1), "j")

    def count(i: PrimExpr, _: PrimExpr) -> PrimExpr:
        short = te.all(sums[i, j] < top_p[i, 0], (j + 1).astype(top_k.dtype) < top_k[i, 0])
        return te.sum(short.astype("int64"), axis=j)

    before = te.compute((rows, 1), count, "before")
    return te.compute((rows, 1), lambda i, k: values[i, before[i, k]], "at_last")


def _drawn(
    sums: te.Tensor, tokens: te.Tensor, total: te.Tensor, uniform: te.Tensor, rows: te.Tensor
) -> te.Tensor:
    """For each sample, the first token whose running sum, as a part of the total, is above the
    uniform number."""
    j = te.reduce_axis((0, sums.shape[1] - 1), "j")

    def count(i: PrimExpr, k: PrimExpr) -> PrimExpr:
        row = rows[i, k]
        return te.sum((sums[row, j] / total[row, 0] <= uniform[i, k]).astype("int64"), axis=j)

    before = te.compute(uniform.shape, count, "before")
    return te.compute(uniform.shape, lambda i, k: tokens[rows[i, k], before[i, k]], "token")


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor, sorted_index: Tensor, top_p: Tensor, top_k: Tensor,
    uniform_sample: Tensor, sample_indices: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Tokens drawn by uniform numbers, (samples, 1), from the likeliest ones.

    `sorted_index` has the token of each probability. Sample i is drawn from the distribution in row
    `sample_indices[i, 0]`, or in row i without `sample_indices`.
    """
    what = "sample_top_p_top_k_from_sorted_prob"
    rows = _rows(what, sorted_prob, uniform_sample, sample_indices)
    sums = _sums(sorted_prob)
    total = tensor_expr_op(
        lambda sums, p, k: _at_last(sums, sums, p, k), "get_renorm_prob", [sums, top_p, top_k]
    )
    return tensor_expr_op(
        _drawn, "get_index_from_sorted", [sums, sorted_index, total, uniform_sample, rows]
    )


def renormalize_top_p_top_k_prob(
    prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor
) -> Tensor:
    """Probabilities, in any order, of the likeliest tokens, which come to 1; those of others are 0.
    `sorted_prob` has the same probabilities sorted."""
    cutoff = tensor_expr_op(
        _at_last, "get_renorm_cutoff", [sorted_prob, _sums(sorted_prob), top_p, top_k]
    )._expr
    eligible = R.where(R.greater_equal(prob._expr, cutoff), prob._expr, E.const(0, prob.dtype))
    total = R.sum(eligible, 1, keepdims=True)
    return wrap_nested(R.divide(eligible, total), "divide")


def _sums(prob: Tensor) -> Tensor:
    """Running sums of probabilities."""
    return wrap_nested(R.cumsum(prob._expr, 1), "cumsum")
