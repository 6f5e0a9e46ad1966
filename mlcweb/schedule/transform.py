"""Steps that are made of several primitives."""

from __future__ import annotations

from mlcweb.schedule.analysis.block_facts import place_of
from mlcweb.schedule.analysis.tensorize import get_tensorize_loop_mapping, is_output_block
from mlcweb.schedule.instruction import BlockRV, LoopRV
from mlcweb.schedule.schedule import Schedule
from mlcweb.tir.tensor_intrin import TensorIntrin


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Tile the loops around a block so that those of a registered intrinsic are innermost; return
    the outermost of these, which `tensorize` takes, or None where the intrinsic does not fit.

    Args:
        allow_padding: whether to pad extents that are no multiples of the intrinsic's.
    """
    intrinsic = TensorIntrin.get(intrin_name)
    assert intrinsic is not None
    info = get_tensorize_loop_mapping(sch, block, intrinsic.desc, allow_padding)
    if info is None:
        return None
    loops = {sch.get_sref(loop): loop for loop in sch.get_loops(block)}
    mapped = {
        info.desc_loop_indexer[described]: (loops[sref], described)
        for sref, described in info.loop_map.items()
    }
    if info.block_iter_paddings is not None:
        before = {place_of(sch, b).block.identity for b in _neighbours(sch, block)}
        sch.pad_einsum(block, info.block_iter_paddings)
        for other in _neighbours(sch, block):
            is_new = place_of(sch, other).block.identity not in before
            if is_new and not is_output_block(sch, other):
                sch.compute_inline(other)
    inner = {}
    for number, (loop, described) in mapped.items():
        _, inner[number] = sch.split(loop, [None, described.extent])
    tile = [inner[number] for number in sorted(inner)]
    inside = [sch.get(loop) for loop in tile]
    around = sch.get_loops(block)
    first = min(n for n, loop in enumerate(around) if sch.get(loop) in inside)
    sch.reorder(*(loop for loop in around[first:] if sch.get(loop) not in inside), *tile)
    return tile[0]


def _neighbours(sch: Schedule, block: BlockRV) -> list[BlockRV]:
    """The blocks that make what a block reads, and those that read what it makes."""
    return [*sch.get_producers(block), *sch.get_consumers(block)]
