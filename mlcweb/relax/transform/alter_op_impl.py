"""AlterOpImpl: other functions for operators, whose tensors may lie in another layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.base import call_tir
from mlcweb.relax.op.legalize import te
from mlcweb.relax.op.manipulate import layout_transform
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.registration import called_tir, pass_of, rewritten_by
from mlcweb.tir.arithmetic import is_const_int
from mlcweb.tir.expr import PrimExpr, Var
from mlcweb.tir.fresh_copy import FreshCopy
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

OPERATOR = "operator_name"
"""The attribute of a function that says which operator it computes."""

REMOVE_PAD = "remove_pad"
"""What that attribute is for the function that drops padding."""

LayoutMap: TypeAlias = "IndexMap | Callable[..., object]"


def AlterOpImpl(
    op_impl_map: Mapping[str, PrimFunc],
    op_buffer_transforms: Mapping[str, Sequence[LayoutMap | Sequence[LayoutMap]]],
) -> Pass:
    """Call other functions of TensorIR for operators: for those whose attribute "operator_name" is
    a key of `op_impl_map`.

    Args:
        op_impl_map: the functions, by names of operators.
        op_buffer_transforms: for each operator how each parameter of its function, results
            included, lies in the new one: an `IndexMap`, or a function of indices. Arguments are
            brought into these layouts before a call, and results back after it. None at all means
            that all lie as before.

    Raises:
        TVMError: the count of maps is not that of the new function's parameters, or the new
            function has not as many parameters as the old one.
        IndexMapError: a map of a result has no inverse.
    """
    maps = {name: list(map(_index_map, each)) for name, each in op_buffer_transforms.items()}
    for name, func in op_impl_map.items():
        if len(maps.setdefault(name, [])) not in (0, len(func.params)):
            raise TVMError(
                f"AlterOpImpl: {len(maps[name])} layout(s) are given for {name}, but its function "
                f"has {len(func.params)} parameter(s); give one for each, or none"
            )

    def transform(mod: IRModule) -> IRModule:
        return rewritten_by(mod, _Altering(mod, op_impl_map, maps))

    return pass_of("AlterOpImpl", transform)


def _index_map(layout: LayoutMap | Sequence[LayoutMap]) -> IndexMap:
    """The map; of a pair with axis separators, which mean nothing here, the first."""
    if isinstance(layout, (list, tuple)):
        layout = layout[0]
    if isinstance(layout, IndexMap):
        return layout
    assert callable(layout)
    return IndexMap.from_func(layout)


@mutator
class _Altering(PyExprMutator):
    def __init__(
        self,
        mod: IRModule,
        functions: Mapping[str, PrimFunc],
        maps: Mapping[str, list[IndexMap]],
    ) -> None:
        super().__init__(mod)
        self.mod = mod
        self.functions = functions
        self.maps = maps

    def visit_call_(self, call: E.Call) -> E.Value:
        call = self.visit_expr_post_order(call)
        old = called_tir(self.mod, call)
        name = str(old.attrs.get(OPERATOR, "")) if old is not None else ""
        new = self.functions.get(name)
        if old is None or new is None:
            return call
        if len(new.params) != len(old.params):
            raise TVMError(
                f"AlterOpImpl: the function for {name} has {len(new.params)} parameter(s), not "
                f"{len(old.params)} as the one that is called here"
            )
        return self.altered(call, name, new)

    def altered(self, call: E.Call, name: str, func: PrimFunc) -> E.Value:
        """What stands for a call, with a call of `func`."""
        own = FreshCopy().function(func).with_attr(OPERATOR, name)
        callee = self.builder_.add_func(own, f"{name.replace('.', '_')}_replacement")
        _, arguments, *sizes = call.args
        assert isinstance(arguments, E.Tuple)
        (info,) = call.sinfo_args
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        maps = self.maps[name]
        if not maps:
            return E.Call(call.op, (callee, arguments, *sizes), call.attrs, call.sinfo_args)
        count = len(arguments.fields)
        moved = [
            self.builder_.emit(layout_transform(argument, _own(layout)))
            for argument, layout in zip(arguments.fields, maps, strict=False)
            if isinstance(argument, E.Expr)
        ]
        results = [_mapped(each, layout) for each, layout in zip(infos, maps[count:], strict=True)]
        result = TupleStructInfo(results) if isinstance(info, TupleStructInfo) else results[0]
        new = E.Call(call.op, (callee, E.Tuple(moved), *sizes), call.attrs, (result,))
        whole = self.builder_.emit(new)
        if not isinstance(info, TupleStructInfo):
            return self.moved_back(whole, info, maps[count])
        fields = []
        for index, (each, layout) in enumerate(zip(infos, maps[count:], strict=True)):
            field = self.builder_.emit(E.TupleGetItem(whole, index))
            fields.append(self.builder_.emit(self.moved_back(field, each, layout)))
        return E.Tuple(fields)

    def moved_back(self, value: E.Expr, info: StructInfo, layout: IndexMap) -> E.Value:
        """A result as it lay before, without the padding that the other layout has."""
        shape = _shape(info)
        inverse, padding = layout.non_surjective_inverse(shape)
        back = layout_transform(value, inverse)
        if is_const_int(padding, 0):
            return back
        padded = self.builder_.emit(back)
        assert isinstance(info, TensorStructInfo)
        callee = self.builder_.add_func(_remove_pad(len(shape), info.dtype), REMOVE_PAD)
        return call_tir(callee, E.Tuple([padded]), info)


def _own(layout: IndexMap) -> IndexMap:
    """The map with variables of its own: each call has those that it defines to itself."""
    variables = {var: Var(var.name, var.dtype) for var in layout.initial_indices}
    final = tuple(substitute(index, variables) for index in layout.final_indices)
    return replace(layout, initial_indices=tuple(variables.values()), final_indices=final)


def _shape(info: StructInfo) -> Sequence[PrimExpr]:
    if not isinstance(info, TensorStructInfo) or info.values is None:
        raise TVMError(f"AlterOpImpl: a result whose layout changes has a known shape, not {info}")
    return info.values


def _mapped(info: StructInfo, layout: IndexMap) -> StructInfo:
    """What is known of a result in its other layout."""
    shape = layout.map_shape(_shape(info))
    assert isinstance(info, TensorStructInfo)
    return TensorStructInfo(shape, info.dtype, info.vdevice)


def _remove_pad(ndim: int, dtype: str) -> PrimFunc:
    """The function that copies the first elements along each axis of a tensor."""
    padded = te.placeholder([Var(f"p{axis}", "int64") for axis in range(ndim)], dtype, "input")
    shape = [Var(f"i{axis}", "int64") for axis in range(ndim)]
    axes = [f"ax{axis}" for axis in range(ndim)]
    output = te.compute(shape, lambda *at: padded[at], "output", varargs_names=axes)
    func = te.create_prim_func([padded, output], index_dtype_override="int64")
    return func.without_attr("global_symbol").with_attr(OPERATOR, REMOVE_PAD)
