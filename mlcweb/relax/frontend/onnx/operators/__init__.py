"""The converters of ONNX operators, a family a file; importing this registers them."""

from mlcweb.relax.frontend.onnx.operators import (
    attention, elementwise, images, indexing, layers, losses, pooling, quantized, recurrent,
    reductions, regions, resizing, sequences, shapes, signals, sorting, transformers,
)  # fmt: skip
