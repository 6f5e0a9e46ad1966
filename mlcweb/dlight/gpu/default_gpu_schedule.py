"""The pass `tvm.tir.transform.DefaultGPUSchedule`: each block in threads, as it stands."""

from __future__ import annotations

from mlcweb.dlight.base.transform import target_of
from mlcweb.dlight.gpu.fallback import BLOCKS, bind, has_threads
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import ModulePass, PassContext, PassInfo
from mlcweb.schedule import BlockRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import SPATIAL, extent_of, loop_of
from mlcweb.schedule.analysis.iteration_order import loop_type
from mlcweb.tir.function import SCHEDULED, PrimFunc

NAME = "DefaultGPUSchedule"


def default_gpu_schedule() -> ModulePass:
    """A pass that binds the spatial loops of each block to up to 256 blocks of threads, of as many
    as the target's `max_num_threads`; of more iterations, a thread takes several. Nothing is
    inlined, and a thread reduces alone.

    Functions get the attribute "tir.is_scheduled". Those that have it stay as they are, and so do
    those for targets without threads. The target is that of the function, else that of the
    surrounding `with target:`.
    """

    def scheduled(mod: IRModule, ctx: PassContext) -> IRModule:
        functions = {
            var: _scheduled(func)
            for var, func in mod.functions.items()
            if isinstance(func, PrimFunc) and SCHEDULED not in func.attrs
        }
        return mod.with_functions({**mod.functions, **functions})

    return ModulePass(scheduled, PassInfo(0, NAME))


def _scheduled(func: PrimFunc) -> PrimFunc:
    target = target_of(func, NAME)
    if "gpu" in target.keys and func.root_block is not None:
        sch = Schedule(func)
        for block in sch.get_child_blocks(sch.get_block("root")):
            if not sch.get_child_blocks(block) and not has_threads(sch, block):
                _put_in_threads(sch, block, int(target.limits["max_num_threads"]))
        func = sch.mod["main"]
    return func.with_attr(SCHEDULED, True)


def _put_in_threads(sch: Schedule, block: BlockRV, threads: int) -> None:
    spatial: list[LoopRV] = []
    others: list[LoopRV] = []
    for loop in sch.get_loops(block):
        (spatial if loop_type(loop_of(sch, loop)) == SPATIAL else others).append(loop)
    if not spatial:
        spatial.append(sch.add_unit_loop(others[0] if others else block))
    elif others:
        sch.reorder(*spatial, *others)
    fused = sch.fuse(*spatial)
    extent = extent_of(loop_of(sch, fused))
    bind(sch, fused, threads if extent is None else min(threads, extent), BLOCKS * threads)
