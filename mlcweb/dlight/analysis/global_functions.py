"""What TVM registers as global functions `s_tir.schedule.…` (before: `tir.schedule.…`): programs
look them up where they have rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.dlight.analysis.blocks import normalize_prim_func
from mlcweb.ir.visitor import walk
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import (
    has_trivial_binding,
    is_reduction_block,
    is_spatial,
    place_of,
)
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.schedule.analysis.tensorize import (
    get_auto_tensorize_mapping_info,
    get_tensorize_loop_mapping,
    has_block,
    is_output_block,
    suggest_index_map,
)
from mlcweb.schedule.transform import tile_with_tensor_intrin
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.expr import Call, Select
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt import Block, BlockRealize, For, IfThenElse, IterType, IterVar, Stmt

_KINDS = {IterType.DATA_PARALLEL: "S", IterType.COMM_REDUCE: "R"}


def _realize(sch: Schedule, block: BlockRV) -> BlockRealize:
    return place_of(sch, block).realize


def _reduces(sch: Schedule, block: BlockRV, scope: BlockRV | None = None) -> bool:
    """Whether a block is a reduction block of the scope around it."""
    return is_reduction_block(sch.state, place_of(sch, block))


def _binds_its_loops(sch: Schedule, block: BlockRV) -> bool:
    return has_trivial_binding(place_of(sch, block))


def _kind_of(sch: Schedule, loop: LoopRV) -> str:
    """What a loop means to the blocks below it: "S", "R", or "O" for all else."""
    statement = sch.get(loop)
    assert isinstance(statement, For)
    return _KINDS.get(loop_type(statement), "O")


def _has_spatial_blocks_only(func: PrimFunc) -> bool:
    return all(is_spatial(node) for node in walk(func.body) if isinstance(node, Block))


def _has_if_then_else(statement: Stmt) -> bool:
    """Whether something in a statement is done, or chosen, on a condition."""
    return any(
        isinstance(node, (IfThenElse, Select))
        or (isinstance(node, Call) and operator_name(node) == "if_then_else")
        or (isinstance(node, BlockRealize) and not is_const_int(node.predicate, 1))
        for node in walk(statement)
    )


def _normalized(
    sch: Schedule,
) -> tuple[list[BlockRV], list[list[LoopRV]], list[list[IterVar]], list[bool]] | None:
    """The blocks in normal form, their loops, their iterators, and whether each reduces."""
    infos = normalize_prim_func(sch)
    if infos is None:
        return None
    blocks = [info.block_rv for info in infos]
    return (
        blocks,
        [info.get_loops() for info in infos],
        [list(place_of(sch, block).block.iter_vars) for block in blocks],
        [info.is_reduction() for info in infos],
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "GetBlockRealize": _realize,
    "GetSBlockRealize": _realize,
    "IsReductionBlock": _reduces,
    "IsTrivialBinding": _binds_its_loops,
    "GetLoopIterType": _kind_of,
    "IsSpatialPrimFunc": _has_spatial_blocks_only,
    "HasIfThenElse": _has_if_then_else,
    "NormalizePrimFunc": _normalized,
    "HasBlock": has_block,
    "IsOutputBlock": is_output_block,
    "SuggestIndexMap": suggest_index_map,
    "GetTensorizeLoopMapping": get_tensorize_loop_mapping,
    "GetAutoTensorizeMappingInfo": get_auto_tensorize_mapping_info,
    "TileWithTensorIntrin": tile_with_tensor_intrin,
}
