"""Checkpoints: the values of a function that are kept for its gradients, and those computed again.

`R.grad.start_checkpoint` and `R.grad.end_checkpoint` mark where a part begins and ends whose
values are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcweb.ir.errors import DiagnosticError
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
        var = binding.var
        value = Substitution(replaced).rewrite(binding.value)
        if not isinstance(value, E.Call) or value.op not in (_START, _END):
            if isinstance(binding, E.MatchCast) or kept | ends >= set(used_vars(binding.value)):
                kept.add(var)
            plain.append(replace(binding, value=value))
            continue
        (origin,) = value.args
        if not isinstance(origin, E.Var):
            raise DiagnosticError(f"{value.op.name} marks a variable, not {origin}")
        if value.op is _START:
            kept.add(origin)
        else:
            ends.add(var)
        if isinstance(origin, E.DataflowVar) and not isinstance(var, E.DataflowVar):
            output = E.Var(origin.name_hint, origin.struct_info)
            plain.append(E.VarBinding(output, origin))
            origin = output
        replaced[var] = origin
    return plain, replaced, kept


class Recomputation:
    """Computes values that are not kept again, each once, where they are first asked for."""

    def __init__(
        self, builder: BlockBuilder, bindings: Sequence[E.Binding], kept: Iterable[E.Var]
    ) -> None:
        self.builder = builder
        self.values = {
            binding.var: binding.value for binding in bindings if isinstance(binding, E.VarBinding)
        }
        self.variables = {var: var for var in kept}

    def variable(self, var: E.Var) -> E.Var:
        if var not in self.variables:
            value = self.value(self.values[var])
            self.variables[var] = self.builder.emit(value, f"{var.name_hint}_cp")
        return self.variables[var]

    def value(self, value: E.Value) -> E.Value:
        """A value of the function, in terms of kept values and of those computed again."""
        return Substitution({var: self.variable(var) for var in used_vars(value)}).rewrite(value)
