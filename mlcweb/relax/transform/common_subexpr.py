"""EliminateCommonSubexpr: compute once what is computed twice."""

from __future__ import annotations

from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.op import Op
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import contains_impure_call
from mlcweb.relax.transform.registration import map_bodies, pass_of, with_body


def EliminateCommonSubexpr(call_only: bool = False) -> Pass:
    """Where a value without side effects is computed again, use the variable that holds it. The
    later variable stays as another name of the first.

    Args:
        call_only: whether to look at calls alone, not at tuples and their fields.
    """
    return pass_of("EliminateCommonSubexpr", lambda mod: eliminate_common(mod, call_only), 1)


def eliminate_common(mod: IRModule, call_only: bool = False) -> IRModule:
    return map_bodies(mod, lambda body: _Common(mod, call_only).rewrite(body))


class _Common(Mutator):
    def __init__(self, mod: IRModule, call_only: bool) -> None:
        self.mod = mod
        self.call_only = call_only
        self.kinds = (E.Call,) if call_only else (E.Call, E.Tuple, E.TupleGetItem)
        self.stands_for: dict[E.Var, E.Var] = {}
        self.seen: dict[int, list[tuple[E.Binding, E.Var]]] = {}
        """By the hash of their value, bindings and the variables that hold what they compute."""

    @on(E.Var, E.DataflowVar)
    def variable(self, var: E.Var) -> E.Var:
        return self.stands_for.get(var, var)

    @on(E.Function)
    def function(self, func: E.Function) -> E.Function:
        """A function inside of another: what is computed outside is not there when it is called."""
        return with_body(func, _Common(self.mod, self.call_only).rewrite(func.body))

    @on(E.SeqExpr)
    def sequence(self, seq: E.SeqExpr) -> Node:
        outside = {key: list(entries) for key, entries in self.seen.items()}
        new = self.rewrite_children(seq)
        self.seen = outside
        return new

    @on(E.BindingBlock)
    def block(self, block: E.BindingBlock) -> Node:
        return self.rewrite_children(block)

    @on(E.DataflowBlock)
    def dataflow_block(self, block: E.DataflowBlock) -> Node:
        outside = dict(self.stands_for)
        new = self.rewrite_children(block)
        self.stands_for = outside
        for key, entries in self.seen.items():  # what is not seen outside of the block
            self.seen[key] = [
                (binding, var) for binding, var in entries if not isinstance(var, E.DataflowVar)
            ]
        return new

    @on(E.VarBinding, E.MatchCast)
    def binding(self, binding: E.Binding) -> Node:
        value = self.rewrite(binding.value)
        new = binding if value is binding.value else replace(binding, value=value)
        if isinstance(binding, E.MatchCast) or self._repeats(value):
            entries = self.seen.setdefault(structural_hash(value), [])
            first = next((var for earlier, var in entries if _computes(earlier, new)), None)
            if first is None or not isinstance(binding.var, E.DataflowVar):
                entries.append((new, binding.var))
            if first is not None:
                self.stands_for[binding.var] = first
                return E.VarBinding(binding.var, first, span=binding.span)
        elif isinstance(value, E.Var) and value is not binding.value:
            self.stands_for.setdefault(binding.var, value)
        return new

    def _repeats(self, value: E.Value) -> bool:
        """Whether a value that is computed again is the same."""
        if not isinstance(value, self.kinds) or contains_impure_call(value, functions=self.mod):
            return False
        op = value.op if isinstance(value, E.Call) else None
        return not (isinstance(op, Op) and op.get_attr("TAllocator"))


def _computes(earlier: E.Binding, binding: E.Binding) -> bool:
    """Whether two bindings give the same."""
    return (
        type(earlier) is type(binding)
        and earlier.var.struct_info == binding.var.struct_info
        and structural_equal(earlier.value, binding.value)
    )
