"""Passes for tests of passes."""

from __future__ import annotations

from mlcweb.ir.transform import Pass
from mlcweb.relax.expr_functor import PyExprMutator
from mlcweb.relax.transform.registration import map_functions, pass_of


def ApplyEmptyCppMutator() -> Pass:
    """What a mutator that changes nothing leaves: functions in normal form."""
    return pass_of(
        "ApplyEmptyCppMutator",
        lambda mod: map_functions(mod, lambda _, func: PyExprMutator(mod).visit_expr(func)),
    )
