"""Copies of parameters whose layout is free, with their elements in the order of the loops.

Such a copy is marked, so that it can be made ahead of calls: TVM's layout rewriting (Shao et al.,
"Tensor Program Optimization with Probabilistic Programs", NeurIPS 2022).
"""

from __future__ import annotations

from mlcweb.ir.visitor import find_nodes
from mlcweb.schedule.analysis.regions import loads_of
from mlcweb.schedule.analysis.tensorize import suggest_index_map
from mlcweb.schedule.schedule import Schedule
from mlcweb.schedule.state import BlockPlace
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad
from mlcweb.tir.function import prim_funcs
from mlcweb.tir.stmt import Block, BufferStore
from mlcweb.tir.substitute import substitute

LAYOUT_FREE = "layout_free_buffers"
"""The attribute of a function with the numbers of the parameters whose layout it may choose."""

PREPROC = "meta_schedule.layout_rewrite_preproc"
"""Marks a block that only brings a parameter into another layout."""


def free_buffers(sch: Schedule, function: str) -> dict[Buffer, int]:
    """The parameters of a function whose layout it may choose, with their positions."""
    func = prim_funcs(sch.mod)[function]
    numbers = [int(number) for number in func.attrs.get(LAYOUT_FREE, ())]
    return {func.parameter_buffers[number]: number for number in numbers}


def rewrite_layout(sch: Schedule, function: str, number: int) -> None:
    """Read a parameter through a marked copy that has its elements in the order of the loops that
    read it last; as it is where no layout has it so. Blocks that copy it before take that layout.
    `number` is its position among the parameters.
    """
    buffer = prim_funcs(sch.mod)[function].parameter_buffers[number]
    chain, reader = _readers(sch, function, buffer)
    if reader is None:
        return
    load = loads_of(reader.block.body, chain[-1][1] if chain else buffer)[0]
    axes = (axis.var for axis in reader.block.iter_vars)
    values = dict(zip(axes, reader.realize.iter_values, strict=True))
    indices = [substitute(index, values) for index in load.indices]
    layout = suggest_index_map(
        load.buffer, indices, reader.loops, substitute(reader.realize.predicate, values)
    )
    if layout is None:
        return
    copies = [sch.get_block(place.block.name_hint, function) for place, _ in chain]
    anchor = sch.get_block(reader.block.name_hint, function)
    at = [region.buffer for region in reader.block.reads].index(load.buffer)
    if not copies:
        sch.annotate(sch.cache_read(anchor, at, "global"), PREPROC, True)
    sch.transform_layout(anchor, ("read", at), layout)
    for place, _ in chain:
        copy = sch.get_block(place.block.name_hint, function)
        if place is chain[0][0]:
            sch.annotate(sch.cache_read(copy, 0, "global"), PREPROC, True)
        sch.transform_layout(copy, ("read", 0), layout)


def _readers(
    sch: Schedule, function: str, buffer: Buffer
) -> tuple[list[tuple[BlockPlace, Buffer]], BlockPlace | None]:
    """The blocks that copy a buffer element by element, one after the other, each with its copy,
    and the block that reads it, or the last copy, last."""
    chain: list[tuple[BlockPlace, Buffer]] = []
    last: BlockPlace | None = None
    for place in sch.state.index.blocks.values():
        if place.function != function or any(find_nodes(place.block.body, Block)):
            continue
        if not loads_of(place.block.body, buffer):
            continue
        copied = _copy(place.block, buffer)
        if copied is None:
            last = place
        else:
            chain.append((place, copied))
            buffer, last = copied, None
    return (chain, last) if last is not None else ([], None)


def _copy(block: Block, buffer: Buffer) -> Buffer | None:
    """The buffer to which a block copies each element of another; None where it does more."""
    match block.body:
        case BufferStore(buffer=target, value=BufferLoad() as value, indices=indices):
            same = len(indices) == len(value.indices) and all(
                a is b for a, b in zip(indices, value.indices, strict=True)
            )
            return target if same and value.buffer is buffer else None
    return None
