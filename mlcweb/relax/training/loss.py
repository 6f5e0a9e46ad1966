"""Losses: each makes a function of predictions and targets."""

from __future__ import annotations

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.struct_info import StructInfo
from mlcweb.relax.training.builders import emitted

REDUCTIONS = ("mean", "sum", "none")


class Loss:
    """Base. Called with struct infos, a loss gives a function; the first `num_backbone_outputs` of
    its parameters are what the model gives.

    `reduction`: "mean" or "sum" of what the elements lose, or "none", a tensor of it.
    """

    name = ""

    def __init__(self, reduction: str = "mean", num_backbone_outputs: int = 1) -> None:
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        self.reduction = reduction
        self._num_backbone_outputs = num_backbone_outputs

    @property
    def num_backbone_outputs(self) -> int:
        return self._num_backbone_outputs

    def formula(self, predictions: E.Var, targets: E.Var, *weights: E.Var) -> E.Expr:
        raise NotImplementedError

    def _with_reduction(self, value: E.Expr) -> E.Expr:
        if self.reduction == "none":
            return value
        return op.sum(value) if self.reduction == "sum" else op.mean(value)

    def __call__(
        self, predictions: StructInfo, targets: StructInfo, *weights: StructInfo
    ) -> E.Function:
        names = ("predictions", "targets", "weights")
        inputs = [
            E.Var(name, getattr(info, "struct_info", info))
            for name, info in zip(names, (predictions, targets, *weights), strict=False)
        ]
        builder = BlockBuilder()
        with builder.function(self.name, inputs):
            with builder.dataflow():
                result = builder.emit_output(self.formula(*inputs))
            var = builder.emit_func_output(result)
        func = builder.get()[var]
        assert isinstance(func, E.Function)
        return func


class L1Loss(Loss):
    """The absolute differences."""

    name = "l1_loss"

    def formula(self, predictions: E.Var, targets: E.Var, *weights: E.Var) -> E.Expr:
        return self._with_reduction(op.abs(predictions - targets))


class MSELoss(Loss):
    """The squares of the differences."""

    name = "mse_loss"

    def formula(self, predictions: E.Var, targets: E.Var, *weights: E.Var) -> E.Expr:
        difference = emitted(predictions - targets)
        return self._with_reduction(difference * difference)


class CrossEntropyLoss(Loss):
    """The negative logarithms of the probabilities of the targets, which are numbers of classes.
    The predictions are not normalized. Targets of `ignore_index` do not count."""

    name = "cross_entropy_loss"

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__(reduction)
        self.ignore_index = ignore_index

    def formula(self, predictions: E.Var, targets: E.Var, *weights: E.Var) -> E.Expr:
        logits = op.nn.log_softmax(predictions)
        return op.nn.nll_loss(
            logits, targets, *weights, reduction=self.reduction, ignore_index=self.ignore_index
        )


class CategoricalCrossEntropyLoss(CrossEntropyLoss):
    """As `CrossEntropyLoss`, of targets that are one in the place of the class, else zero."""

    name = "categorical_cross_entropy_loss"

    def formula(self, predictions: E.Var, targets: E.Var, *weights: E.Var) -> E.Expr:
        if self.ignore_index >= 0:
            classes = op.argmax(targets, 1)
            return super().formula(predictions, classes, *weights)  # type: ignore[arg-type]
        losses = op.negative(op.nn.log_softmax(predictions)) * targets
        if weights:
            losses = losses * weights[0]
        return self._with_reduction(op.sum(losses, 1))
