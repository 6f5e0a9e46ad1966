"""LazyGetInput, LazySetOutput and LazyTransformParams: functions that ask for each weight where
they first need it, and give each result where it is there, so that never all are in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.transform import Pass
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.normalize import merged
from mlcweb.relax.op.vm import kill_object
from mlcweb.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
)
from mlcweb.relax.transform.parameters import NUM_INPUT, input_count
from mlcweb.relax.transform.registration import map_functions, pass_of

_ANYTHING = ObjectStructInfo()
_NUMBER = PrimStructInfo("int64")
_NOTHING = TupleStructInfo(())


def LazyGetInput() -> Pass:
    """Let each public function take, in place of its weights (the parameters after the first
    "num_input"), a function `fget_param(index, name)` that gives one of them."""

    def transform(mod: IRModule) -> IRModule:
        return map_functions(mod, _public(partial(_with_lazy_inputs, mod)))

    return pass_of("LazyGetInput", transform)


def LazySetOutput() -> Pass:
    """Let each public function hand its results to `fset_output(index, value)`, a parameter after
    its inputs, as soon as they are there. It then returns the empty tuple."""
    return pass_of("LazySetOutput", lambda mod: map_functions(mod, _public(_with_lazy_outputs)))


def LazyTransformParams(
    fget_item: str = "get_item",
    fset_item: str | None = "set_item",
    extra_get_item_params: Sequence[E.Var] | None = None,
    extra_set_item_params: Sequence[E.Var] | None = None,
) -> Pass:
    """Let the functions whose names end in "transform_params" load each weight by the registered
    function `fget_item(…, index)`, and hand each result to `fset_item(…, index, value)` after its
    last use. Run ToNonDataflow and RemovePurityChecking before.

    Args:
        fset_item: None leaves the results as they are.
        extra_get_item_params: parameters of the new function that `fget_item` takes first.
        extra_set_item_params: the same for `fset_item`.

    Raises: DiagnosticError where the results of such a function are no variable bound to a tuple.
    """
    getting, setting = tuple(extra_get_item_params or ()), tuple(extra_set_item_params or ())

    def load(index: int, name: str) -> E.Call:
        return _packed(fget_item, *getting, E.PrimValue(index))

    def change(mod: IRModule, var: GlobalVar, func: E.Function) -> E.Function:
        if not var.name_hint.endswith("transform_params"):
            return func
        count = _input_count(func)
        inputs, weights = func.params[:count], func.params[count:]
        body, result = func.body, func.ret_struct_info
        if fset_item is not None:
            body = _with_stores(body, weights, partial(_packed, fset_item, *setting))
            result = _NOTHING
        body = _Loading(mod, weights, load, "", by_field=True).visit_expr(body)
        params = (*inputs, *getting, *setting, *_symbolic_values(func, weights))
        new = E.Function(params, body, result, False, func.attrs, span=func.span)
        return new.without_attr("relax.force_pure")

    return pass_of("LazyTransformParams", lambda mod: map_functions(mod, partial(change, mod)))


def _public(
    change: Callable[[E.Function], E.Function],
) -> Callable[[GlobalVar, E.Function], E.Function]:
    return lambda var, func: change(func) if "global_symbol" in func.attrs else func


def _input_count(func: E.Function) -> int:
    return input_count(func) if NUM_INPUT in func.attrs else 0


def _packed(name: str, *args: E.RelaxExpr) -> E.Call:
    return E.Call(E.ExternFunc(name), args, sinfo_args=[_ANYTHING])


def _with_lazy_inputs(mod: IRModule, func: E.Function) -> E.Function:
    count = _input_count(func)
    inputs, weights = func.params[:count], func.params[count:]
    getter = E.Var("fget_param", FuncStructInfo([_NUMBER, _ANYTHING], _ANYTHING))

    def load(index: int, name: str) -> E.Call:
        return E.Call(getter, [E.PrimValue(index), E.StringImm(name)])

    body = _Loading(mod, weights, load, "{}_untyped").visit_expr(func.body)
    new = E.Function([*inputs, getter], body, None, func.is_pure, func.attrs, span=func.span)
    return new.with_attr(NUM_INPUT, count + 1)


@mutator
class _Loading(PyExprMutator):
    """Loads each weight at its first use: in a branch, and in a dataflow block, for itself. With
    `by_field`, fields of weights that are one tuple are loaded each time they are taken."""

    def __init__(
        self,
        mod: IRModule,
        weights: Sequence[E.Var],
        load: Callable[[int, str], E.Call],
        name: str,
        by_field: bool = False,
    ) -> None:
        super().__init__(mod)
        self.load = load
        self.name = name
        infos = [weight.struct_info for weight in weights]
        self.whole = (
            weights[0]
            if by_field and len(infos) == 1 and isinstance(infos[0], TupleStructInfo)
            else None
        )
        self.places = {} if self.whole else {weight: i for i, weight in enumerate(weights)}

    def visit_with_new_scope(self, expr: E.Value) -> E.Value:
        before = dict(self._remapped)
        new = super().visit_with_new_scope(expr)
        self._remapped = before
        return new

    def visit_dataflow_block_(self, block: E.DataflowBlock) -> E.BindingBlock:
        new = super().visit_dataflow_block_(block)
        for weight in self.places:
            self._remapped.pop(weight, None)
        return new

    def visit_var_(self, var: E.Var) -> E.Value:
        if var is self.whole:
            raise DiagnosticError(
                f'The weights "{var.name_hint}" are used as a whole, and so cannot be loaded one '
                f"by one; take their fields: {var.name_hint}[0]"
            )
        index = self.places.get(var)
        if index is not None and var not in self._remapped:
            self.set_var_remap(var, self.loaded(index, var.struct_info, var.name_hint))
        return super().visit_var_(var)

    def visit_tuple_getitem_(self, value: E.TupleGetItem) -> E.Value:
        if value.tuple_value is self.whole:
            return self.loaded(value.index, value.struct_info, "")
        return super().visit_tuple_getitem_(value)

    def loaded(self, index: int, info: StructInfo, name: str) -> E.Var:
        untyped = self.builder_.emit(self.load(index, name), self.name.format(name))
        return self.builder_.match_cast(untyped, info, name)


def _with_lazy_outputs(func: E.Function) -> E.Function:
    setter = E.Var("fset_output", FuncStructInfo([_NUMBER, _ANYTHING], _NOTHING, purity=False))
    result = func.body.body
    places, rest = _places(result.fields if isinstance(result, E.Tuple) else (result,))

    def stores(var: E.Var) -> list[E.Call]:
        return [E.Call(setter, [E.PrimValue(index), var]) for index in places.get(var, ())]

    first = E.BindingBlock([_unnamed(call) for param in func.params for call in stores(param)])
    last = E.BindingBlock([_unnamed(E.Call(setter, [E.PrimValue(i), e])) for i, e in rest])
    blocks = [_followed(block, lambda binding: stores(binding.var)) for block in func.body.blocks]
    body = E.SeqExpr(
        merged([each for each in (first, *blocks, last) if each.bindings]), E.Tuple(())
    )
    count = _input_count(func) if NUM_INPUT in func.attrs else len(func.params)
    params = (*func.params[:count], setter, *func.params[count:])
    new = E.Function(params, body, _NOTHING, False, func.attrs, span=func.span)
    return new.with_attr(NUM_INPUT, count + 1) if NUM_INPUT in func.attrs else new


def _places(
    results: Sequence[E.RelaxExpr],
) -> tuple[dict[E.Var, list[int]], list[tuple[int, E.RelaxExpr]]]:
    """Where variables are among the results, and the results that are no variables."""
    places: dict[E.Var, list[int]] = {}
    rest: list[tuple[int, E.RelaxExpr]] = []
    for index, value in enumerate(results):
        if isinstance(value, E.Var):
            places.setdefault(value, []).append(index)
        else:
            rest.append((index, value))
    return places, rest


def _unnamed(call: E.Call, in_dataflow: bool = False) -> E.VarBinding:
    info = call.sinfo_args[0] if call.sinfo_args else _NOTHING
    return E.VarBinding((E.DataflowVar if in_dataflow else E.Var)("_", info), call)


def _followed(
    block: E.BindingBlock, calls: Callable[[E.Binding], Sequence[E.Call]]
) -> E.BindingBlock:
    """A block with calls after its bindings."""
    inside = isinstance(block, E.DataflowBlock)
    bindings: list[E.Binding] = []
    for binding in block.bindings:
        bindings += [binding, *(_unnamed(call, inside) for call in calls(binding))]
    return replace(block, bindings=tuple(bindings))


def _with_stores(
    body: E.SeqExpr, weights: Sequence[E.Var], store: Callable[..., E.Call]
) -> E.SeqExpr:
    """The body with its results stored after their last use, where fields of weights end, too."""
    bindings = [binding for block in body.blocks for binding in block.bindings]
    whole = next((binding for binding in bindings if binding.var is body.body), None)
    if not (isinstance(whole, E.VarBinding) and isinstance(whole.value, E.Tuple)):
        raise DiagnosticError(
            "LazyTransformParams: the results are a variable that is bound to a tuple: "
            "`out = (a, b)`, and then `return out`"
        )
    places, rest = _places(whole.value.fields)
    ended: set[E.Var] = set()
    ends: dict[E.Binding, list[E.Var]] = {}
    for binding in reversed(bindings):
        if binding is not whole:
            used = dict.fromkeys((*used_vars(binding.value), binding.var))
            ends[binding] = [var for var in used if var not in ended]
            ended.update(used)
    fields = {
        binding.var
        for binding in bindings
        if isinstance(binding.value, E.TupleGetItem) and binding.value.tuple_value is weights[0]
    }

    def calls(binding: E.Binding) -> list[E.Call]:
        after: list[E.Call] = []
        for var in ends.get(binding, ()):
            after += [store(E.PrimValue(index), var) for index in places.get(var, ())]
            if var in fields:
                after.append(kill_object(var))
        return after

    blocks = [_followed(block, calls) for block in body.blocks]
    blocks.append(E.BindingBlock([_unnamed(store(E.PrimValue(i), value)) for i, value in rest]))
    nothing = E.VarBinding(E.Var("_", _NOTHING), E.Tuple(()))
    blocks = [
        replace(block, bindings=tuple(nothing if b is whole else b for b in block.bindings))
        for block in blocks
        if block.bindings
    ]
    return E.SeqExpr(merged(blocks), E.Tuple(()))


def _symbolic_values(func: E.Function, weights: Sequence[E.Var]) -> list[E.Var]:
    """Parameters for the numbers and shapes among the weights, which may define symbolic
    extents."""

    def parts(info: StructInfo) -> list[StructInfo]:
        if isinstance(info, TupleStructInfo):
            return [part for field in info.fields for part in parts(field)]
        return [info]

    if not any(dims.prim_vars(param.struct_info) for param in func.params):
        return []
    infos = [part for weight in weights for part in parts(weight.struct_info)]
    return [
        E.Var("symbolic_var_holder", info)
        for info in infos
        if isinstance(info, (PrimStructInfo, ShapeStructInfo))
    ]
