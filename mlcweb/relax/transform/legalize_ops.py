"""LegalizeOps: calls of operators become calls of TensorIR functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

from mlcweb.ir.module import IRModule
from mlcweb.ir.op import Op, register_op_attr
from mlcweb.ir.transform import Pass, PassContext, PassInfo
from mlcweb.relax import expr as E
from mlcweb.relax.deduction import Context, devices_of, on_device
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.registry import Legalize
from mlcweb.relax.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo


def register_legalize(op_name: str, legal_func: Legalize) -> Legalize:
    """Say how calls of an operator are lowered, in the place of what is registered:
    `legal_func(builder, call)` gives the new expression."""
    return register_op_attr(op_name, "FLegalize", legal_func)


class LegalizeOps(Pass):
    """Replaces each call of an operator by a `call_tir` of the function that TOPI makes for it.

    What has no known shape or element type stays as it is, and so does an operator for which there
    is no lowering.

    Args:
        customize_legalize_map: lowerings by name of the operator, `{"relax.add": fn}`, that go
            before the usual ones: `fn(builder, call)` gives the new expression.
        skip_ops: names of operators to leave.
        enable_warning: warn of operators without a lowering.
    """

    def __init__(
        self,
        customize_legalize_map: Mapping[str, Legalize] | None = None,
        skip_ops: Iterable[str] | None = None,
        enable_warning: bool = False,
    ) -> None:
        self.customized = dict(customize_legalize_map or {})
        self.skipped = frozenset(skip_ops or ())
        self.warns = enable_warning
        self.info = PassInfo(0, "LegalizeOps")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        legalizer = _Legalizer(mod, self)
        for var, func in mod.functions.items():
            if isinstance(func, E.Function):
                new = legalizer.visit_expr(func)
                if new is not func:
                    legalizer.builder_.update_func(var, new)
        return legalizer.builder_.get()

    def lowering(self, op: object) -> Legalize | None:
        """How calls of an operator are lowered, or None."""
        if not isinstance(op, Op) or op.name in self.skipped:
            return None
        rule = self.customized.get(op.name) or op.get_attr("FLegalize")
        if rule is None and self.warns:
            warnings.warn(
                f"LegalizeOps: there is no lowering of {op.name}; it stays as it is. Give one with "
                f'customize_legalize_map={{"{op.name}": fn}}',
                stacklevel=2,
            )
        return rule


@mutator
class _Legalizer(PyExprMutator):
    def __init__(self, mod: IRModule, rules: LegalizeOps) -> None:
        super().__init__(mod)
        self.rules = rules

    def visit_call_(self, call: E.Call) -> E.Value:
        call = self.visit_expr_post_order(call)
        legalize = self.rules.lowering(call.op)
        if legalize is None or not _is_known(call, self.builder_.context):
            return call
        new = self.lowered(call, legalize)
        if new is call or (isinstance(new, E.Call) and new.op == call.op):
            return new
        new = self.visit_expr(new)  # a lowering may use other operators
        devices = set(devices_of(self.builder_.context.struct_info(call)))
        if len(devices) == 1 and isinstance(new, E.Call) and new.sinfo_args:
            infos = [on_device(info, *devices) for info in new.sinfo_args]
            new = E.Call(new.op, new.args, new.attrs, infos, span=new.span)
        return new

    def lowered(self, call: E.Call, legalize: Legalize) -> E.Value:
        """What a lowering gives; what it emits may use other operators, too."""
        builder = self.builder_
        if builder._block.dataflow:
            builder._begin_dataflow_block()
        else:
            builder._begin_binding_block()
        new = legalize(builder, call)
        for binding in builder._end_block().bindings:
            self.visit_binding(binding)
        return new


def _is_known(call: E.Call, context: Context) -> bool:
    """Whether the shapes and element types of all arguments, and of the result, are known. The
    shape of a result that depends on elements is known only after lowering."""
    values: list[E.RelaxExpr] = [
        arg for arg in call.args if not isinstance(arg, (E.ExternFunc, Op))
    ]
    if not (isinstance(call.op, Op) and call.op.get_attr("FDataDependent")):
        values.append(call)
    return all(is_whole(context.struct_info(value)) for value in values)


def is_whole(info: StructInfo | None) -> bool:
    """Whether lowerings may ask for the shapes and element types of a value."""
    if isinstance(info, TensorStructInfo):
        return info.known_values is not None and bool(info.dtype)
    if isinstance(info, ShapeStructInfo):
        return info.values is not None
    return not isinstance(info, TupleStructInfo) or all(map(is_whole, info.fields))
