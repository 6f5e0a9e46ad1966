"""Checks that a function read from a script makes sense as a whole."""

from __future__ import annotations

from collections.abc import Container

from mlcweb.analysis.effects import reads_before_storing
from mlcweb.analysis.well_formed import WellFormed
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import AllocBuffer, Block


def check_well_formed(function: PrimFunc, inferred: Container[Block]) -> None:
    """Raise a DiagnosticError at the first fault of those that `analysis/well_formed.py` lists.
    `inferred` are the blocks without T.reads or T.writes."""
    rules = WellFormed(function, inferred)
    rules.check()
    for buffer, fault in rules.partial.items():
        if _may_be_read_unwritten(function, buffer):
            raise fault


def _may_be_read_unwritten(function: PrimFunc, buffer: Buffer) -> bool:
    """Whether elements of memory that the function allocates are read that it has not written."""

    def touches(node: Node) -> bool:
        return any(getattr(part, "buffer", None) is buffer for part in walk(node))

    return any(
        reads_before_storing(block.body, buffer, block.domains, touches)
        for block in find_nodes(function.body, Block)
        if buffer in block.alloc_buffers
    ) or any(
        reads_before_storing(allocation.body, buffer, {}, touches)
        for allocation in find_nodes(function.body, AllocBuffer)
        if allocation.buffer is buffer
    )
