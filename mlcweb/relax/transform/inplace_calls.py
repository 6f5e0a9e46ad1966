"""DataflowUseInplaceCalls: elementwise operators that write over an argument which dies there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.variables import used_vars
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.expr_functor import PyExprMutator, mutator
from mlcweb.relax.op.inplace import call_tir_inplace
from mlcweb.relax.transform.aliasing import OUTSIDE, Aliasing, allocations
from mlcweb.relax.transform.registration import CALL_TIR, pass_of, rewritten_by
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute


def DataflowUseInplaceCalls() -> Pass:
    """Let additions, subtractions, products, quotients, `relu` and `silu` in dataflow blocks write
    over an argument, by `call_tir_inplace`: one that has the shape and type of the result, that the
    block has made, and that nothing reads later."""
    return pass_of("DataflowUseInplaceCalls", lambda mod: rewritten_by(mod, _InPlace(mod)))


@mutator
class _InPlace(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.targets: dict[E.Var, Target] = {}

    def visit_dataflow_block_(self, block: E.DataflowBlock) -> E.BindingBlock:
        self.targets |= targets(self.mod, block, _arguments_of_operators)
        return super().visit_dataflow_block_(block)

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        target, call = self.targets.get(binding.var), binding.value
        if target is not None and isinstance(call, E.Call):
            new = self.in_place(super().visit_call_(call), target)
            if new is not None:
                self.emit_rebound(binding.var, binding.var, self.builder_.normalize(new))
                return
        super().visit_var_binding_(binding)

    def in_place(self, call: E.Value, target: Target) -> E.Call | None:
        """The call of an operator that writes over an argument."""
        assert isinstance(call, E.Call) and isinstance(call.op, Op)
        scratch = BlockBuilder()
        lowered = call.op.get_attr("FLegalize")(scratch, call)
        if not (isinstance(lowered, E.Call) and lowered.op == CALL_TIR):
            return None
        callee, arguments, *rest = lowered.args
        sizes = [size for size in rest if isinstance(size, E.Expr)]
        assert isinstance(callee, GlobalVar) and isinstance(arguments, E.Tuple)
        var = self.get_var_remap(target.var)
        places = [n for n, field in enumerate(arguments.fields) if field is var]
        if not places:
            return None
        func = over_parameter(scratch.get()[callee], places[-1])
        if not target.alone:
            func = func.without_attr("tir.noalias")
        own = self.builder_.add_func(func, f"{callee.name_hint}_inplace")
        return call_tir_inplace(own, arguments, places[-1], lowered.sinfo_args[0], *sizes)


def over_parameter(func: PrimFunc, place: int) -> PrimFunc:
    """The function that writes its result into a parameter."""
    buffers = [param for param in func.params if param in func.buffer_map]
    result, target = func.buffer_map[buffers[-1]], func.buffer_map[func.params[place]]
    return replace(
        func,
        params=tuple(param for param in func.params if param is not buffers[-1]),
        buffer_map={
            param: buffer for param, buffer in func.buffer_map.items() if param is not buffers[-1]
        },
        body=substitute(func.body, {}, {result: target}),
    )


class Target(NamedTuple):
    """An argument that is written over, and whether no other argument is in its memory."""

    var: E.Var
    alone: bool


def _arguments_of_operators(value: E.RelaxExpr) -> Sequence[E.RelaxExpr]:
    """The arguments of an operator that may write over them."""
    if isinstance(value, E.Call) and isinstance(value.op, Op) and value.op.get_attr("TInPlace"):
        return value.args
    return ()


def targets(
    mod: IRModule,
    block: E.DataflowBlock,
    candidates: Callable[[E.RelaxExpr], Sequence[E.RelaxExpr]],
) -> dict[E.Var, Target]:
    """For the variables of a block whose values may be written over an argument, that argument: the
    last that will do of those that `candidates` tells of a value."""
    offered = [
        (n, binding.var, binding.value, arguments)
        for n, binding in enumerate(block.bindings)
        for arguments in (candidates(binding.value),)
        if arguments
    ]
    if not offered:
        return {}
    aliasing = Aliasing(mod, block)
    ends = _last_reads(block, aliasing)
    chosen = {}
    for n, var, value, arguments in offered:
        assert isinstance(value, E.Call)
        for arg in reversed(arguments):
            memory = allocations(aliasing.of(arg))
            if not isinstance(arg, E.Var) or not memory or OUTSIDE in memory:
                continue
            if any(ends[allocation] > n for allocation in memory):
                continue
            beside = [other for other in _inputs(value) if allocations(aliasing.of(other)) & memory]
            infos = [getattr(each, "struct_info", None) for each in beside]
            if all(dims.same_tensors(info, var.struct_info) for info in infos):
                chosen[var] = Target(arg, len(beside) == 1)
                break
    return chosen


def _inputs(call: E.Call) -> Sequence[E.RelaxExpr]:
    """What a call reads: its arguments, or what is in the tuple of those of a `call_tir`."""
    arguments = call.args[1] if call.op == CALL_TIR else None
    return arguments.fields if isinstance(arguments, E.Tuple) else call.args


def _last_reads(block: E.DataflowBlock, aliasing: Aliasing) -> dict[int, int]:
    """For each allocation of a block the number of the last binding that reads a value in it; that
    of no binding where the value is seen outside."""
    ends: dict[int, int] = {}
    for n, binding in enumerate(block.bindings):
        # Who takes a field reads no other field.
        field = isinstance(binding.value, E.TupleGetItem)
        for var in [binding.var] if field else used_vars(binding.value):
            ends.update(dict.fromkeys(allocations(aliasing.of(var)), n))
    for binding in block.bindings:
        if not isinstance(binding.var, E.DataflowVar):
            ends.update(dict.fromkeys(allocations(aliasing.of(binding.var)), len(block.bindings)))
    return ends
