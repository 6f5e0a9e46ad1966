"""Random questions, answered alike by a real TVM.

Texts need not agree always (an expression has many simple forms), but nearly always on the indices
that schedules make.
"""

from __future__ import annotations

from typing import Any

import pytest

from mlcweb.arith import Analyzer, IntSet, estimate_region_upper_bound
from mlcweb.arith.iter_map import detect_iter_map, iter_map_simplify
from mlcweb.tir.buffer import Range
from tests.arith.expressions import Chance, Names, ask_oracle
from tests.arith.infix import infix

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

SIZE = 600
FORMS = [0.88, 0.81, 0.83, 0.9, 0.99]
"""Shares of what `simplify`, `rewrite_simplify`, `canonical_simplify`, the bounds and the
remainders have to have in common with TVM's; ours are often the shorter."""


def agreement(ours: list[Any], theirs: list[Any]) -> float:
    assert not [answer for answer in theirs if isinstance(answer, dict) and "error" in answer]
    return sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)


def test_simplify(oracle_python: str) -> None:
    questions, ours = [], []
    for seed in range(SIZE):
        chance, names = Chance(seed), Names()
        text = chance.expression()
        questions.append({"kind": "simplify", "domains": chance.domains, "expression": text})
        analyzer = Analyzer(names.domains(chance.domains))
        ours.append(infix(analyzer.simplify(names.parse(text))))
    assert agreement(ours, ask_oracle(oracle_python, questions)) > 0.97


def test_forms_of_any_arithmetic(oracle_python: str) -> None:
    questions, ours = [], []
    for seed in range(3 * SIZE):
        chance, names = Chance(seed), Names()
        text = chance.comparison() if seed % 4 == 0 else chance.arithmetic()
        domains = {name: (-3, extent + 5) for name, extent in chance.extents.items()}
        expression, analyzer = names.parse(text), Analyzer(names.domains(domains))
        questions.append({"kind": "forms", "domains": domains, "expression": text})
        texts = [
            infix(form(expression))
            for form in (analyzer.simplify, analyzer.rewrite_simplify, analyzer.canonical_simplify)
        ]
        if expression.dtype == "bool":
            ours.append(texts)
        else:
            bound = [_as_tvm(end) for end in analyzer.const_int_bound(expression)]
            ours.append([*texts, bound, list(analyzer.modular_set(expression))])
    theirs = ask_oracle(oracle_python, questions)
    shares = [
        agreement([a[k] for a in ours if len(a) > k], [b[k] for b in theirs if len(b) > k])
        for k in range(5)
    ]
    assert all(share > least for share, least in zip(shares, FORMS, strict=True)), shares


def _as_tvm(end: float) -> int:
    """TVM's infinity is the greatest number."""
    return int(end) if abs(end) < 2**63 else (2**63 - 1) * (1 if end > 0 else -1)


def test_iter_map(oracle_python: str) -> None:
    questions, ours = [], []
    for seed in range(SIZE):
        chance, names = Chance(seed), Names()
        indices = [chance.index(2) for _ in range(chance.rng.randint(1, 3))]
        level = chance.rng.choice(["surjective", "surjective", "bijective"])
        question = {
            "kind": "iter_map",
            "domains": chance.domains,
            "indices": indices,
            "predicate": chance.predicate(),
            "check_level": level,
            # TVM leaves `i // 2` where i has one iteration; we write 0.
            "simplify_trivial": 1 not in chance.extents.values(),
        }
        questions.append(question)
        parsed = [names.parse(text) for text in indices]
        rest = (
            names.domains(chance.domains),
            names.parse(question["predicate"]),
            level,
            question["simplify_trivial"],
        )
        affine = detect_iter_map(parsed, *rest).indices is not None
        texts = [infix(index) for index in iter_map_simplify(parsed, *rest)]
        ours.append({"affine": affine, "texts": texts})
    assert agreement(ours, ask_oracle(oracle_python, questions)) > 0.93


def test_region(oracle_python: str) -> None:
    questions, ours = [], []
    for seed in range(SIZE):
        chance, names = Chance(seed), Names()
        domains = names.domains(chance.domains)
        analyzer = Analyzer(domains)
        starts = [(analyzer.simplify(names.parse(low)), size) for low, size in chance.region()]
        region = [Range(low, names.parse(size)) for low, size in starts]
        predicate = chance.predicate()
        questions.append(
            {
                "kind": "region",
                "domains": chance.domains,
                "region": [(infix(low), size) for low, size in starts],
                "predicate": predicate,
            }
        )
        found = estimate_region_upper_bound(region, domains, names.parse(predicate), analyzer)
        ours.append([_ends(item) for item in found])
    theirs = [answer["upper"] for answer in ask_oracle(oracle_python, questions)]
    assert agreement(ours, theirs) > 0.93


def _ends(found: IntSet) -> list[str]:
    low, high = found
    return [
        "neg_inf" if low is None else infix(low),
        "pos_inf" if high is None else infix(high),
    ]
