"""Which parameters of functions of TensorIR hold weights, whose layout schedules may choose."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.transform import Pass, Sequential
from mlcweb.ir.visitor import walk
from mlcweb.relax import expr as E
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.transform.dead_code import DeadCodeElimination
from mlcweb.relax.transform.parameters import NUM_INPUT, input_count
from mlcweb.relax.transform.registration import called_tir, is_primitive, pass_of
from mlcweb.schedule.layout_rewrite import LAYOUT_FREE
from mlcweb.tir.function import SCHEDULED, PrimFunc
from mlcweb.tir.stmt_functor import renew_defs


def AttachAttrLayoutFreeBuffers() -> Pass:
    """Give each function of TensorIR that `call_tir` calls the attribute "layout_free_buffers": the
    positions of the arguments that are constants, or parameters of the caller beyond its
    "num_input". Calls with weights in other positions get functions of their own."""
    attach = pass_of("_AttachAttrLayoutFreeBuffers", attach_layout_free)
    return Sequential([attach, DeadCodeElimination()], name="AttachAttrLayoutFreeBuffers")


def attach_layout_free(mod: IRModule) -> IRModule:
    attacher = _Attacher(mod)
    for var, func in mod.functions.items():
        if isinstance(func, E.Function) and not is_primitive(func):
            attacher.begin(func)
            attacher.builder_.update_func(var, attacher.visit_expr(func))
    return attacher.builder_.get()


class _Attacher(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.weights: frozenset[E.RelaxExpr] = frozenset()

    def begin(self, func: E.Function) -> None:
        count = input_count(func) if NUM_INPUT in func.attrs else len(func.params)
        self.weights = frozenset(func.params[count:])

    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        func = called_tir(self.mod, new)
        if func is None or not isinstance(new, E.Call):
            return new
        callee, arguments, *sizes = new.args
        if not isinstance(callee, GlobalVar) or not isinstance(arguments, E.Tuple):
            return new
        free = [
            n
            for n, field in enumerate(arguments.fields)
            if isinstance(field, E.Constant) or field in self.weights
        ]
        marked = renew_defs(func.with_attr(LAYOUT_FREE, free))
        var = self.builder_.add_func(marked, callee.name_hint)
        args = (var, arguments, *sizes)
        return E.Call(new.op, args, new.attrs, new.sinfo_args, span=new.span)


def free_constants(mod: IRModule) -> IRModule:
    """The module with the attribute "layout_free_buffers" for what all calls of a function give as
    constants, where it has neither the attribute nor a schedule; functions keep their names."""
    free: dict[GlobalVar, set[int]] = {}
    graphs = [func for func in mod.functions.values() if isinstance(func, E.Function)]
    for call in (node for graph in graphs for node in walk(graph) if isinstance(node, E.Call)):
        arguments = call.args[1] if called_tir(mod, call) is not None else None
        fields = arguments.fields if isinstance(arguments, E.Tuple) else ()
        numbers = {n for n, field in enumerate(fields) if isinstance(field, E.Constant)}
        for callee in (call.op, *call.args):
            if isinstance(callee, GlobalVar):
                free[callee] = numbers & free.get(callee, numbers)
    marked = {
        var: func.with_attr(LAYOUT_FREE, sorted(free[var]))
        for var, func in mod.functions.items()
        if isinstance(func, PrimFunc) and free.get(var)
        if LAYOUT_FREE not in func.attrs and SCHEDULED not in func.attrs
    }
    return mod.with_functions({**mod.functions, **marked}) if marked else mod
