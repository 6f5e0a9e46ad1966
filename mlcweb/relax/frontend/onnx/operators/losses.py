"""Losses."""

from __future__ import annotations

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.node import Node, converter


def _nll(node: Node, predictions: Expr) -> Expr:
    targets = node.tensor(1)
    weights = node.tensor(2) if node.has(2) else None
    ignored = node.attrs.get("ignore_index", -(2**31))
    return op.nn.nll_loss(
        predictions, targets, weights, node.attrs.get("reduction", "mean"), ignored
    )


@converter("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(node: Node) -> Expr:
    return _nll(node, node.tensor(0))


@converter("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(node: Node) -> list[Expr]:
    logarithms = node.emit(op.nn.log_softmax(node.tensor(0), 1))
    return [node.emit(_nll(node, logarithms)), logarithms]
