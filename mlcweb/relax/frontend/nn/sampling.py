"""Drawing values from distributions by uniform numbers, as language models choose tokens.

Distributions are the rows of (distributions, values); uniform numbers are (samples, 1), and so are
`sample_indices`, the row of each sample: row i for sample i without them.
"""

from __future__ import annotations

from mlcweb import te
from mlcweb.relax import op as R
from mlcweb.relax.frontend.nn.calls import tensor_expr_op
from mlcweb.relax.frontend.nn.tensor import Tensor, wrap_nested
from mlcweb.tir import reducers
from mlcweb.tir.arithmetic import cast, const, logical_and, minimum, select
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis


def multinomial_from_uniform(
    prob: Tensor, uniform_sample: Tensor, sample_indices: Tensor | None = None,
    dtype: str = "int64", name: str = "multinomial_from_uniform",
) -> Tensor:  # fmt: skip
    """Values drawn from distributions."""
    rows = _rows("multinomial_from_uniform", prob, uniform_sample, sample_indices)
    drawn = R.multinomial_from_uniform(prob._expr, uniform_sample._expr, rows._expr, dtype)
    return wrap_nested(drawn, name)


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor, sorted_index: Tensor, top_p: Tensor, top_k: Tensor,
    uniform_sample: Tensor, sample_indices: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Values drawn from the most probable ones of distributions (Holtzman et al., "The Curious Case
    of Neural Text Degeneration", 2020).

    Args:
        sorted_prob: in descending order; `sorted_index` has the values.
        top_p: (distributions, 1): only so many are drawn that their probabilities sum up to that.
        top_k: (distributions, 1): no more than that.
    """
    operator = "sample_top_p_top_k_from_sorted_prob"
    rows = _rows(operator, sorted_prob, uniform_sample, sample_indices)
    sums = wrap_nested(R.cumsum(sorted_prob._expr, axis=1), "cumsum")
    total = _of_last("get_renorm_prob", sums, sums, top_p, top_k)

    def chosen(
        sums: te.Tensor, index: te.Tensor, total: te.Tensor, uniform: te.Tensor, rows: te.Tensor
    ) -> te.Tensor:
        k = reduce_axis((0, sums.shape[1]), "k")

        def below(i: PrimExpr, _: PrimExpr) -> PrimExpr:
            row = rows(i, 0)
            is_below = sums(row, k.var) / total(row, 0) <= uniform(i, 0)
            return reducers.sum(cast("int32", is_below), [k])

        count = te.compute(uniform.shape, below, "below")
        return te.compute(
            uniform.shape,
            lambda i, j: index(rows(i, 0), _at_most(count(i, j), sums.shape[1])),
            "T_get_index_from_sorted",
        )

    args = [sums, sorted_index, total, uniform_sample, rows]
    return _tensor(tensor_expr_op(chosen, "get_index_from_sorted", args))


def renormalize_top_p_top_k_prob(
    prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor
) -> Tensor:
    """Distributions of the most probable values alone: see `sample_top_p_top_k_from_sorted_prob`.
    Values as probable as the last of them count, too."""
    sums = wrap_nested(R.cumsum(sorted_prob._expr, axis=1), "cumsum")
    cutoff = _of_last("get_renorm_cutoff", sorted_prob, sums, top_p, top_k)

    def kept(prob: te.Tensor, cutoff: te.Tensor) -> te.Tensor:
        zero = const(0, prob.dtype)
        return te.compute(
            prob.shape,
            lambda i, j: select(prob(i, j) >= cutoff(i, 0), prob(i, j), zero),
            "filter_with_top_p_top_k",
        )

    filtered = _tensor(tensor_expr_op(kept, "filter_with_top_p_top_k", [prob, cutoff]))
    total = R.sum(filtered._expr, axis=1, keepdims=True)
    return wrap_nested(R.divide(filtered._expr, total), "divide")


def _of_last(name: str, values: Tensor, sums: Tensor, top_p: Tensor, top_k: Tensor) -> Tensor:
    """For each distribution the element of `values` at the last position that is drawn."""

    def build(values: te.Tensor, sums: te.Tensor, top_p: te.Tensor, top_k: te.Tensor) -> te.Tensor:
        k = reduce_axis((0, sums.shape[1]), "k")
        shape = [sums.shape[0], const(1, sums.shape[0].dtype)]

        def before(i: PrimExpr, _: PrimExpr) -> PrimExpr:
            fits = cast(top_k.dtype, k.var) + 1 < top_k(i, 0)
            return reducers.sum(cast("int32", logical_and(sums(i, k.var) < top_p(i, 0), fits)), [k])

        count = te.compute(shape, before, "before")
        return te.compute(
            shape, lambda i, j: values(i, _at_most(count(i, j), sums.shape[1])), f"T_{name}"
        )

    return _tensor(tensor_expr_op(build, name, [values, sums, top_p, top_k]))


def _at_most(count: PrimExpr, extent: PrimExpr) -> PrimExpr:
    return minimum(cast(extent.dtype, count), extent - 1)


def _tensor(value: object) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def _rows(operator: str, prob: Tensor, uniform: Tensor, sample_indices: Tensor | None) -> Tensor:
    """From which distribution each sample is drawn, (samples, 1)."""
    if sample_indices is not None:
        if sample_indices.shape != uniform.shape:
            raise ValueError(
                f"{operator}: sample_indices of shape {sample_indices.shape} must be of the shape "
                f"of uniform_sample, {uniform.shape}"
            )
        return sample_indices
    rows, samples = prob.shape[0], uniform.shape[0]
    if not (isinstance(rows, int) and rows == samples):
        raise ValueError(
            f"{operator}: {samples} samples of {rows} distributions need sample_indices"
        )
    return Tensor.from_const([[row] for row in range(rows)])
