"""CombineParallelMatmul: products of one matrix by several as one larger product."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import remove_all_unused
from mlcweb.relax.analysis.variables import used_vars
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.infer import info_of
from mlcweb.relax.op.joining import concat, split
from mlcweb.relax.op.linear_algebra import matmul
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.relax.transform.call_rules import static_shape
from mlcweb.relax.transform.registration import map_functions, pass_of

Check = Callable[[E.Var, Sequence[E.Var], Sequence[E.Var], Mapping[E.Var, E.RelaxExpr]], bool]
"""Of the left side, the right sides, the biases and the values of variables: whether to combine."""


def CombineParallelMatmul(check: Check | None = None) -> Pass:
    """Compute `x · a`, `x · b`, … in a dataflow block as the parts of `x · (a b …)`.

    The right sides are inputs of the block with two dimensions. `check(x, [a, b], [], values)` may
    refuse a group.
    """

    def transform(mod: IRModule) -> IRModule:
        def change(var: GlobalVar, func: E.Function) -> E.Function:
            groups = _groups(func, check)
            if not groups:
                return func
            return remove_all_unused(_Combining(mod, groups).visit_expr(func), mod)

        return map_functions(mod, change)

    return pass_of("CombineParallelMatmul", transform)


_MATMUL = Op.get("relax.matmul")

Group = list[E.VarBinding]
"""Bindings of products of one left side."""


def _groups(func: E.Function, check: Check | None) -> list[Group]:
    groups: list[Group] = []
    for block in func.body.blocks:
        if not isinstance(block, E.DataflowBlock):
            continue
        defined = {binding.var for binding in block.bindings}
        values = {binding.var: binding.value for binding in block.bindings}
        by_key: dict[tuple[E.Var, int, str, str], Group] = {}
        for binding in block.bindings:
            key = _key(binding, defined)
            if key is not None and isinstance(binding, E.VarBinding):
                by_key.setdefault(key, []).append(binding)
        for group in by_key.values():
            sides = [used_vars(binding.value)[1] for binding in group]
            left = used_vars(group[0].value)[0]
            if len(group) > 1 and (check is None or check(left, sides, [], values)):
                groups.append(group)
    return groups


def _key(binding: E.Binding, defined: set[E.Var]) -> tuple[E.Var, int, str, str] | None:
    """What products have in common that are combined."""
    call = binding.value
    if not isinstance(call, E.Call) or E.called_operator(call) != "relax.matmul":
        return None
    left, right = call.args
    shape = static_shape(right)
    if not isinstance(left, E.Var) or not isinstance(right, E.Var) or right in defined:
        return None
    if shape is None or len(shape) != 2 or left is right:
        return None
    return left, shape[0], _dtype(right), _dtype(binding.var)


def _dtype(var: E.Var) -> str:
    assert isinstance(var.struct_info, TensorStructInfo)
    return var.struct_info.dtype


@mutator
class _Combining(PyExprMutator):
    def __init__(self, mod: IRModule, groups: list[Group]) -> None:
        super().__init__(mod)
        self.groups = {binding.var: group for group in groups for binding in group}
        self.parts: dict[E.Var, E.Var] = {}

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        group = self.groups.get(binding.var)
        if group is None:
            super().visit_var_binding_(binding)
            return
        if binding is group[0]:
            self.combine(group)
        field = E.TupleGetItem(self.parts[binding.var], group.index(binding))
        super().visit_var_binding_(E.VarBinding(binding.var, field))

    def combine(self, group: Group) -> None:
        calls = [binding.value for binding in group if isinstance(binding.value, E.Call)]
        left = self.visit_expr(calls[0].args[0])
        right = self.builder_.emit(concat([call.args[1] for call in calls], 1))
        whole = self.builder_.emit(matmul(left, right, _dtype(group[0].var)))
        ends, at = [], 0
        for call in calls[:-1]:
            shape = static_shape(call.args[1])
            assert shape is not None
            at += shape[1]
            ends.append(at)
        parts = self.builder_.emit(split(whole, ends, info_of(whole).ndim - 1))
        self.parts.update((binding.var, parts) for binding in group)
