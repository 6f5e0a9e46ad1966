"""The converters of functions, methods and ATen operators; importing this registers them."""

from mlcweb.relax.frontend.torch.functions import arithmetic, layers, movement, reductions
