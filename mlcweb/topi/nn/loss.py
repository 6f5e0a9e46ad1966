"""Losses that training makes small."""

from __future__ import annotations

from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import PrimExpr
from mlcweb.topi.reduction import sum as sum_of


def nll_loss(
    predictions: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """-predictions[n, targets[n, …], …] times the weight of that class, 0 where the target is
    `ignore_index`; as it is, summed, or divided by the sum of the weights that counted.

    `predictions` are (n, classes, …), or (classes,) for one target.
    """
    dtype = predictions.dtype
    zero = arithmetic.const(0, dtype)

    def weight(index: tuple[PrimExpr, ...]) -> PrimExpr:
        one = arithmetic.const(1, dtype)
        return one if weights is None else arithmetic.cast(dtype, weights(_class(index)))

    def _class(index: tuple[PrimExpr, ...]) -> PrimExpr:
        """The class of a target; the first one where it does not count."""
        target = targets(*index)
        ignored = arithmetic.equal(target, arithmetic.const(ignore_index, targets.dtype))
        return arithmetic.select(ignored, arithmetic.const(0, targets.dtype), target)

    def counts(index: tuple[PrimExpr, ...]) -> PrimExpr:
        return arithmetic.not_equal(targets(*index), arithmetic.const(ignore_index, targets.dtype))

    def loss(*index: PrimExpr) -> PrimExpr:
        chosen = predictions(*index[:1], _class(index), *index[1:])
        return arithmetic.select(
            counts(index), (zero - chosen) * weight(index),
            zero,
        )  # fmt: skip

    losses = compute(targets.shape, loss, "nll_loss")
    if reduction == "none":
        return losses
    total = sum_of(losses) if losses.ndim else losses
    if reduction == "sum":
        return total
    counted = compute(
        targets.shape, lambda *index: arithmetic.select(counts(index), weight(index), zero),
        "nll_loss_weight",
    )  # fmt: skip
    return total / (sum_of(counted) if counted.ndim else counted)
