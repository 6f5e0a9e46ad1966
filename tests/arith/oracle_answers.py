"""Answers questions about integers with a real TVM. Run by the interpreter that has it.

Reads a JSON list of questions from standard input, writes a JSON list of answers. Expressions are
Python text, as `infix` writes them; domains are [min, extent] by variable name, with `n` and `m`
free.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from infix import infix
from tvm import sym, tirx
from tvm.ir import Range


class Scope:
    """The variables of one question."""

    def __init__(self, question: dict[str, Any]) -> None:
        dtype = question.get("dtype", "int32")
        texts = re.findall(r"[a-zA-Z_]\w*", json.dumps(question))
        self.names = {
            name: tirx.Var(name, dtype)
            for name in {*texts, *question["domains"]}
            if len(name) <= 4 and not hasattr(tirx, name) and name not in FUNCTIONS
        }
        self.domains = {
            self.names[name]: Range.from_min_extent(self.parse(low), self.parse(extent))
            for name, (low, extent) in question["domains"].items()
        }

    def parse(self, text: Any) -> Any:
        value = eval(str(text), {**FUNCTIONS, **self.names})
        return (
            tirx.const(value, "bool" if isinstance(value, bool) else "int32")
            if isinstance(value, (int, bool))
            else value
        )


FUNCTIONS = {
    "min": tirx.min, "max": tirx.max, "And": tirx.And, "Or": tirx.Or, "Not": tirx.Not,
    "Select": tirx.Select, "truncdiv": tirx.truncdiv, "truncmod": tirx.truncmod, "EQ": tirx.EQ,
    "NE": tirx.NE,
    "if_then_else": tirx.if_then_else,
}  # fmt: skip


def _analyzer(scope: Scope) -> sym.Analyzer:
    analyzer = sym.Analyzer()
    for variable, domain in scope.domains.items():
        analyzer.bind(variable, domain)
    return analyzer


def simplify(question: dict[str, Any], scope: Scope) -> Any:
    return infix(_analyzer(scope).simplify(scope.parse(question["expression"])))


def forms(question: dict[str, Any], scope: Scope) -> Any:
    analyzer, expression = _analyzer(scope), scope.parse(question["expression"])
    texts = [
        infix(form(expression))
        for form in (analyzer.simplify, analyzer.rewrite_simplify, analyzer.canonical_simplify)
    ]
    if str(expression.ty.dtype) == "bool":
        return texts
    bound, remainders = analyzer.const_int_bound(expression), analyzer.modular_set(expression)
    return [*texts, [bound.min_value, bound.max_value], [remainders.coeff, remainders.base]]


def iter_map(question: dict[str, Any], scope: Scope) -> Any:
    indices = [scope.parse(text) for text in question["indices"]]
    rest = (
        scope.domains, scope.parse(question.get("predicate", "True")),
        question.get("check_level", "surjective"), question.get("simplify_trivial", True),
    )  # fmt: skip
    found = sym.detect_iter_map(indices, *rest)
    texts = [infix(index) for index in sym.iter_map_simplify(indices, *rest)]
    return {"affine": len(found.indices) > 0, "texts": texts}


def _ends(found: Any, analyzer: sym.Analyzer) -> list[str]:
    return [infix(analyzer.simplify(end)) for end in (found.min_value, found.max_value)]


def region(question: dict[str, Any], scope: Scope) -> Any:
    region = [
        Range.from_min_extent(scope.parse(low), scope.parse(extent))
        for low, extent in question["region"]
    ]
    analyzer = _analyzer(scope)
    rest = (scope.domains, scope.parse(question.get("predicate", "True")), analyzer)
    strict = sym.estimate_region_strict_bound(region, *rest)
    upper = sym.estimate_region_upper_bound(region, *rest)
    return {
        "strict": strict and [_ends(item, analyzer) for item in strict],
        "upper": [_ends(item, analyzer) for item in upper],
    }


ANSWERS = {"simplify": simplify, "forms": forms, "iter_map": iter_map, "region": region}


def answer(question: dict[str, Any]) -> Any:
    try:
        return ANSWERS[question["kind"]](question, Scope(question))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps([answer(question) for question in json.load(sys.stdin)]))
