"""The root block, which the source of a function leaves out where it says nothing.

The printer leaves it out exactly where the parser puts it back.
"""

from __future__ import annotations

from mlcweb.ir.visitor import walk
from mlcweb.tir import arithmetic
from mlcweb.tir import stmt as S


def implicit_root(body: S.Stmt) -> S.Block | None:
    """The root block, if the parser would add the same one by itself."""
    if not isinstance(body, S.BlockRealize) or body.iter_values:
        return None
    block = body.block
    special = block.annotations or block.match_buffers or block.reads or block.writes
    if special or block.init is not None or not arithmetic.is_const_int(body.predicate, 1):
        return None
    return block if needs_root(block.body, bool(block.alloc_buffers)) else None


def needs_root(body: S.Stmt, has_allocations: bool) -> bool:
    """Whether a function with this body gets a root block that the source does not write."""
    if has_allocations:
        return True
    if isinstance(body, S.BlockRealize):
        return bool(body.block.iter_vars)
    return any(isinstance(node, S.BlockRealize) for node in walk(body))
