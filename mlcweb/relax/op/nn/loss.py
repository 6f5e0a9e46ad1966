"""Losses that training makes small."""

from __future__ import annotations

from mlcweb.relax import dims
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, Expr, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import attribute, by, te, topi
from mlcweb.relax.op.registry import call, operator, whole
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.tir import arithmetic


def _infer_cross_entropy(call: Call, context: Context) -> StructInfo:
    predictions, labels = infer.tensors(call, context)
    dtype = infer.common_dtype(call, [predictions, labels])
    both = f"{infer.described(call, 0, predictions)} and {infer.described(call, 1, labels)}"
    if -1 not in (predictions.ndim, labels.ndim) and predictions.ndim != labels.ndim:
        raise infer.shape_error(call, f"{both} must have the same rank")
    if predictions.values is not None and labels.values is not None:
        if any(map(dims.differ, predictions.values, labels.values)):
            raise infer.shape_error(call, f"{both} must have the same shape")
    return TensorStructInfo((), dtype)


def _cross_entropy(predictions: te.Tensor, labels: te.Tensor) -> te.Tensor:
    total = topi.negative(topi.sum(topi.multiply(predictions, labels)))
    if predictions.ndim < 2:
        return total
    return topi.divide(total, arithmetic.cast(predictions.dtype, predictions.shape[0]))


@operator(
    "relax.nn.cross_entropy_with_logits",
    infer=_infer_cross_entropy, legalize=by(_cross_entropy, hint="cross_entropy_with_logits"),
)  # fmt: skip
def cross_entropy_with_logits(predictions: ExprLike, labels: ExprLike) -> Call:
    """-sum(predictions * labels), divided by the first extent where there are several dimensions;
    `predictions` are logarithms of probabilities."""
    return call(cross_entropy_with_logits, predictions, labels)


def _infer_nll_loss(call: Call, context: Context) -> StructInfo:
    predictions, targets = infer.tensor(call, 0, context), infer.tensor(call, 1, context)
    infer.need_integer(call, 1, targets)
    reduction = infer.attribute(call, "reduction")
    if reduction not in ("none", "sum", "mean"):
        raise infer.shape_error(
            call, f'reduction must be "none", "sum" or "mean", not {reduction!r}'
        )
    both = f"{infer.described(call, 0, predictions)} and {infer.described(call, 1, targets)}"
    if predictions.ndim == 0:
        raise infer.shape_error(
            call, f"{infer.described(call, 0, predictions)} has no axis of classes"
        )
    if -1 not in (predictions.ndim, targets.ndim) and max(predictions.ndim - 1, 0) != targets.ndim:
        raise infer.shape_error(call, f"{both}: targets have no axis of classes, else the same")
    shape = None
    if predictions.values is not None:
        values = list(predictions.values)
        classes = values.pop(1 if len(values) > 1 else 0)
        shape = values
        if targets.values is not None and any(map(dims.differ, shape, targets.values)):
            raise infer.shape_error(
                call, f"{both} must have the same extents but for the axis of classes"
            )
        if len(call.args) > 2:
            weights = infer.tensor(call, 2, context)
            infer.need_rank(call, 2, weights, 1, "the classes")
            if weights.values is not None and dims.differ(weights.values[0], classes):
                raise infer.shape_error(
                    call,
                    f"{infer.described(call, 2, weights)} must have {infer.text(classes)} "
                    "element(s), one for each class",
                )
    if reduction == "none":
        return TensorStructInfo(shape, predictions.dtype, ndim=targets.ndim)
    return TensorStructInfo((), predictions.dtype)


def _legalize_nll_loss(builder: BlockBuilder, call: Call) -> Expr:
    predictions, targets, *weights = call.args

    def nll_loss(*tensors: te.Tensor) -> te.Tensor:
        chosen, labels, *factors = tensors
        if chosen.ndim == 1:  # one target
            chosen = topi.expand_dims(chosen, 0)
            labels = topi.expand_dims(labels, 0)
        reduction = attribute(call, "reduction")
        weight = factors[0] if factors else None
        result = topi.nn.nll_loss(
            chosen, labels, weight, reduction, attribute(call, "ignore_index")
        )
        return topi.squeeze(result) if reduction == "none" and tensors[0].ndim == 1 else result

    return builder.call_te(nll_loss, predictions, targets, *weights, primfunc_name_hint="nll_loss")


@operator(
    "relax.nn.nll_loss", "predictions", "targets", "weights",
    infer=_infer_nll_loss, legalize=_legalize_nll_loss,
)  # fmt: skip
def nll_loss(
    predictions: ExprLike,
    targets: ExprLike,
    weights: ExprLike | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    """The negative logarithm of the probability of the right class.

    Args:
        predictions: (n, classes, …), logarithms of probabilities; or (classes,).
        targets: (n, …), the right classes.
        weights: (classes,), how much each counts; all 1 by default.
        reduction: "none", "sum", or "mean": divided by the sum of the weights that counted.
        ignore_index: targets of this number do not count.
    """
    tensors = (predictions, targets) if weights is None else (predictions, targets, weights)
    return call(nll_loss, *tensors, reduction=reduction, ignore_index=whole(ignore_index))
