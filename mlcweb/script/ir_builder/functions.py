"""The function that statements make up."""

from __future__ import annotations

from mlcweb.ir.span import Span
from mlcweb.script.ir_builder.statements import StatementBuilder
from mlcweb.script.root_block import needs_root
from mlcweb.tir import arithmetic
from mlcweb.tir import stmt as S
from mlcweb.tir.function import PrimFunc


def finish(
    builder: StatementBuilder,
    body: S.Stmt,
    returns: str | None,
    private: bool,
    span: Span | None = None,
) -> PrimFunc:
    """The function with this body, and a root block where it has blocks and writes none."""
    function = builder.function
    if needs_root(body, bool(function.alloc_buffers)):
        allocations = tuple(function.alloc_buffers)
        root = S.Block((), (), (), "root", body, alloc_buffers=allocations)
        body = S.BlockRealize((), arithmetic.const(True), root)
    elif isinstance(body, S.BlockRealize) and body in builder.inferred:
        # A root block that the source writes out: like the implied one, it declares no regions.
        body = builder.inferred[body].realize(body.block.body, lambda block: ((), ()))
    if not private:
        function.attrs.setdefault("global_symbol", function.name)
    return PrimFunc(
        tuple(function.params),
        body,
        returns,
        {p: function.buffer_map[p] for p in function.params if p in function.buffer_map},
        attrs=function.attrs,
        span=span,
    )
