"""The passes of this package under the names that TVM gives them (`tvm.tir.transform`).

Each call gives a `Pass` of modules: `Simplify()(mod)`. A name means what it means in TVM; of those
that are not here, `import tvm` says what there is instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mlcweb.analysis.queries import verify_memory
from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided, provided_names
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.transform import ModulePass, PassContext, PassInfo
from mlcweb.ir.visitor import Mutator, walk
from mlcweb.lower import (
    async_copies,
    construct_passes,
    double_buffer,
    hoist_conditions,
    local_stage,
    loop_partition,
    named_passes,
    narrow_floats,
    software_pipeline,
    stmt_simplify,
    unroll_loop,
)
from mlcweb.lower.common_subexpr_elim import common_subexpr_elim
from mlcweb.lower.compact_buffers import compact_beyond_shapes, compact_buffers
from mlcweb.lower.flatten_buffers import flatten_buffer
from mlcweb.lower.inject_virtual_thread import inject_virtual_thread
from mlcweb.lower.inline_private_functions import inline_private_functions
from mlcweb.lower.layout_preproc import remove_layout_copies
from mlcweb.lower.lift_thread_binding import lift_thread_binding
from mlcweb.lower.lower_cross_thread_reduction import lower_cross_thread_reduction
from mlcweb.lower.lower_init_block import lower_init_block
from mlcweb.lower.lowering_pass import PREFIX, LoweringPass, PrimFuncPass
from mlcweb.lower.merge_shared_memory import merge_shared_memory
from mlcweb.lower.mma_buffer_layout import transform_mma_buffer_layout
from mlcweb.lower.narrow_formats import BFLOAT16, FLOATS_OF_8_BITS
from mlcweb.lower.narrow_indices import narrow_all_indices, narrow_loops
from mlcweb.lower.permuted_layout import inject_permuted_layout
from mlcweb.lower.renormalize_split_pattern import renormalize_split_pattern
from mlcweb.lower.storage_rewrite import storage_rewrite
from mlcweb.lower.thread_allreduce import lower_thread_allreduce
from mlcweb.lower.thread_launches import with_launches_as_loops
from mlcweb.lower.thread_sync import thread_sync
from mlcweb.lower.unify_thread_binding import unify_thread_binding
from mlcweb.lower.vectorize_loop import vectorize_loop
from mlcweb.tir.fresh_copy import convert_ssa
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, ForKind
from mlcweb.tir.target_description import TargetDescription

prim_func_pass = PrimFuncPass.decorator
StmtSimplifyConfig = stmt_simplify.StmtSimplifyConfig
UnrollLoopConfig = unroll_loop.UnrollLoopConfig
LoopPartitionConfig = loop_partition.LoopPartitionConfig
HoistExpressionConfig = hoist_conditions.HoistExpressionConfig
HoistIfThenElseConfig = hoist_conditions.HoistIfThenElseConfig
HoistedConditionals = hoist_conditions.HoistedConditionals
HoistedLetBindings = hoist_conditions.HoistedLetBindings
InjectDoubleBufferConfig = double_buffer.InjectDoubleBufferConfig


def _named(name: str, run: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
    return LoweringPass(run, name)


def _rewritten_by(mutator: type[Mutator]) -> Callable[[PrimFunc], PrimFunc]:
    return lambda func: func.with_body(mutator().rewrite(func.body))


def CompactBufferAllocation(is_strict: bool = True) -> PrimFuncPass:
    """Makes buffers as small as their accesses allow; if it is not strict, these may leave the
    shapes of buffers, which then grow."""
    compact = compact_buffers if is_strict else compact_beyond_shapes
    return _named("CompactBufferAllocation", lambda func: compact(_with_opaque_blocks(func)))


def _with_opaque_blocks(func: PrimFunc) -> PrimFunc:
    if any(isinstance(node, Block) and node.iter_vars for node in walk(func.body)):
        raise TVMError(
            "Buffers are compacted in blocks without iterators: run ConvertBlocksToOpaque"
        )
    return func


def _verify_memory(func: PrimFunc) -> PrimFunc:
    if not verify_memory(func):
        name = func.attrs.get("global_symbol", "main")
        raise TVMError(
            f'Memory verification failed: "{name}" touches memory outside of its threads; bind its '
            "loops to blockIdx and threadIdx"
        )
    return func


_FUNCTIONS: dict[str, Callable[[PrimFunc], PrimFunc]] = {
    "PlanAndUpdateBufferAllocationLocation": named_passes.plan_buffer_allocation,
    "LowerMatchBuffer": lambda func: named_passes.LowerMatchBuffer().run(func),
    "LowerOpaqueBlock": named_passes.lower_opaque_block,
    "ConvertForLoopsToSerial": functools.partial(
        named_passes.with_serial_loops, kind=ForKind.PARALLEL
    ),
    "BF16ComputeLegalize": lambda func: narrow_floats.legalize_compute(func, BFLOAT16),
    "BF16StorageLegalize": lambda func: narrow_floats.legalize_storage(func, BFLOAT16),
    "FP8StorageLegalize": lambda func: narrow_floats.legalize_storage(func, *FLOATS_OF_8_BITS),
    "InjectSoftwarePipeline": software_pipeline.inject_software_pipeline,
    "InjectDoubleBuffer": double_buffer.inject_double_buffer,
    "InjectPTXAsyncCopy": async_copies.inject_ptx_async_copy,
    "ConvertSSA": convert_ssa,
    "FlattenBuffer": flatten_buffer,
    "LiftThreadBinding": lift_thread_binding,
    "ManifestSharedMemoryLocalStage": local_stage.manifest_local_stage,
    "InjectVirtualThread": inject_virtual_thread,
    "InjectPermutedLayout": inject_permuted_layout,
    "TransformMmaBufferLayout": transform_mma_buffer_layout,
    "MergeSharedMemoryAllocations": merge_shared_memory,
    "LowerThreadAllreduce": with_launches_as_loops(
        lambda func: lower_thread_allreduce(func, barriers=True)
    ),
    "LowerCrossThreadReduction": lower_cross_thread_reduction,
    "StorageRewrite": storage_rewrite,
    "LoopPartition": loop_partition.loop_partition,
    "ForceNarrowIndexToInt32": narrow_all_indices,
    "RenormalizeSplitPattern": renormalize_split_pattern,
    "Simplify": stmt_simplify.stmt_simplify,
    "StmtSimplify": stmt_simplify.stmt_simplify,
    "UnifyThreadBinding": unify_thread_binding,
    "VerifyMemory": _verify_memory,
    **{
        mutator.__name__: _rewritten_by(mutator)
        for mutator in (
            named_passes.ConvertBlocksToOpaque,
            named_passes.RemoveNoOp,
            named_passes.CanonicalizeLoop,
            named_passes.SkipAssert,
            named_passes.RemoveAssume,
            named_passes.RewriteUnsafeSelect,
            named_passes.RemoveStoreUndef,
            named_passes.AnnotateIrregularLoop,
            unroll_loop.UnrollLoop,
        )
    },
    **{
        name: functools.partial(construct_passes.checked, name)
        for name in construct_passes.CONSTRUCTS
    },
}
_PASSES: dict[str, PrimFuncPass] = {
    **{name: _named(name, run) for name, run in _FUNCTIONS.items()},
    **{
        info.name.removeprefix(PREFIX): run
        for run in (lower_init_block, hoist_conditions.hoist_expression, common_subexpr_elim)
        for info in run.infos
    },
}
"""Those that have no options."""


def ThreadSync(storage_scope: str) -> PrimFuncPass:
    """Puts barriers between accesses of different threads to "shared" memory. Those of a "warp"
    take none, but where it has memory of its own, which is refused."""
    if storage_scope == "warp":
        checked = construct_passes.checked
        return _named("ThreadSync", lambda func: checked("ThreadSync", func, "LowerWarpMemory"))
    if not storage_scope.startswith("shared"):
        raise TVMError(f'Barriers are for "shared" memory here, not for "{storage_scope}"')
    return _named("ThreadSync", with_launches_as_loops(thread_sync))


def VectorizeLoop(enable_vectorize: bool = True) -> PrimFuncPass:
    """Makes vectors of the loops that are marked so, or serial loops."""
    serial = functools.partial(named_passes.with_serial_loops, kind=ForKind.VECTORIZED)
    return _named("VectorizeLoop", vectorize_loop if enable_vectorize else serial)


def FP8ComputeLegalize(promote_dtype: str = "float32") -> PrimFuncPass:
    """Computes in float32 what is computed in floats of 8 bits."""
    if promote_dtype != "float32":
        raise TVMError(f"Floats of 8 bits are computed in float32 here, not in {promote_dtype}")
    return _named(
        "FP8ComputeLegalize", lambda func: narrow_floats.legalize_compute(func, *FLOATS_OF_8_BITS)
    )


def RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite: bool = False) -> PrimFuncPass:
    """Takes out the copies of parameters in another layout that `RewriteLayout` makes: functions
    take such parameters in that layout.

    Args:
        skip_tensor_rewrite: accepted as in TVM; functions hold no constants whose elements to move.
    """
    return remove_layout_copies


def NarrowDataType(target_bits: int) -> PrimFuncPass:
    """Narrows loops over int64 of which all index arithmetic fits into so many bits."""
    return _named("NarrowDataType", lambda func: narrow_loops(func, target_bits))


HOST_FUNCTION = "tir.is_host_func"
"""The attribute of functions that run on the host, whatever the target is."""


def BindTarget(target: Any) -> PrimFuncPass:
    """Says for which target functions are that do not say it. Those that others call from outside
    get the target's host as well, if they have none. Functions of the host get the host, or LLVM
    where the target has none."""

    def bind(func: PrimFunc) -> PrimFunc:
        own_target, exposed = func.attrs.get("target"), "global_symbol" in func.attrs
        if own_target is None and func.attrs.get(HOST_FUNCTION):
            host = target.host or type(target)("llvm")
            return func.without_attr(HOST_FUNCTION).with_attr("target", _with_host(host, host))
        if own_target is None:
            return func.with_attr("target", target if exposed else _with_host(target, None))
        if exposed and own_target.host is None and target.host is not None:
            return func.with_attr("target", _with_host(own_target, target.host))
        return func

    return _named("BindTarget", bind)


def _with_host(target: Any, host: Any) -> Any:
    """A target, or the description of one, with another host, or none."""
    if isinstance(target, TargetDescription):
        return replace(target, host=host)
    return type(target)(target.export(), host)


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
    """What a Python function makes of each function."""
    return _named("Apply", ftransform)


def Filter(fcond: Callable[[PrimFunc], bool]) -> ModulePass:
    """Leaves out the functions of TensorIR for which a Python function gives false."""

    def kept(mod: IRModule, ctx: PassContext) -> IRModule:
        functions: dict[Any, Any] = {
            var: func
            for var, func in mod.functions.items()
            if not isinstance(func, PrimFunc) or fcond(func)
        }
        return mod.with_functions(functions)

    return ModulePass(kept, PassInfo(0, "tir.Filter"))


def InlinePrivateFunctions() -> ModulePass:
    """Puts functions that only their module knows where they are called."""
    return ModulePass(
        lambda mod, ctx: inline_private_functions(mod), PassInfo(0, "tir.InlinePrivateFunctions")
    )


def AnnotateEntryFunc() -> ModulePass:
    """Marks the function that a module of one, or with a "main", begins with."""

    def marked(mod: IRModule, ctx: PassContext) -> IRModule:
        only = len(mod.functions) == 1
        functions: dict[Any, Any] = {
            var: func.with_attr("tir.is_entry_func", True)
            if only or var.name_hint == "main"
            else func
            for var, func in mod.functions.items()
        }
        return mod.with_functions(functions)

    return ModulePass(marked, PassInfo(0, "tir.AnnotateEntryFunc"))


def HoistIfThenElse(variant: str | None = None) -> PrimFuncPass:
    """Moves the conditions of `if` statements out of loops; unless "basic", out of launches of
    threads, too, if the option "tir.HoistIfThenElse" says so.

    Raises:
        ValueError: there is no such variant.
    """
    if variant is None:
        return hoist_conditions.hoist_if_then_else
    if variant != "basic":
        raise ValueError(f'HoistIfThenElse has the variants None and "basic", not {variant!r}')
    return _named("HoistIfThenElseBasic", hoist_conditions.hoist_out_of_loops)


def InjectPTXLDG32(enable_inject_ptx_intrin: bool = True) -> PrimFuncPass:
    """For programs without threads, which stay; if not enabled, for all."""
    checked = construct_passes.checked if enable_inject_ptx_intrin else lambda name, func: func
    return _named("InjectPTXLDG32", lambda func: checked("InjectPTXLDG32", func))


def VerifyVTCMLimit(default_target: Any = None) -> PrimFuncPass:
    """For programs without memory of a Hexagon, which stay."""
    return _named("VerifyVTCMLimit", lambda func: construct_passes.checked("VerifyVTCMLimit", func))


def __getattr__(name: str) -> Any:
    if name not in _PASSES:
        return provided(__name__, name)

    def make() -> PrimFuncPass:
        return _PASSES[name]

    make.__name__ = make.__qualname__ = name
    return make


def __dir__() -> list[str]:
    return [*globals(), *_PASSES, *provided_names(__name__)]
