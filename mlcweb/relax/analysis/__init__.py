"""What can be said about functions of the graph level without changing them."""

from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.relax.analysis.layout_transforms import suggest_layout_transforms
from mlcweb.relax.analysis.recursion import computable_at_compile_time, detect_recursion
from mlcweb.relax.analysis.reshape_pattern import has_reshape_pattern
from mlcweb.relax.analysis.struct_info import (
    BaseCheckResult, collect_non_negative_expressions, definable_tir_vars_in_struct_info,
    derive_call_ret_struct_info, erase_to_well_defined, get_static_type,
    struct_info_base_check, struct_info_lca, tir_vars_in_struct_info,
)  # fmt: skip
from mlcweb.relax.analysis.uses import (
    contains_impure_call, get_var2val, name_to_binding, remove_all_unused, udchain,
)  # fmt: skip
from mlcweb.relax.analysis.variables import (
    all_global_vars, all_vars, bound_vars, defined_symbolic_vars, free_symbolic_vars, free_vars,
    post_order_visit, used_vars,
)  # fmt: skip
from mlcweb.relax.analysis.well_formed import check_well_formed, well_formed

__getattr__ = lazy_attributes(__name__)  # estimate_memory_usage, of the layer that plans memory
