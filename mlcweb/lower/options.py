"""Options that TVM's programs set in a `PassContext`, beside those that a pass here reads.

Those of `UNUSED` choose between ways to compute the same; there is one way here, so they are taken
and change nothing.
"""

from __future__ import annotations

from typing import Any, TypeVar

from mlcweb.ir.errors import TVMError
from mlcweb.ir.transform import PassContext, register_option

Config = TypeVar("Config")

DISABLE_ASSERT = register_option("tir.disable_assert", bool)
"""Whether assertions are left out."""

BOUND_CHECKERS = register_option("tir.instrument_bound_checkers", bool)
"""Whether accesses are checked: TVM's name for "mlcweb.bounds_check"."""

UNROLL_LOOP = register_option("tir.UnrollLoop", dict)
"""Which loops the pass UnrollLoop writes out."""

SIMPLIFY = register_option("tir.Simplify", dict)
"""What the pass Simplify does beyond the usual."""

HOIST_EXPRESSION = register_option("tir.HoistExpression", dict)
"""What the pass HoistExpression moves out of loops."""

LOOP_PARTITION = register_option("tir.LoopPartition", dict)
"""Which loops the pass LoopPartition partitions."""

HOIST_IF_THEN_ELSE = register_option("tir.HoistIfThenElse", dict)
"""Whether the pass HoistIfThenElse moves conditions out of launches of threads."""


PREDICATION = register_option("tir.enable_buffer_level_predication", bool)
"""Whether VectorizeLoop masks accesses; where nothing is said, it does for scalable vectors."""


def configured(option: str, config: type[Config]) -> Config:
    """What the current `PassContext` says in an option with fields, which are those of a class.

    Raises:
        TVMError: the option has another field.
    """
    settings: dict[str, Any] = PassContext.current().config.get(option, {})
    try:
        return config(**settings)
    except TypeError:
        fields = ", ".join(config.__slots__)  # type: ignore[attr-defined]
        raise TVMError(f'The option "{option}" has {fields}, not {", ".join(settings)}') from None


CONSUME_PARAMS = register_option("relax.lift_transform_params.consume_params", bool)
"""Whether the functions that LiftTransformParams makes let go of each weight once they have it."""

UNUSED: dict[type, str] = {
    dict: "tir.RemoveNoOp tir.ReduceBranchingThroughOvercompute",
    bool: (
        "tir.noalias tir.is_entry_func tir.enable_debug tir.enable_fast_math tir.instr_siblings "
        "tir.detect_global_barrier tir.debug_keep_trivial_loop tir.disable_storage_rewrite "
        "tir.enable_equiv_terms_in_cse_tir "
        "tir.merge_static_smem tir.ptx_ldg32 tir.instrument_lwp "
        "tir.lwp_disable_func_prof tir.reset_start_id tir.experimental_dma_bypass_cache "
        "relax.backend.use_cuda_graph testing.immutable_module"
    ),
    int: "tir.vtcm_capacity tir.lwp_max_depth tir.lwp_min_height relax.fallback_device_type",
}

for _kind, _names in UNUSED.items():
    for _name in _names.split():
        register_option(_name, _kind)
