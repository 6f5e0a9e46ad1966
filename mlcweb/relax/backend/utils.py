"""What passes of backends are made of: `BackendDispatcher`, and a check for partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcweb.ir.global_info import VDevice
from mlcweb.ir.lazy_attributes import provided
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.fuse_by_pattern import PatternCheckContext

if TYPE_CHECKING:
    from mlcweb.runtime.target import Target


class BackendDispatcher(PyExprMutator):
    """A mutator whose methods ask for the target that a value is computed on."""

    @staticmethod
    def is_gpu_target(target: Target) -> bool:
        """Whether a target is a GPU."""
        return "gpu" in target.keys

    @staticmethod
    def get_shape_dtype(expr: E.Expr) -> tuple[E.Expr, str]:
        """The shape and the element type of a tensor.

        Raises: ValueError: it is no tensor, or has no known shape.
        """
        info = expr.struct_info
        if not isinstance(info, TensorStructInfo) or info.shape is None:
            raise ValueError(f"{expr} is {info}; a tensor of known shape is asked for here")
        return info.shape, info.dtype

    def _get_target(self, info: StructInfo | None) -> Target:
        """The target of the virtual device of a value, or the one that is entered.

        Raises: ValueError: there is neither.
        """
        target_of = provided(__name__, "Target")
        current = target_of.current()
        if isinstance(info, TensorStructInfo) and isinstance(info.vdevice, VDevice):
            return target_of(info.vdevice.target)
        if isinstance(info, TupleStructInfo):
            for field in info.fields:
                target = self._get_target(field)
                if target != current:
                    return target
        if current is None:
            raise ValueError(
                "Target not found: annotate tensors with virtual devices, or enter a target "
                "(`with target:`)"
            )
        return current


def has_leaking_intermediate_variables(context: PatternCheckContext) -> bool:
    """Whether something outside of a match uses a value from inside of it, but its result."""
    result = context.value_to_bound_var.get(context.matched_expr)
    matched = set(context.matched_bindings)
    return any(
        not isinstance(var, E.DataflowVar)
        or any(user not in matched for user in context.var_usages.get(var, ()))
        for var in matched
        if var is not result
    )
