"""The default rules, post-processors and mutators for each kind of target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mlcweb.meta_schedule import mutator as M
from mlcweb.meta_schedule import postproc as P
from mlcweb.meta_schedule import schedule_rule as R
from mlcweb.meta_schedule.space import DEFAULTS, Defaults
from mlcweb.meta_schedule.space.tensor_core_tiling import wmma_groups
from mlcweb.runtime.target import Target
from mlcweb.runtime.target_facts import DEVICE_KINDS
from mlcweb.runtime.thread_pool import has_threads
from mlcweb.runtime.vector_unit import instruction_sets


def defaults_for(target: Target | None) -> Defaults:
    """The defaults of a target, by what generates its code here: those of "wasm", which know
    registers and vectors, are for machine code of LLVM, too; code of NumPy and the interpreter gets
    TVM's rules for CPUs, and so do targets of several cores, where there are threads to run
    parallel loops: with products of small integers by the instructions that a target names. A
    device with threads gets those for CUDA, with tensor cores from compute capability 7.5 on.

    Raises:
        ValueError: nothing generates code for the target.
    """
    if target is not None and target.kind.name in DEVICE_KINDS:
        tensor_cores = target.compute_capability >= TENSOR_CORES_SINCE
        return DEFAULTS["cuda-tensorcore" if tensor_cores else "cuda"]
    generator = (target or Target("cpu")).code_generator
    if not generator:
        raise ValueError(
            f'There are no default rules, post-processors and mutators for "{target}", which '
            "nothing here generates code for; give sch_rules=, postprocs= and mutator_probs=, or a "
            "schedule function as the space"
        )
    if generator in ("wasm", "llvm") and not in_parallel(target):
        return DEFAULTS["wasm"]
    return DEFAULTS["llvm" if target is None else _kind_of_processor(target)]


TENSOR_CORES_SINCE = 75
"""The compute capability, times 10, from which the default space has tensor cores, as in TVM."""


def _kind_of_processor(target: Target) -> str:
    """The rules for several cores that know the instructions which a target names. Those of Arm are
    left to programs that ask for them by name: no code is made of such instructions here."""
    has = instruction_sets(target)
    return "vnni" if "avx512vnni" in has else "avx512" if "avx512bw" in has else "llvm"


def in_parallel(target: Target | None) -> bool:
    """Whether programs for a target run on several cores."""
    return target is not None and int(target.attrs.get("num-cores", 1)) > 1 and has_threads()


def inlining(**changes: Any) -> R.AutoInline:
    """`AutoInline` with the flags for CPUs."""
    flags: dict[str, Any] = {
        "into_producer": False, "into_consumer": True, "inline_const_tensor": True,
        "disallow_if_then_else": True, "require_injective": True, "require_ordered": True,
        "disallow_op": ["tir.exp"],
    }  # fmt: skip
    return R.AutoInline(**{**flags, **changes})


WRITE_CACHE = R.ReuseType("may", [1, 2], "global")
"""Sums beside the array that they are for."""


def _cpu_rules(
    intrinsics: Sequence[str] = (), jobs: int = 16, extent: int = 64, unroll: int = 16
) -> list[R.ScheduleRule]:
    """Rules for several cores with vectors and, maybe, instructions that compute tiles.

    Args:
        intrinsics: those instructions.
        jobs: the most parallel iterations for each core.
        extent: the largest innermost factor, and the most lanes.
        unroll: the smallest bound of unrolling but 0.
    """
    return [
        R.ApplyCustomRule(),
        R.InlineConstantScalars(),
        inlining(),
        R.AddRFactor(max_jobs_per_core=jobs, max_innermost_factor=extent),
        *(
            R.MultiLevelTilingWithIntrin(
                name, "SSRSRS", max_innermost_factor=extent, reuse_write=WRITE_CACHE
            )
            for name in intrinsics
        ),
        R.MultiLevelTiling("SSRSRS", max_innermost_factor=extent, reuse_write=WRITE_CACHE),
        R.ParallelizeVectorizeUnroll(
            max_jobs_per_core=jobs,
            max_vectorize_extent=extent,
            unroll_max_steps=[0, unroll, 4 * unroll, 32 * unroll],
            unroll_explicit=True,
        ),
        R.RandomComputeLocation(),
    ]


def _arm_rules(*intrinsics: str) -> list[R.ScheduleRule]:
    return _cpu_rules(intrinsics, jobs=8, extent=32, unroll=8)


def _hexagon_rules() -> list[R.ScheduleRule]:
    return [
        R.ApplyCustomRule(),
        R.InlineConstantScalars(),
        inlining(),
        R.MultiLevelTilingWideVector("SRSRS", 1024, 128, reuse_write=WRITE_CACHE),
        R.ParallelizeVectorizeUnroll(
            max_jobs_per_core=16,
            max_vectorize_extent=128,
            unroll_max_steps=[0, 16, 64, 512],
            unroll_explicit=True,
        ),
    ]


def _llvm_postprocs() -> list[P.Postproc]:
    return [
        P.DisallowDynamicLoop(),
        P.RewriteParallelVectorizeUnroll(),
        P.RewriteReductionBlock(),
        P.RewriteLayout(),
    ]


def _tensorized_postprocs() -> list[P.Postproc]:
    *others, layout = _llvm_postprocs()
    return [*others, P.RewriteTensorize(vectorize_init_loop=True), layout]


def _llvm_mutators() -> dict[M.Mutator, float]:
    return {
        M.MutateTileSize(): 0.9,
        M.MutateComputeLocation(): 0.05,
        M.MutateUnroll(): 0.03,
        M.MutateParallel(max_jobs_per_core=16): 0.02,
    }


def _wasm_rules() -> list[R.ScheduleRule]:
    """For one thread: what matters is sums in registers and vectors."""
    return [
        R.ApplyCustomRule(),
        R.InlineConstantScalars(),
        R.FuseRows(),
        inlining(),
        R.ReduceInLanes(),
        R.RegisterTiling(),
        R.VectorLanes(),
        R.RandomComputeLocation(),
    ]


def _wasm_postprocs() -> list[P.Postproc]:
    return [
        P.DisallowDynamicLoop(),
        P.VerifyRegisters(),
        P.VectorizeInnermost(),
        P.RewriteReductionBlock(),
        P.VerifyVectorized(),
        P.RewriteLayout(),
    ]


def _wasm_mutators() -> dict[M.Mutator, float]:
    return {M.MutateTileSize(): 0.8, M.MutateComputeLocation(): 0.1}


def _cuda_rules() -> list[R.ScheduleRule]:
    return [
        R.ApplyCustomRule(),
        R.MultiLevelTiling(
            structure="SSSRRSRS",
            tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"],
            max_innermost_factor=64,
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=R.ReuseType("must", [4], "shared"),
            reuse_write=R.ReuseType("must", [3], "local"),
        ),
        R.InlineConstantScalars(),
        inlining(
            into_producer=True, disallow_if_then_else=False, require_injective=False,
            require_ordered=False, disallow_op=None,
        ),
        R.CrossThreadReduction([4, 8, 16, 32, 64, 128, 256, 512]),
        R.ParallelizeVectorizeUnroll(
            max_jobs_per_core=-1,
            max_vectorize_extent=-1,
            unroll_max_steps=[0, 16, 32, 64, 128, 256, 512, 1024],
            unroll_explicit=True,
        ),
        R.AutoBind(),
    ]  # fmt: skip


def _tensor_core_rules() -> list[R.ScheduleRule]:
    """TVM has a second rule of this kind, for `mma` instructions of 16 x 8 x 8; as it comes after
    one for the same products it has no part in a space."""
    tiling = R.MultiLevelTilingTensorCore(
        intrin_groups=wmma_groups(),
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 3, 4, 8, 16],
        reuse_read=R.ReuseType("must", [4], "shared.dyn"),
        reuse_write=R.ReuseType("must", [2], "shared.dyn"),
    )
    custom, *others = _cuda_rules()
    return [custom, tiling, *others]


def _tensor_core_postprocs() -> list[P.Postproc]:
    return [*_cuda_postprocs(), P.RewriteTensorize()]


def _cuda_postprocs() -> list[P.Postproc]:
    return [
        P.DisallowDynamicLoop(),
        P.RewriteCooperativeFetch(),
        P.RewriteUnboundBlock(),
        P.RewriteParallelVectorizeUnroll(),
        P.RewriteReductionBlock(),
        P.VerifyGPUCode(),
    ]


def _cuda_mutators() -> dict[M.Mutator, float]:
    return {M.MutateTileSize(): 0.9, M.MutateUnroll(): 0.08, M.MutateThreadBinding(): 0.02}


DEFAULTS |= {
    "cuda": Defaults(_cuda_rules, _cuda_postprocs, _cuda_mutators),
    "cuda-tensorcore": Defaults(_tensor_core_rules, _tensor_core_postprocs, _cuda_mutators),
    "wasm": Defaults(_wasm_rules, _wasm_postprocs, _wasm_mutators),
    "llvm": Defaults(_cpu_rules, _llvm_postprocs, _llvm_mutators),
    "hexagon": Defaults(_hexagon_rules, _llvm_postprocs, _llvm_mutators),
    **{
        kind: Defaults(rules, _tensorized_postprocs, _llvm_mutators)
        for kind, rules in {
            "vnni": partial(_cpu_rules, ["dot_16x4_vnni"]),
            "avx512": partial(_cpu_rules, ["dot_16x4_avx512"]),
            "asimd": partial(_arm_rules, "dot_4x4_i8i8s32_neon"),
            "dotprod": partial(
                _arm_rules, "dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"
            ),
        }.items()
    },
}
