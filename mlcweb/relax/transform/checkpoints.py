"""Checkpoints: the values of a function that are kept for its gradients, and those computed again.

`R.grad.start_checkpoint` and `R.grad.end_checkpoint` mark where a part begins and ends whose
values are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.block_builder import BlockBuilder

_START = Op.get("relax.grad.start_checkpoint")
_END = Op.get("relax.grad.end_checkpoint")


def without_marks(
    params: Iterable[E.Var], bindings: Iterable[E.Binding]
) -> tuple[list[E.Binding], dict[E.Var, E.Var], set[E.Var]]:
    """The bindings without marks, what replaces the marked variables, and the kept ones.

    Kept are parameters, what is marked as a start, and what is computed from nothing but kept
    values and ends.
    """
    kept, ends = set(params), set[E.Var]()
    replaced: dict[E.Var, E.Var] = {}
    plain: list[E.Binding] = []
    for binding in bindings:
        value = Substitution(replaced).rewrite(binding.value)
        call = binding.value
        if isinstance(call, E.Call) and call.op in (_START, _END):
            assert isinstance(value, E.Call)
            (origin,) = value.args
            if call.op is _END:
                ends.add(binding.var)
            if isinstance(origin, E.Var):
                if call.op is _START:
                    kept.add(origin)
                replaced[binding.var] = origin
                if isinstance(binding.var, E.DataflowVar) or not isinstance(origin, E.DataflowVar):
                    continue
                replaced[binding.var] = E.Var(origin.name_hint, origin.struct_info)
            plain.append(E.VarBinding(replaced.get(binding.var, binding.var), origin))
            continue
        if isinstance(binding, E.MatchCast) or kept | ends >= set(used_vars(binding.value)):
            kept.add(binding.var)
        plain.append(replace(binding, value=value))
    return plain, replaced, kept


class Recomputation:
    """Computes values that are not kept again, each once, where they are first asked for."""

    def __init__(
        self, builder: BlockBuilder, bindings: Sequence[E.Binding], kept: Iterable[E.Var]
    ) -> None:
        self.builder = builder
        self.values = {binding.var: binding.value for binding in bindings}
        self.variables = {var: var for var in kept}

    def variable(self, var: E.Var) -> E.Var:
        if var not in self.variables:
            value = self.value(self.values[var])
            self.variables[var] = self.builder.emit(value, f"{var.name_hint}_cp")
        return self.variables[var]

    def value(self, value: E.Value) -> E.Value:
        """A value of the function, in terms of kept values and of those computed again."""
        return Substitution({var: self.variable(var) for var in used_vars(value)}).rewrite(value)
