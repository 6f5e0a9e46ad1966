"""What rules ask of the blocks of a function: `normalize_prim_func` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlcweb.ir.visitor import walk
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.errors import ScheduleError
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S

_KINDS = {S.IterType.DATA_PARALLEL: "S", S.IterType.COMM_REDUCE: "R"}


@dataclass(frozen=True, slots=True)
class IterInfo:
    """An iterator of a block: "S" (spatial), "R" (reduced) or "O" (other), its variable, its
    extent, and the loop that it is bound to."""

    kind: str
    var: E.Var
    dom: int | E.PrimExpr
    loop_rv: LoopRV


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block each iterator of which is one loop."""

    name: str
    iters: tuple[IterInfo, ...]
    block_rv: BlockRV

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
        """Whether some iterators are reduced, and the others spatial."""
        return set(self.dom_kind()) in ({"S", "R"}, {"R"})

    def is_elementwise(self, sch: Schedule) -> bool:
        """Whether each iteration reads and writes the elements at its own position alone."""
        if not self.is_injective():
            return False
        block: Any = sch.get(self.block_rv)
        axes = [each.var for each in self.iters]
        regions = [region.region for region in (*block.reads, *block.writes)]
        return len(block.writes) == 1 and all(
            [part.min for part in region] == axes and all(_is_one(part.extent) for part in region)
            for region in regions
        )


def _is_one(extent: E.PrimExpr) -> bool:
    return isinstance(extent, E.IntImm) and extent.value == 1


def normalize_prim_func(sch: Schedule) -> list[BlockInfo] | None:
    """The blocks of the function "main" in order; None where the iterators of one are not bound to
    a loop each, or where blocks are nested."""
    try:
        blocks = sch.get_child_blocks(get_root_block(sch))
        infos = [get_block_info(sch, block) for block in blocks]
    except ScheduleError:
        return None
    found = [info for info in infos if info is not None]
    return found if len(found) == len(infos) else None


def get_root_block(sch: Schedule, func_name: str = "main") -> BlockRV:
    """The block around a whole function."""
    return sch.get_block("root", func_name)


def get_block_info(sch: Schedule, block: BlockRV) -> BlockInfo | None:
    """What is known of a block; None where its iterators are not bound to a loop each."""
    loops = sch.get_loops(block)
    node: Any = sch.get(block)
    if any(isinstance(part, S.Block) for part in walk(node.body)):
        return None
    loop_nodes: dict[LoopRV, Any] = {loop: sch.get(loop) for loop in loops}
    of_var = {part.loop_var: loop for loop, part in loop_nodes.items()}
    bindings = _realize_of(sch, node).iter_values
    iters = []
    for axis, binding in zip(node.iter_vars, bindings, strict=True):
        loop = of_var.pop(binding, None) if isinstance(binding, E.Var) else None
        if loop is None:
            return None
        extent = axis.dom.extent
        dom = extent.value if isinstance(extent, E.IntImm) else extent
        iters.append(IterInfo(_KINDS.get(axis.iter_type, "O"), axis.var, dom, loop))
    if any(not _is_one(loop_nodes[loop].extent) for loop in of_var.values()):
        return None
    return BlockInfo(node.name_hint, tuple(iters), block)


def _realize_of(sch: Schedule, block: S.Block) -> S.BlockRealize:
    for func in sch.mod.functions.values():
        body: Any = getattr(func, "body", None)
        if isinstance(body, S.Stmt):
            for part in walk(body):
                if isinstance(part, S.BlockRealize) and part.block is block:
                    return part
    raise AssertionError("a block of a schedule is in its module")


def collect_vars_used_in_prim_expr(expr: E.PrimExpr) -> set[E.Var]:
    """The variables of an expression."""
    return {node for node in walk(expr) if isinstance(node, E.Var)}


SBlockInfo = BlockInfo
get_sblock_info = get_block_info
