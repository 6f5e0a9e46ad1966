"""Products in one form: C[batch, i, j] += A[batch, i, k] * B[batch, j, k]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.dlight.analysis import get_root_block
from mlcweb.schedule import BlockRV, Schedule, ScheduleError
from mlcweb.tir.arithmetic import const, is_const_int
from mlcweb.tir.buffer import BufferRegion
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.stmt import Block, IterType
from mlcweb.tir.substitute import variables_in

_SPATIAL, _REDUCED = IterType.DATA_PARALLEL, IterType.COMM_REDUCE


@dataclass(frozen=True, slots=True)
class ProductMaps:
    """Maps that fuse the iterators of a product, and the dimensions of its buffers, to the form."""

    block: IndexMap
    a: IndexMap
    b: IndexMap
    c: IndexMap


def product_maps(block: Block) -> ProductMaps | None:
    """The maps of a block; None where it is no product of matrices.

    Each spatial iterator is in C and in A (then it is one of i), in B (of j) or in both (of the
    batch); each reduced one is in A and B (of k). There are some of i, j and k.
    """
    if (len(block.reads), len(block.writes)) != (2, 1):
        return None
    regions = (*block.reads, *block.writes)
    if not all(is_const_int(part.extent, 1) for region in regions for part in region.region):
        return None
    uses = [_used(region) for region in regions]
    kinds: dict[Var, str] = {}
    for axis in block.iter_vars:
        assert axis.dom is not None
        if is_const_int(axis.dom.extent, 1):
            kinds[axis.var] = "1"
            continue
        kind = _kind(axis.iter_type, *(axis.var in used for used in uses))
        if kind is None:
            return None
        kinds[axis.var] = kind
    if not {"i", "j", "k"} <= set(kinds.values()):
        return None

    def fused(order: str, used: Collection[Var] | None = None) -> IndexMap:
        return _fused(block, kinds, order, used)

    return ProductMaps(
        fused("sijk"), fused("sik", uses[0]), fused("sjk", uses[1]), fused("sij", uses[2])
    )


def _used(region: BufferRegion) -> set[Var]:
    return variables_in(*(part.min for part in region.region))


def _kind(iter_type: IterType, in_a: bool, in_b: bool, in_c: bool) -> str | None:
    spatial = {(True, True, True): "s", (True, False, True): "i", (False, True, True): "j"}
    if iter_type == _SPATIAL:
        return spatial.get((in_a, in_b, in_c))
    return "k" if iter_type == _REDUCED and (in_a, in_b, in_c) == (True, True, False) else None


def _fused(
    block: Block, kinds: dict[Var, str], order: str, used: Collection[Var] | None
) -> IndexMap:
    """A map of iterators to one for each kind of `order`."""
    inputs: list[Var] = []
    of_kind: dict[str, PrimExpr] = {}
    dtype = block.iter_vars[0].var.dtype
    for axis in block.iter_vars:
        if used is not None and axis.var not in used:
            continue
        assert axis.dom is not None
        kind, extent = kinds[axis.var], axis.dom.extent
        var = Var(f"i{len(inputs)}", extent.dtype)
        inputs.append(var)
        if kind != "1":
            before = of_kind.get(kind)
            of_kind[kind] = var if before is None else before * extent + var
    return IndexMap(tuple(inputs), tuple(of_kind.get(kind, const(0, dtype)) for kind in order))


def only_reduction(sch: Schedule) -> BlockRV | None:
    """The only block that reduces, where all others are spatial."""
    reductions: list[BlockRV] = []
    for block in sch.get_child_blocks(get_root_block(sch)):
        statement: Any = sch.get(block)
        types = {axis.iter_type for axis in statement.iter_vars}
        if types == {_SPATIAL, _REDUCED}:
            reductions.append(block)
        elif types != {_SPATIAL}:
            return None
    return reductions[0] if len(reductions) == 1 else None


def in_product_form(sch: Schedule, block: BlockRV) -> bool:
    """Bring a product to the form, with copies of its operands and its result in their layouts.
    Whether it is one."""
    if product_maps(_statement(sch, block)) is None:
        return False
    a = sch.reindex(block, ("read", 0))
    b = sch.reindex(block, ("read", 1))
    c = sch.reindex(block, ("write", 0))
    maps = product_maps(_statement(sch, block))
    if maps is None:
        raise ScheduleError("The product is none by the indices of copies")
    sch.transform_layout(a, ("write", 0), maps.a)
    sch.transform_layout(b, ("write", 0), maps.b)
    sch.transform_layout(c, ("read", 0), maps.c)
    sch.transform_block_layout(block, maps.block)
    return True


def _statement(sch: Schedule, block: BlockRV) -> Block:
    statement: Any = sch.get(block)
    return statement


def inline_producers(sch: Schedule, block: BlockRV) -> None:
    """Inline all that a block is computed from, as far as that goes."""
    while any(_tried(sch.compute_inline, _all(sch.get_producers, block))):
        pass


def inline_consumers(sch: Schedule, block: BlockRV) -> None:
    """Inline all that is computed from a block.

    Raises:
        ScheduleError: something is left.
    """
    _inline_consumers(sch, block)
    for consumer in sch.get_consumers(block):
        for producer in sch.get_producers(consumer):
            if sch.get(producer) is not sch.get(block):
                inline_producers(sch, producer)
                sch.compute_inline(producer)
    _inline_consumers(sch, block)
    if sch.get_consumers(block):
        raise ScheduleError("What is computed from the product cannot be computed with it")


def _inline_consumers(sch: Schedule, block: BlockRV) -> None:
    while True:
        consumers = _all(sch.get_consumers, block)
        into_users = _tried(sch.compute_inline, consumers)
        into_block = _tried(sch.reverse_compute_inline, consumers)
        if not any((*into_users, *into_block)):
            return


def _all(neighbours: Callable[[BlockRV], Sequence[BlockRV]], block: BlockRV) -> list[BlockRV]:
    """The neighbours of a block, with theirs after each."""
    return [reached for near in neighbours(block) for reached in (near, *_all(neighbours, near))]


def _tried(inline: Callable[[BlockRV], None], blocks: Iterable[BlockRV]) -> list[bool]:
    """For each block whether it could be inlined."""

    def done(block: BlockRV) -> bool:
        try:
            inline(block)
        except ScheduleError:
            return False
        return True

    return [done(block) for block in blocks]
