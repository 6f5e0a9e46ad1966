"""EliminateCommonSubexpr: compute once what is computed twice."""

from __future__ import annotations

from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import contains_impure_call
from mlcweb.relax.transform.registration import map_functions, pass_of


def EliminateCommonSubexpr(call_only: bool = False) -> Pass:
    """Where a value without side effects is computed again, use the variable that holds it. The
    later variable stays as another name of the first.

    Args:
        call_only: whether to look at calls alone, not at tuples and their fields.
    """
    return pass_of("EliminateCommonSubexpr", lambda mod: eliminate_common(mod, call_only), 1)


def eliminate_common(mod: IRModule, call_only: bool = False) -> IRModule:
    def change(var: GlobalVar, func: E.Function) -> E.Function:
        body = _Common(mod, call_only).rewrite(func.body)
        return func if body is func.body else replace(func, body=body)

    return map_functions(mod, change)


class _Common(Mutator):
    def __init__(self, mod: IRModule, call_only: bool) -> None:
        self.mod = mod
        self.kinds = (E.Call,) if call_only else (E.Call, E.Tuple, E.TupleGetItem)
        self.stands_for: dict[E.Var, E.Var] = {}
        self.known: dict[int, list[tuple[E.Expr, E.Var]]] = {}

    @on(E.Var, E.DataflowVar)
    def variable(self, var: E.Var) -> E.Var:
        return self.stands_for.get(var, var)

    @on(E.Function)
    def function(self, func: E.Function) -> E.Function:
        return func

    @on(E.SeqExpr)
    def sequence(self, seq: E.SeqExpr) -> Node:
        outside = {key: list(entries) for key, entries in self.known.items()}
        new = self.rewrite_children(seq)
        self.known = outside
        return new

    @on(E.BindingBlock)
    def block(self, block: E.BindingBlock) -> Node:
        return self.rewrite_children(block)

    @on(E.DataflowBlock)
    def dataflow_block(self, block: E.DataflowBlock) -> Node:
        outside = dict(self.stands_for)
        new = self.rewrite_children(block)
        self.stands_for = outside
        for key, entries in self.known.items():  # what is not seen outside of the block
            self.known[key] = [
                (value, var) for value, var in entries if not isinstance(var, E.DataflowVar)
            ]
        return new

    @on(E.VarBinding)
    def binding(self, binding: E.VarBinding) -> Node:
        value = self.rewrite(binding.value)
        if isinstance(value, self.kinds) and not contains_impure_call(value, functions=self.mod):
            entries = self.known.setdefault(structural_hash(value), [])
            for known, var in entries:
                same_info = var.struct_info == binding.var.struct_info
                if same_info and structural_equal(known, value):
                    self.stands_for[binding.var] = var
                    return replace(binding, value=var)
            entries.append((value, binding.var))
        elif isinstance(value, E.Var) and value is not binding.value:
            self.stands_for.setdefault(binding.var, value)
        return binding if value is binding.value else replace(binding, value=value)
