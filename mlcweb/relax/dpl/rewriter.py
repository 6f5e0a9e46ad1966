"""Rules of rewriting as objects: made of a pattern and a function, or of a module."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.dpl import pattern as P
from mlcweb.relax.dpl.rewrite import Rewriter, rewrite_call
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.relax.utils import copy_with_new_vars

MAX_ROUNDS = 100
"""How often rules are applied until nothing matches any more."""


class PatternMatchingRewriter:
    """A rule, or several: called with a function or a module it rewrites what matches, until
    nothing does."""

    def __init__(self, rules: list[tuple[P.DFPattern, Rewriter]]) -> None:
        self.rules = rules

    @staticmethod
    def from_pattern(pattern: P.DFPattern, func: Rewriter) -> PatternMatchingRewriter:
        """The rule of `rewrite_call(pattern, func, …)`."""
        return PatternMatchingRewriter([(pattern, func)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """The rule of a module with two functions of the same parameters: what `pattern` computes
        is computed as `replacement` does."""
        names = {var.name_hint for var in mod.functions}
        if not {"pattern", "replacement"} <= names:
            raise TVMError(f"A rule has the functions pattern and replacement, not {sorted(names)}")
        before, after = mod["pattern"], mod["replacement"]
        if len(before.params) != len(after.params):
            raise TVMError("The functions pattern and replacement must have the same parameters")
        holes = {param: _hole(param.struct_info) for param in before.params}
        pattern = _pattern_of(before, holes)

        def rewritten(expr: E.RelaxExpr, matches: dict[P.DFPattern, E.RelaxExpr]) -> E.RelaxExpr:
            values = [matches[holes[param]] for param in before.params]
            bindings: dict[Any, Any] = dict(zip(after.params, values, strict=True))
            return copy_with_new_vars(after.bind_params(bindings)).body

        return PatternMatchingRewriter([(pattern, rewritten)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self.rules, *other.rules])

    def __call__(self, obj: Any) -> Any:
        if isinstance(obj, IRModule):
            functions: dict[Any, Any] = {
                var: self(func) if isinstance(func, E.Function) else func
                for var, func in obj.functions.items()
            }
            return IRModule(functions, obj.attrs, obj.global_infos)
        if not isinstance(obj, E.Function):
            raise TVMError(f"A rewriter takes a module or a function of it, not {obj!r}")
        for _ in range(MAX_ROUNDS):
            new = obj
            for pattern, func in self.rules:
                new = rewrite_call(pattern, func, new)
            if new is obj:
                return obj
            obj = new
        raise TVMError(f"What the rule makes matches it again, after {MAX_ROUNDS} rounds as well")


def _hole(info: StructInfo | None) -> P.DFPattern:
    """A pattern of what a parameter stands for."""
    if info is None or (
        isinstance(info, TensorStructInfo) and info.shape is None and not info.dtype
    ):
        return P.wildcard()
    return P.StructInfoPattern(P.wildcard(), info)


def _pattern_of(func: E.Function, holes: dict[E.Var, P.DFPattern]) -> P.DFPattern:
    """The pattern of what a function gives, in which its parameters are holes."""
    patterns: dict[E.Var, P.DFPattern] = dict(holes)

    def pattern(value: E.RelaxExpr) -> P.DFPattern:
        if isinstance(value, E.Var):
            return patterns[value]
        if isinstance(value, E.Call):
            call = P.CallPattern(P.ExprPattern(value.op), [pattern(arg) for arg in value.args])
            return P.AttrPattern(call, dict(value.attrs)) if value.attrs else call
        if isinstance(value, E.Tuple):
            return P.TuplePattern(tuple(pattern(item) for item in value.fields))
        if isinstance(value, E.TupleGetItem):
            return P.TupleGetItemPattern(pattern(value.tuple_value), value.index)
        return P.ExprPattern(value)

    for block in func.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, E.VarBinding):
                raise TVMError(f"A pattern has no match_cast: {binding}")
            patterns[binding.var] = pattern(binding.value)
    if isinstance(func.body.body, E.Tuple):
        raise TVMError("A rule rewrites one value; write one for each that the pattern gives")
    return pattern(func.body.body)


__all__ = ["PatternMatchingRewriter"]
