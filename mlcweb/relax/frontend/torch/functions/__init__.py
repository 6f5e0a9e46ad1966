"""The converters of functions, methods and ATen operators; importing this registers them."""

from mlcweb.relax.frontend.torch.functions import (
    activations, arithmetic, control, conversions, creation, images, indexing, layers, movement,
    recurrent, reductions, sorting,
)  # fmt: skip
