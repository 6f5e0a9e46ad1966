"""ConvertLayout: convolutions in the layout that is wanted, and what is around them with them.

Within a dataflow block each variable may lie in another order than it was written in; `order` of
its layout says in which. Whatever asks for it in a way that no rule knows gets it as it was, and so
do the results of a block: only there axes are permuted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.layout import (
    Decision,
    Layout,
    LayoutRule,
    Lettered,
    Order,
    blocks_of,
    decided,
    initial,
    initial_of,
    renamed,
)
from mlcweb.relax.op.manipulate import layout_transform, permute_dims
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.relax.transform.layout.wanted import DesiredLayouts, check_wanted, decide
from mlcweb.relax.transform.registration import unfused_pass
from mlcweb.tir.data_layout import BijectiveLayout
from mlcweb.tir.data_layout import Layout as NamedLayout
from mlcweb.tir.expr import Var

LayoutOf = Callable[[E.Call], Mapping[str, Sequence[str]]]


def ConvertLayout(
    desired_layouts: Mapping[str, Sequence[str]], layout_cb: LayoutOf | None = None
) -> Pass:
    """Have convolutions compute in other layouts: `{"relax.nn.conv2d": ["NHWC", "OHWI"]}`.

    Operators around them follow, so that axes are permuted only where data enters and leaves.

    Args:
        desired_layouts: by names of operators the layouts of data and weight, and of the result
            where it is another than that of the data.
        layout_cb: gives such a dictionary for each call, in place of `desired_layouts`.

    Raises:
        DiagnosticError: an operator has no such layout.
    """
    check_wanted(desired_layouts)

    def change(func: E.Function, mod: IRModule) -> E.Function:
        return _Conversion(mod, desired_layouts, layout_cb).visit_expr(func)

    return unfused_pass("ConvertLayout", change)


@mutator
class _Conversion(PyExprMutator):
    def __init__(self, mod: IRModule, desired: DesiredLayouts, layout_cb: LayoutOf | None) -> None:
        super().__init__(mod)
        self.desired = desired
        self.layout_cb = layout_cb
        self.layouts: dict[E.Var, Layout] = {}

    def layout_of(self, value: E.RelaxExpr) -> Layout:
        """The layout of what stands for a value of the program as it was written."""
        if isinstance(value, E.Tuple):
            return [self.layout_of(field) for field in value.fields]
        layout = self.layouts.get(value) if isinstance(value, E.Var) else None
        return initial_of(value) if layout is None else layout

    def in_layout(self, value: E.RelaxExpr, target: Layout) -> E.RelaxExpr:
        """What stands for a value, in a layout."""
        if isinstance(value, E.Tuple) and isinstance(target, list):
            both = zip(value.fields, target, strict=True)
            return E.Tuple([self.in_layout(field, layout) for field, layout in both])
        if isinstance(value, E.Var):
            return converted(self.get_var_remap(value), self.layout_of(value), target)
        return converted(value, initial_of(value), target) if isinstance(value, E.Expr) else value

    def visit_dataflow_var_(self, var: E.DataflowVar) -> E.Value:
        new = self.in_layout(var, initial(var.struct_info))
        assert isinstance(new, E.Expr)
        return new

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        value, local = binding.value, isinstance(binding.var, E.DataflowVar)
        if not self.builder_.current_block_is_dataflow():
            super().visit_var_binding_(binding)
        elif isinstance(value, E.Call):
            decision = self.decision(value)
            if decision is None:
                super().visit_var_binding_(binding)
            else:
                self.bind(binding.var, self.rewritten(value, decision), decision.result)
        elif isinstance(value, E.Tuple):
            layout = self.layout_of(value) if local else initial_of(value)
            self.bind(binding.var, self.in_layout(value, layout), layout)
        elif isinstance(value, E.TupleGetItem):
            whole = value.tuple_value
            layout = self.layout_of(whole) if local else initial_of(whole)
            field = layout[value.index] if isinstance(layout, list) else None
            inside = self.in_layout(whole, layout)
            assert isinstance(inside, E.Expr)
            self.bind(binding.var, E.TupleGetItem(inside, value.index), field)
        else:
            super().visit_var_binding_(binding)

    def decision(self, call: E.Call) -> Decision | None:
        if not isinstance(call.op, Op) or not call.args:
            return None
        layouts = [self.layout_of(arg) for arg in call.args]
        if layouts[0] is None:
            return None
        rule: LayoutRule | None = call.op.get_attr("FRelaxInferLayout")
        if isinstance(rule, Lettered):
            desired = self.desired if self.layout_cb is None else self.layout_cb(call)
            if self.layout_cb is not None:
                check_wanted(desired)
            if call.op.name in desired:
                return decide(call, rule, desired[call.op.name])
        return decided(rule, call, layouts)

    def rewritten(self, call: E.Call, decision: Decision) -> E.Call:
        args = [
            decision.replaced.get(place) or self.in_layout(arg, layout)
            for place, (arg, layout) in enumerate(zip(call.args, decision.arguments, strict=True))
        ]
        attrs = None if call.attrs is None else Attrs({**call.attrs, **decision.attrs})
        return E.Call(call.op, args, attrs, call.sinfo_args, span=call.span)

    def bind(self, old: E.Var, value: E.RelaxExpr, layout: Layout) -> None:
        """Bind what stands for a variable. What is seen outside of the block lies as it was."""
        new = self.builder_.normalize(value)
        assert isinstance(new, E.Expr)
        if not isinstance(old, E.DataflowVar):
            if layout != initial(old.struct_info):
                new = self.builder_.emit(new)
                new = self.builder_.normalize(converted(new, layout, initial(old.struct_info)))
        else:
            self.layouts[old] = layout
        self.emit_rebound(old, old, new)

    def visit_match_cast_(self, binding: E.MatchCast) -> None:
        layout = self.layout_of(binding.value)
        info = _permuted(binding.struct_info, layout)
        if not isinstance(binding.var, E.DataflowVar) or info is None:
            super().visit_match_cast_(binding)
            return
        value = self.builder_.normalize_argument(self.in_layout(binding.value, layout))
        new = self.with_struct_info(binding.var, info)
        self.layouts[binding.var] = layout
        self.set_var_remap(binding.var, new)
        self.builder_.emit_normalized(E.MatchCast(new, value, info))


def _permuted(info: StructInfo, layout: Layout) -> StructInfo | None:
    """What is known of a tensor when it lies in another layout; None of other values."""
    if not isinstance(info, TensorStructInfo) or not isinstance(layout, tuple):
        return None
    axes = [axis for axis in layout if isinstance(axis, int)]
    if info.values is None or len(info.values) != len(axes) or blocks_of(layout):
        return None
    return TensorStructInfo([info.values[axis] for axis in axes], info.dtype)


def _index_map(here: Order, target: Order) -> IndexMap:
    """Where an element of a tensor that lies as `here` lies in `target`."""
    both = [NamedLayout(renamed(ascii_uppercase, order)) for order in (here, target)]
    indices = [Var(f"i{axis}", "int32") for axis in range(len(here))]
    return IndexMap(indices, BijectiveLayout(*both).forward_index(indices))


def converted(value: E.Value, here: Layout, target: Layout) -> E.Value:
    """A value that lies as `here` says, as `target`."""
    if here == target or here is None or target is None:
        return value
    if isinstance(here, tuple) and isinstance(target, tuple):
        if set(here) == set(target):
            return permute_dims(value, [here.index(axis) for axis in target])
        assert isinstance(value, E.Expr)
        return layout_transform(value, _index_map(here, target))
    assert isinstance(here, list) and isinstance(target, list)
    return E.Tuple([
        converted(E.TupleGetItem(value, index), *both)
        for index, both in enumerate(zip(here, target, strict=True))
    ])  # fmt: skip
