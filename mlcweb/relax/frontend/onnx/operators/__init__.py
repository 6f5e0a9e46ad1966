"""The converters of ONNX operators, a family a file; importing this registers them."""

from mlcweb.relax.frontend.onnx.operators import (
    elementwise, indexing, layers, pooling, reductions, resizing, shapes,
)  # fmt: skip
