"""Losses."""

from __future__ import annotations

from typing import Any

from mlcweb.relax import op
from mlcweb.relax.frontend.onnx.node import Node, converter


def _nll(node: Node, predictions: Any) -> Any:
    targets = node.tensor(1)
    weights = node.tensor(2) if node.has(2) else None
    ignored = node.attrs.get("ignore_index", -(2**31))
    return op.nn.nll_loss(
        predictions, targets, weights, node.attrs.get("reduction", "mean"), ignored
    )


@converter("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(node: Node) -> Any:
    return _nll(node, node.tensor(0))


@converter("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(node: Node) -> Any:
    logarithms = node.emit(op.nn.log_softmax(node.tensor(0), 1))
    return [node.emit(_nll(node, logarithms)), logarithms]
