"""The operators of the graph level: `relax.op.add(x, y)`, in scripts `R.add(x, y)`.

One file per family: how a result is deduced, how a call is lowered and what builds it stand
together, and one decorator registers them (registry.py). infer.py and legalize.py have the parts
that families share. The builders become attributes of this package and of its namespaces as they
are registered; `__init__.pyi` tells type checkers their names.
"""

from mlcweb.relax.op import (
    base, builtin, closure, create, device, elementwise, grad, image, index, inplace, joining,
    linear_algebra, manipulate, memory, nn, qdq, sampling, scatter, search, set, sorting,
    statistical, te_grad, vision, vm, window_grad,
)  # fmt: skip
from mlcweb.relax.op.grad import register_gradient

NAMESPACES = ("nn", "image", "vision", "memory", "builtin", "vm", "grad")
"""The modules of operators that scripts reach as `R.nn` and so on."""
