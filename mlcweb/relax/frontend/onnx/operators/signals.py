"""Windows of signals, made when the model is imported."""

from __future__ import annotations

import math

from mlcweb.relax.frontend.onnx.known import MAX_ELEMENTS, known
from mlcweb.relax.frontend.onnx.node import Node, Value, converter
from mlcweb.relax.frontend.onnx.tensors import dtype_name

_COSINES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""a, b and c of a - b cos(2 pi i / n) + c cos(4 pi i / n)."""


@converter(*_COSINES)
def _window(node: Node) -> Value:
    size = int(node.number(0, "size"))
    dtype = dtype_name(node.attrs.get("output_datatype", 1), f"{node}: the result")
    a, b, c = _COSINES[node.op_type]
    period = size if node.attrs.get("periodic", 1) else max(size - 1, 1)
    turns = [2 * math.pi * i / period for i in range(size)]
    values = [a - b * math.cos(turn) + c * math.cos(2 * turn) for turn in turns]
    tensor = known((size,), values, dtype)
    return tensor if size <= MAX_ELEMENTS else tensor.constant()
