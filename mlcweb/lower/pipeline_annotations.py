"""What programs say of software pipelines: annotations of loops, and of the blocks in them.

Lowering dissolves blocks before it makes pipelines; what they say stays as attributes of their
bodies.
"""

from __future__ import annotations

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc

STAGE = "software_pipeline_stage"
ORDER = "software_pipeline_order"
ASYNC_STAGES = "software_pipeline_async_stages"
ANNOTATIONS = (STAGE, ORDER, ASYNC_STAGES)

DOUBLE_BUFFER = "double_buffer_scope"
"""Of a block: which of the buffers that it writes has at least two versions in a pipeline."""

TWO_VERSIONS = "pipeline_double_buffer"
"""The attribute of what writes a buffer of two versions, where its block is dissolved."""


class PipelineError(TVMError, ValueError):
    """The annotations of a software pipeline do not fit its loop, or break a dependence."""


def is_pipelined(node: Node) -> bool:
    """Whether a node is a loop with annotations of a software pipeline."""
    return isinstance(node, S.For) and (STAGE in node.annotations or ORDER in node.annotations)


def has_pipelines(func: PrimFunc) -> bool:
    """Whether a function has a loop with such annotations."""
    return any(map(is_pipelined, S.statements_in(func.body)))


def doubled_buffers(block: S.Block) -> list[Buffer]:
    """The buffer that a block asks two versions of, if it does."""
    number = constant_value(block.annotations.get(DOUBLE_BUFFER))
    if number is None:
        return []
    if not 0 <= number < len(block.writes):
        raise PipelineError(
            f'"{DOUBLE_BUFFER}" of block "{block.name_hint}" is {number}, and the block writes '
            f"{len(block.writes)} buffers: it is the number of one of these, from 0 on",
            block.span,
        )
    return [block.writes[int(number)].buffer]


def with_attributes(block: S.Block, body: S.Stmt) -> S.Stmt:
    """What is left of a block, with attributes for what the block says."""
    for buffer in doubled_buffers(block):
        body = S.AttrStmt(buffer.data, TWO_VERSIONS, const(2), body)
    return body
