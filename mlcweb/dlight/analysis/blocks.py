"""The blocks of a function in normal form: each iterator is one loop, and none has extent one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import is_reduction_block, place_of
from mlcweb.schedule.errors import ScheduleError
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, is_const_int

_KINDS = {S.IterType.DATA_PARALLEL: "S", S.IterType.COMM_REDUCE: "R"}


@dataclass(frozen=True, slots=True)
class IterInfo:
    """An iterator of a block: "S" (spatial), "R" (reduced) or "O" (other), its variable, its
    extent, and the loop that it is bound to."""

    kind: str
    var: E.Var
    dom: int | E.PrimExpr
    loop_rv: LoopRV

    def __str__(self) -> str:
        return f'Iter("{self.kind}", {self.dom})'


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block each iterator of which is one loop."""

    name: str
    iters: tuple[IterInfo, ...]
    block_rv: BlockRV
    reduction_block: bool = False

    def __str__(self) -> str:
        return f'SBlockInfo("{self.name}", "{self.dom_kind()}", {self.dom()})'

    def dom(self) -> list[int | E.PrimExpr]:
        """The extents of the iterators."""
        return [each.dom for each in self.iters]

    def dom_kind(self) -> str:
        """The kinds of the iterators, such as "SSR"."""
        return "".join(each.kind for each in self.iters)

    def get_loops(self) -> list[LoopRV]:
        """The loops, outermost iterator first."""
        return [each.loop_rv for each in self.iters]

    def is_injective(self) -> bool:
        """Whether all iterators are spatial."""
        return all(kind == "S" for kind in self.dom_kind())

    def is_reduction(self) -> bool:
        """Whether the block reduces: it alone writes its output, and each element in all of the
        iterations of its iterators "R"."""
        return self.reduction_block

    def is_elementwise(self, sch: Schedule) -> bool:
        """Whether each iteration reads and writes one element, at its own position."""
        if not self.is_injective():
            return False
        block: Any = sch.get(self.block_rv)
        axes = [each.var for each in self.iters]
        regions = [region.region for region in (*block.reads, *block.writes)]
        return (len(block.reads), len(block.writes)) == (1, 1) and all(
            [part.min for part in region] == axes
            and all(is_const_int(part.extent, 1) for part in region)
            for region in regions
        )


def normalize_prim_func(sch: Schedule) -> list[BlockInfo] | None:
    """The blocks of the function "main" in order, after iterators of extent one have been taken
    out of them; a block without spatial iterators gets one of extent one.

    None where the iterators of a block are not its loops, one for one and in order.
    """
    try:
        blocks = sch.get_child_blocks(get_root_block(sch))
        if not all(_binds_its_loops(sch, block) for block in blocks):
            return None
        for block in blocks:
            _drop_unit_iterators(sch, block)
        return [_block_info(sch, block) for block in blocks]
    except ScheduleError:
        return None


def get_root_block(sch: Schedule, func_name: str = "main") -> BlockRV:
    """The block around a whole function."""
    return sch.get_block("root", func_name)


def get_block_info(sch: Schedule, block: BlockRV) -> BlockInfo | None:
    """What is known of a block; None where its iterators are not its loops."""
    return _block_info(sch, block) if _binds_its_loops(sch, block) else None


def _binds_its_loops(sch: Schedule, block: BlockRV) -> bool:
    place = place_of(sch, block)
    bindings = list(place.realize.iter_values)
    return not place.loops or (
        bindings == [loop.loop_var for loop in place.loops]
        and all(is_const_int(loop.min, 0) for loop in place.loops)
    )


def _drop_unit_iterators(sch: Schedule, block: BlockRV) -> None:
    axes = place_of(sch, block).block.iter_vars
    inputs = [E.Var(axis.var.name, axis.var.dtype) for axis in axes]
    kept = [
        (axis, var)
        for axis, var in zip(axes, inputs, strict=True)
        if axis.dom is not None and not is_const_int(axis.dom.extent, 1)
    ]
    outputs: list[E.PrimExpr] = [var for _, var in kept]
    if not any(axis.iter_type == S.IterType.DATA_PARALLEL for axis, _ in kept):
        outputs.insert(0, const(0, "int64"))
    sch.transform_block_layout(block, IndexMap(tuple(inputs), tuple(outputs)))


def _block_info(sch: Schedule, block: BlockRV) -> BlockInfo:
    place = place_of(sch, block)
    iters = []
    for axis, loop in zip(place.block.iter_vars, sch.get_loops(block), strict=False):
        assert axis.dom is not None
        extent = axis.dom.extent
        dom = extent.value if isinstance(extent, E.IntImm) else extent
        iters.append(IterInfo(_KINDS.get(axis.iter_type, "O"), axis.var, dom, loop))
    reduces = is_reduction_block(sch.state, place)
    return BlockInfo(place.block.name_hint, tuple(iters), block, reduces)


SBlockInfo = BlockInfo
get_sblock_info = get_block_info
