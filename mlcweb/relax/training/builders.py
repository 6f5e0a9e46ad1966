"""What losses and optimizers share."""

from __future__ import annotations

from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder, BuilderError


def emitted(expr: E.Expr, name: str = "") -> E.Var:
    """A new variable of the function that is being built."""
    builder = BlockBuilder.current()
    if builder is None:
        raise BuilderError("There is no function being built: use `with bb.function(name):`")
    return builder.emit(expr, name)
