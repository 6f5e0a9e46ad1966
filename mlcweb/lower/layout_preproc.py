"""Blocks that only bring a parameter into another layout (`mlcweb.schedule.layout_rewrite`), and
functions without them, which take the parameter in that layout."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.schedule.layout_rewrite import PREPROC
from mlcweb.tir.buffer import Buffer, BufferRegion
from mlcweb.tir.expr import BufferLoad, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockRealize, BufferStore, Stmt, in_order, sequence


@dataclass(frozen=True, slots=True)
class LayoutCopy:
    """A marked copy of a parameter.

    Attributes:
        number: the position of the parameter.
        buffer: the copy.
        layout: where its elements lie.
        nest: the statement that makes it.
    """

    number: int
    buffer: Buffer
    layout: IndexMap
    nest: Stmt


def layout_copies(func: PrimFunc) -> list[LayoutCopy]:
    """The marked copies that a function makes of parameters which it does not access otherwise."""
    root = func.root_block
    if root is None:
        return []
    declared = {func.buffer_map.get(param): n for n, param in enumerate(func.params)}
    copies: list[LayoutCopy] = []
    nests = in_order(root.body)
    for nest in nests:
        store = _marked_store(nest)
        if store is None or not isinstance(store.value, BufferLoad):
            continue
        source, indices = store.value.buffer, store.value.indices
        variables = tuple(index for index in indices if isinstance(index, Var))
        others = (node for other in nests if other is not nest for node in walk(other))
        if (
            source in declared
            and len(variables) == len(set(variables)) == len(indices)
            and store.buffer in root.alloc_buffers
            and not any(node is source.data or _accessed(node) is source for node in others)
        ):
            layout = IndexMap(variables, store.indices)
            copies.append(LayoutCopy(declared[source], store.buffer, layout, nest))
    return copies


def without_layout_copies(func: PrimFunc, copies: list[LayoutCopy]) -> PrimFunc:
    """The function without marked copies of its own: it takes them as parameters in place of those
    that they are made of."""
    root = func.root_block
    if not copies or root is None:
        return func
    assert isinstance(func.body, BlockRealize)
    copied = {copy.nest for copy in copies}
    buffers = {copy.number: copy.buffer for copy in copies}
    params = tuple(
        Var(buffers[n].name, "handle") if n in buffers else param
        for n, param in enumerate(func.params)
    )
    declared = {
        new: buffers.get(n, func.buffer_map[old])
        for n, (new, old) in enumerate(zip(params, func.params, strict=True))
        if old in func.buffer_map
    }
    block = replace(
        root,
        body=sequence(*(nest for nest in in_order(root.body) if nest not in copied)),
        alloc_buffers=tuple(b for b in root.alloc_buffers if b not in buffers.values()),
    )
    body = replace(func.body, block=block)
    return replace(func, params=params, buffer_map=declared, body=body)


@lowering_pass("RemoveWeightLayoutRewriteBlock")
def remove_layout_copies(func: PrimFunc) -> PrimFunc:
    """`without_layout_copies` of all that a function makes."""
    return without_layout_copies(func, layout_copies(func))


def _accessed(node: Node) -> Buffer | None:
    is_access = isinstance(node, (BufferLoad, BufferStore, BufferRegion))
    return node.buffer if is_access else None


def _marked_store(nest: Stmt) -> BufferStore | None:
    """What a nest stores that makes nothing but a marked copy."""
    blocks = list(find_nodes(nest, Block))
    if len(blocks) != 1 or PREPROC not in blocks[0].annotations:
        return None
    body = blocks[0].body
    return body if isinstance(body, BufferStore) else None
