"""Operators of neural networks: `relax.op.nn`, `R.nn`."""

from mlcweb.relax.op.nn import (
    activation, convolution, dot_product_attention, loss, normalization, padding, pooling,
)  # fmt: skip
