"""Rules of rewriting as objects: made of a pattern and a function, or of a module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TypeVar

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.transform import Pass, PassContext, PassInfo
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import all_global_vars
from mlcweb.relax.analysis.struct_info import PASS, unify
from mlcweb.relax.binding import bind_params
from mlcweb.relax.dpl import pattern as P
from mlcweb.relax.dpl.rewrite import Rewriter, rewritten_once
from mlcweb.relax.errors import DTypeError, ShapeError
from mlcweb.relax.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from mlcweb.relax.utils import copy_with_new_vars
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

Rewritten = TypeVar("Rewritten", IRModule, E.Function)

MAX_ROUNDS = 100
"""How often rules are applied until nothing matches any more."""


class MissingFunctionError(TVMError, KeyError):
    """A module that is to be a rule lacks a function."""

    __str__ = Exception.__str__  # a KeyError's is the repr of its message


@dataclass(slots=True, eq=False)
class Rule:
    """What matches `pattern` becomes what `func` makes of it, which may call `subroutines`."""

    pattern: P.DFPattern
    func: Rewriter
    subroutines: Mapping[GlobalVar, BaseFunc] = field(default_factory=dict)

    def renamed(self, names: Mapping[GlobalVar, GlobalVar]) -> Rule:
        """The rule with other names for subroutines."""
        calls = _Renaming(names)

        def func(expr: E.RelaxExpr, matches: dict[P.DFPattern, E.RelaxExpr]) -> E.RelaxExpr:
            new = self.func(expr, matches)
            return new if new is expr else calls.rewrite(new)

        subroutines = {
            names.get(var, var): calls.rewrite(func) for var, func in self.subroutines.items()
        }
        return Rule(self.pattern, func, subroutines)


class PatternMatchingRewriter(Pass):
    """A rule, or several: called with a function or a module it rewrites what matches, until
    nothing does."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.info = PassInfo(0, "PatternMatchingRewriter")

    @staticmethod
    def from_pattern(pattern: P.DFPattern, func: Rewriter) -> PatternMatchingRewriter:
        """The rule of `rewrite_call(pattern, func, …)`."""
        return PatternMatchingRewriter([Rule(pattern, func)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """The rule of a module with two functions of the same signature: what `pattern` computes
        is computed as `replacement` does. Where they give a tuple, its fields may also be found
        one by one. Other functions of the module, which are private, come along as needed.

        Raises: KeyError, TypeError or ValueError where one of these is not so.
        """
        before, after = _function(mod, "pattern"), _function(mod, "replacement")
        if not structural_equal(before.struct_info, after.struct_info, map_free_vars=True):
            raise ShapeError(
                "The functions pattern and replacement must have the same signature: "
                f"{before.struct_info} against {after.struct_info}"
            )
        subroutines = {
            var: func
            for var, func in mod.functions.items()
            if var.name_hint not in ("pattern", "replacement")
        }
        for var, func in subroutines.items():
            if "global_symbol" in func.attrs:
                raise ShapeError(
                    f"A rule brings private functions along, but {var.name_hint} is publicly "
                    "exposed: write private=True"
                )
        holes = _Holes(before)

        def rewritten(expr: E.RelaxExpr, matches: dict[P.DFPattern, E.RelaxExpr]) -> E.RelaxExpr:
            if not holes.agree(matches):
                return expr
            values = (_value(matches[holes.patterns[param]]) for param in before.params)
            arguments = dict(zip(after.params, values, strict=True))
            return copy_with_new_vars(bind_params(after, arguments)).body

        return PatternMatchingRewriter([Rule(holes.result, rewritten, subroutines)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self.rules, *other.rules])

    def __call__(self, obj: Rewritten) -> Rewritten:
        if isinstance(obj, E.Function):
            return self._function(obj, IRModule(self._subroutines()))
        if not isinstance(obj, IRModule):
            raise TVMError(f"A rewriter takes a module or a function of it, not {obj!r}")
        return super().__call__(obj)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        own = self._with_own_names({var.name_hint for var in mod.functions})
        missing = own._subroutines()
        extended = mod.with_functions({**missing, **mod.functions})
        functions = {
            var: own._function(func, extended) if isinstance(func, E.Function) else func
            for var, func in mod.functions.items()
        }
        waiting = list(functions.values())
        while waiting:
            func = waiting.pop()
            for var in all_global_vars(func) if isinstance(func, E.Function) else ():
                if var in missing:
                    functions[var] = missing.pop(var)
                    waiting.append(functions[var])
        return mod.with_functions(functions)

    def _subroutines(self) -> dict[GlobalVar, BaseFunc]:
        return {var: func for rule in self.rules for var, func in rule.subroutines.items()}

    def _with_own_names(self, taken: set[str]) -> PatternMatchingRewriter:
        """The same rules, with subroutines of names that are not taken."""
        rules: list[Rule] = []
        for rule in self.rules:
            renamed: dict[GlobalVar, GlobalVar] = {}
            for var in rule.subroutines:
                others = (f"{var.name_hint}_{number}" for number in count(1))
                name = next(n for n in chain((var.name_hint,), others) if n not in taken)
                taken.add(name)
                if name != var.name_hint:
                    renamed[var] = GlobalVar(name)
            rules.append(rule.renamed(renamed) if renamed else rule)
        return PatternMatchingRewriter(rules)

    def _function(self, func: E.Function, mod: IRModule) -> E.Function:
        for _ in range(MAX_ROUNDS):
            new = func
            for rule in self.rules:
                new = rewritten_once(rule.pattern, rule.func, new, mod)
            if new is func:
                return func
            func = new
        raise TVMError(f"What the rule makes matches it again, after {MAX_ROUNDS} rounds as well")


class _Renaming(Mutator):
    """Calls functions by other names."""

    def __init__(self, renamed: Mapping[GlobalVar, GlobalVar]) -> None:
        self.renamed = renamed

    @on(GlobalVar)
    def name(self, var: GlobalVar) -> GlobalVar:
        return self.renamed.get(var, var)


def _function(mod: IRModule, name: str) -> E.Function:
    if all(var.name_hint != name for var in mod.functions):
        names = ", ".join(var.name_hint for var in mod.functions) or "none"
        raise MissingFunctionError(f"A rule needs a function {name}; the module has {names}")
    func = mod[name]
    if not isinstance(func, E.Function):
        raise DTypeError(
            f"The function {name} of a rule is an R.function, not a {type(func).__name__}"
        )
    return func


class _Holes:
    """The pattern of what a function gives, in which its parameters are holes.

    Attributes:
        patterns: the pattern of each variable.
        result: the pattern of what is returned.
    """

    def __init__(self, func: E.Function) -> None:
        self.expected: dict[P.DFPattern, StructInfo] = {}
        self.patterns: dict[E.Var, P.DFPattern] = {
            param: self.hole(param.struct_info) for param in func.params
        }
        for block in func.body.blocks:
            for binding in block.bindings:
                pattern = self.pattern(binding.value)
                if isinstance(binding, E.MatchCast):
                    pattern = self.refined(pattern, binding.struct_info)
                self.patterns[binding.var] = pattern
        self.result = self.pattern(func.body.body)

    def hole(self, info: StructInfo | None) -> P.DFPattern:
        return P.wildcard() if info is None else self.refined(P.wildcard(), info)

    def refined(self, pattern: P.DFPattern, info: StructInfo) -> P.DFPattern:
        """What matches a pattern and is of a struct info, of which symbolic extents may be any, but
        the same everywhere: that is for `agree`."""
        general = _without_symbols(info)
        if general is not info:
            self.expected[pattern] = info
        return pattern if general is None else P.StructInfoPattern(pattern, general)

    def pattern(self, value: E.RelaxExpr) -> P.DFPattern:
        if isinstance(value, E.Var):
            return self.patterns[value]
        if isinstance(value, E.Call):
            args = [self.pattern(arg) for arg in value.args]
            call = P.CallPattern(P.ExprPattern(value.op), args)
            return P.AttrPattern(call, dict(value.attrs)) if value.attrs else call
        if isinstance(value, E.Tuple):
            return P.TuplePattern(tuple(self.pattern(item) for item in value.fields))
        if isinstance(value, E.TupleGetItem):
            return P.TupleGetItemPattern(self.pattern(value.tuple_value), value.index)
        if isinstance(value, (E.PrimValue, E.ShapeExpr)) and _is_symbolic(value.struct_info):
            return self.hole(value.struct_info)
        return P.ExprPattern(value)

    def agree(self, matches: Mapping[P.DFPattern, E.RelaxExpr]) -> bool:
        """Whether symbolic extents can have values with which all that was matched is as said."""
        values: dict[PrimVar, PrimExpr] = {}
        return all(
            unify(info, _value(matches[pattern]).struct_info, values) is PASS
            for pattern, info in self.expected.items()
            if pattern in matches
        )


def _value(value: E.RelaxExpr) -> E.Expr:
    """What a hole stands for, which is no function."""
    assert isinstance(value, E.Expr)
    return value


def _is_symbolic(info: StructInfo) -> bool:
    return next(dims.prim_vars(info), None) is not None


def _without_symbols(info: StructInfo) -> StructInfo | None:
    """What a struct info says but for symbolic extents; None where nothing is left."""
    if isinstance(info, TensorStructInfo) and info.shape is None and not info.dtype:
        return None if info.ndim == -1 else info
    if not _is_symbolic(info):
        return info
    if isinstance(info, TensorStructInfo):
        return TensorStructInfo(None, info.dtype, ndim=info.ndim)
    return ShapeStructInfo(ndim=info.ndim) if isinstance(info, ShapeStructInfo) else None


__all__ = ["PatternMatchingRewriter"]
