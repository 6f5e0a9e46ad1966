"""ToMixedPrecision: products and convolutions of half precision, and what follows them.

Within a dataflow block a variable may hold half precision where float32 was written. Whoever does
not take it gets it converted back, and so do the results of the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.registry import ALWAYS, NEVER
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.mixed_precision.needs import Need, as_needed, needs
from mlcweb.relax.transform.mixed_precision.policy import (
    FLOATS,
    converted,
    fits_half,
    in_half,
    policy_of,
)
from mlcweb.relax.transform.registration import unfused_pass


def ToMixedPrecision(
    out_dtype: str = "float32", fp16_input_names: Sequence[str] | None = None
) -> Pass:
    """Compute products of matrices, convolutions and attention in float16, and what follows them
    where that loses no more. Other operators, and what functions take and give, stay float32.

    Args:
        out_dtype: in which type products sum and give their results, "float32" or "float16".
        fp16_input_names: parameters that are to be given as float16.
    """
    if out_dtype not in FLOATS:
        raise DiagnosticError(
            f'ToMixedPrecision: out_dtype is "float16" or "float32", not "{out_dtype}"'
        )
    names = frozenset(fp16_input_names or ())

    def change(func: E.Function, mod: IRModule) -> E.Function:
        return _Rewriting(mod, func, str(out_dtype), names).visit_expr(func)

    return unfused_pass("ToMixedPrecision", change)


@mutator
class _Rewriting(PyExprMutator):
    def __init__(
        self, mod: IRModule, func: E.Function, out_dtype: str, half_names: frozenset[str]
    ) -> None:
        super().__init__(mod)
        self.out_dtype = out_dtype
        self.half_names = half_names
        self.params = func.params
        self.needs: dict[E.Var, Need] = needs(func)
        self.copies: dict[E.Var, E.Var] = {}
        """Variables that hold others in half precision, within a block."""

    # What stands for a value of the program as it was written

    def now(self, value: E.RelaxExpr) -> E.RelaxExpr:
        """In the precision that it happens to have."""
        if isinstance(value, E.Tuple):
            return E.Tuple([self.now(field) for field in value.fields])
        if isinstance(value, E.Var):
            return self.copies.get(value) or self.get_var_remap(value)
        return value

    def half(self, value: E.RelaxExpr) -> E.RelaxExpr:
        new = self.now(value)
        info = new.struct_info if isinstance(new, E.Expr) else None
        return converted(new, in_half(info)) if isinstance(new, E.Expr) and info else new

    def written(self, value: E.Expr) -> E.Value:
        """In the precision that was written."""
        new = self.now(value)
        assert isinstance(new, E.Expr)
        return new if value.struct_info is None else converted(new, value.struct_info)

    def visit_var_(self, var: E.Var) -> E.Value:
        return self.written(var)

    def visit_dataflow_var_(self, var: E.DataflowVar) -> E.Value:
        return self.written(var)

    # Definitions

    def visit_var_def_(self, var: E.Var) -> E.Var:
        info = var.struct_info
        if var.name_hint not in self.half_names or var not in self.params:
            return var
        if not isinstance(info, TensorStructInfo):
            return var
        new = self.with_struct_info(var, in_half(info))
        self.set_var_remap(var, new)
        return new

    def visit_dataflow_block_(self, block: E.DataflowBlock) -> E.BindingBlock:
        self.builder_._begin_dataflow_block()
        for param in self.params:
            if isinstance(param.struct_info, TensorStructInfo):
                self.keep_copy(param)
        new = self._rebuilt(block)
        self.copies.clear()
        return new

    def keep_copy(self, var: E.Var) -> None:
        """Convert a variable once if it is asked for in half precision only."""
        now = self.now(var)
        assert isinstance(now, E.Var) and now.struct_info is not None
        half = converted(now, as_needed(now.struct_info, self.needs.get(var)))
        if half is not now:
            self.copies[var] = self.builder_.emit(half)

    def visit_match_cast_(self, binding: E.MatchCast) -> None:
        super().visit_match_cast_(binding)
        if isinstance(binding.var, E.DataflowVar):
            self.keep_copy(binding.var)

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        if not self.builder_.current_block_is_dataflow():
            super().visit_var_binding_(binding)
            return
        value, local = binding.value, isinstance(binding.var, E.DataflowVar)
        if local and isinstance(value, E.Call) and _is_wrapped(value):
            self.bind(binding.var, self.now(value.args[0]))
        elif isinstance(value, E.Call) and policy_of(value) is not NEVER:
            self.call(binding.var, value)
        elif isinstance(value, E.Tuple):
            self.bind(binding.var, self.now(value) if local else self.written(value))
        elif isinstance(value, E.TupleGetItem) and local:
            whole = self.now(value.tuple_value)
            assert isinstance(whole, E.Expr)
            self.bind(binding.var, E.TupleGetItem(whole, value.index))
        else:
            super().visit_var_binding_(binding)
        if local:
            self.keep_copy(binding.var)

    def call(self, var: E.Var, call: E.Call) -> None:
        always = policy_of(call) is ALWAYS
        if always or all(fits_half(self.now(arg)) for arg in call.args):
            args = [self.half(arg) for arg in call.args]
        else:
            args = [self.visit_expr(arg) for arg in call.args]
        attrs = call.attrs
        if always and attrs is not None and "out_dtype" in attrs:
            attrs = Attrs({**attrs, "out_dtype": self.out_dtype})
        new = self.builder_.normalize(E.Call(call.op, args, attrs, call.sinfo_args, call.span))
        if not isinstance(var, E.DataflowVar):
            assert var.struct_info is not None
            new = converted(new, var.struct_info)
        elif always:
            new = self.half(new)
        self.bind(var, new)

    def bind(self, var: E.Var, value: E.RelaxExpr) -> None:
        new = self.builder_.normalize(value)
        assert isinstance(new, E.Expr)
        self.emit_rebound(var, var, new)


def _is_wrapped(call: E.Call) -> bool:
    """Whether a call only states the precision in which a parameter was written."""
    infos = [arg.struct_info for arg in (*call.args, call) if isinstance(arg, E.Expr)]
    tensors = [info.dtype for info in infos if isinstance(info, TensorStructInfo)]
    wraps = isinstance(call.op, Op) and call.op.name == "relax.wrap_param"
    return wraps and all(dtype in FLOATS for dtype in tensors)
